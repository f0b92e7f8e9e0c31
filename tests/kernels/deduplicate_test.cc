#include "kernels/deduplicate.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <random>

#include "tests/kernels/guarded_directory.h"
#include "tests/reference/deduplicate.h"
#include "tests/support/guarded.h"
#include "tests/support/watchdog.h"

namespace rowtide {
namespace {

struct IdBatch {
  std::vector<int64_t> ids;
  std::vector<uint64_t> begin{0};
  std::vector<uint32_t> table;

  void add(uint32_t of_table, std::vector<int64_t> feature_ids) {
    ids.insert(ids.end(), feature_ids.begin(), feature_ids.end());
    begin.push_back(ids.size());
    table.push_back(of_table);
  }
  Deduplicate op() const {
    return {ids.data(), begin.data(), table.data(), static_cast<uint32_t>(table.size())};
  }
};

// One Deduplicator that runs batch after batch, so that each meets what the last one left.
class DeduplicateTest : public ::testing::Test {
 protected:
  void expect_equals_reference(const IdBatch& batch) {
    Guarded<Key> keys(batch.ids.size());
    Guarded<uint32_t> unique(batch.ids.size()), feature_rows(batch.table.size() + 1);
    DistinctRows out{0, keys.data(), unique.data(), feature_rows.data()};
    deduplicator_.run(batch.op(), out);
    const auto expected = deduplicate_reference(batch.op());
    ASSERT_EQ(out.count, expected.keys.size());
    EXPECT_EQ(std::vector<Key>(keys.data(), keys.data() + out.count), expected.keys);
    EXPECT_EQ(unique.vector(), expected.unique);
    EXPECT_EQ(feature_rows.vector(), expected.feature_rows);
    expect_sorted(expected);
  }

  static void expect_sorted(const DistinctRowsReference& rows) {
    const auto count = static_cast<uint32_t>(rows.keys.size());
    const auto skipped = std::count(rows.unique.begin(), rows.unique.end(), kSkipped);
    Guarded<uint32_t> begin(count + 1), occurrences(rows.unique.size() - skipped);
    sort_occurrences(rows.unique.data(), rows.unique.size(), count, begin.data(),
                     occurrences.data());
    EXPECT_EQ(begin[0], 0u);
    EXPECT_EQ(begin[count], occurrences.size());
    for (uint32_t r = 0; r < count; ++r) {
      ASSERT_LT(begin[r], begin[r + 1]);
      for (uint32_t j = begin[r]; j < begin[r + 1]; ++j) {
        ASSERT_EQ(rows.unique[occurrences[j]], r);
        ASSERT_TRUE(j == begin[r] || occurrences[j - 1] < occurrences[j]);
      }
    }
  }

  static std::vector<int64_t> random_ids(size_t count, uint64_t rows, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<int64_t> ids(count);
    for (auto& id : ids) {
      id = random() % 16 == 0 ? kSkippedId : static_cast<int64_t>(random() % rows);
    }
    return ids;
  }

  static constexpr uint64_t kMaxIds = 1000003;
  static constexpr uint32_t kTables = 5;
  Guarded<std::byte> scratch_{Deduplicator::scratch_bytes(kMaxIds, kTables)};
  Deduplicator deduplicator_{scratch_.data(), kMaxIds, kTables, /*salt=*/0};
};

TEST_F(DeduplicateTest, EqualsTheReferenceAtEveryBatchSize) {
  for (size_t size : {0, 1, 31, 32, 33, 255, 256, 257, 65535, 65536}) {
    for (uint64_t rows : {uint64_t{1}, uint64_t{100}, uint64_t{50000}, kMaxRows}) {
      IdBatch batch;
      batch.add(3, random_ids(size, rows, size + rows));
      expect_equals_reference(batch);
    }
  }
}

TEST_F(DeduplicateTest, EqualsTheReferenceForAMillionIdsSlow) {
  IdBatch batch;
  batch.add(3, random_ids(kMaxIds, 300000, 1));
  expect_equals_reference(batch);
}

TEST_F(DeduplicateTest, FeaturesOfOneTableShareRowsAndOthersDoNot) {
  IdBatch batch;
  batch.add(4, {1, 2, 1});
  batch.add(7, {2, 1});
  batch.add(4, {3, 2, 4});
  batch.add(65534, {});
  batch.add(65534, {1});
  batch.add(7, {9, 1});
  expect_equals_reference(batch);
}

TEST_F(DeduplicateTest, EqualsTheReferenceForManyFeaturesInAnyOrder) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    const uint32_t tables[kTables] = {0, 1, 600, 40000, 65534};
    IdBatch batch;
    for (int f = 0; f < 12; ++f) {
      batch.add(tables[random() % kTables], random_ids(random() % 500, 300, random()));
    }
    expect_equals_reference(batch);
  }
}

TEST_F(DeduplicateTest, TakesABatchWithoutFeaturesOrWithoutIds) {
  IdBatch batch;
  expect_equals_reference(batch);
  batch.add(1, {});
  batch.add(2, {kSkippedId, kSkippedId});
  expect_equals_reference(batch);
}

TEST_F(DeduplicateTest, KeepsHugeIdsApart) {
  const auto last = static_cast<int64_t>(kMaxRows - 1);
  IdBatch batch;
  batch.add(0, {0, last, 1ll << 31, 1ll << 32, 1ll << 40, (1ll << 32) + 1, last, 1, 0, last - 1});
  batch.add(65534, {last, 0, last});
  expect_equals_reference(batch);
}

TEST_F(DeduplicateTest, CountsAMillionCopiesOfOneIdOnce) {
  IdBatch batch;
  batch.add(1, std::vector<int64_t>(1000000, 7));
  expect_equals_reference(batch);
}

// Ids made to begin their search in the first hundredth of the table: one run of them all.  Some
// have the same tag as well.
TEST_F(DeduplicateTest, TenThousandIdsOfOneHomeEndInTime) {
  Watchdog watchdog("ids of one home", std::chrono::seconds(30));
  std::vector<int64_t> ids;
  for (int64_t id = 0; ids.size() < 10000; ++id) {
    if (mix64(static_cast<uint64_t>(id)) < ~uint64_t{0} / 100) ids.push_back(id);
  }
  for (uint64_t upper = 0; ids.size() < 10008; ++upper) {
    const Key id = key_of_hash(upper << 32 | 0x12345678, /*salt=*/0);
    if (id < kMaxRows) ids.push_back(static_cast<int64_t>(id));
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) ids.push_back(ids[random() % 10008]);
  IdBatch batch;
  batch.add(1, ids);
  batch.add(2, ids);
  batch.add(1, {ids.rbegin(), ids.rend()});
  expect_equals_reference(batch);
}

// The same ids in both runs; who chose them did not know the second one's salt.  Without one they
// would cost some hundred times what they do.
TEST_F(DeduplicateTest, IdsMadeToCollideDoNotUnderAnotherSalt) {
  constexpr size_t kIds = 20000;
  IdBatch crafted;
  std::vector<int64_t> ids;
  for (int64_t id = 0; ids.size() < kIds; ++id) {
    if (mix64(static_cast<uint64_t>(id)) < ~uint64_t{0} / 1000) ids.push_back(id);
  }
  crafted.add(1, ids);
  const auto seconds = [&](uint64_t salt) {
    std::vector<Key> keys(kIds);
    std::vector<uint32_t> unique(kIds), feature_rows(2);
    DistinctRows out{0, keys.data(), unique.data(), feature_rows.data()};
    Deduplicator deduplicator(scratch_.data(), kMaxIds, kTables, salt);
    const auto began = std::chrono::steady_clock::now();
    deduplicator.run(crafted.op(), out);
    EXPECT_EQ(out.count, kIds);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  EXPECT_GT(seconds(0), 20 * seconds(0x5bd1e995cafe1234));
}

TEST_F(DeduplicateTest, FillsItsScratchAndNoMore) {
  std::vector<int64_t> ids(kMaxIds / 2);
  std::iota(ids.begin(), ids.end(), 0);
  IdBatch batch;
  batch.add(1, ids);
  batch.add(2, ids);
  expect_equals_reference(batch);
}

}  // namespace
}  // namespace rowtide
