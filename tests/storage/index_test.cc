#include "storage/index.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace rowtide::storage {
namespace {

struct Case {
  const char* name;
  std::vector<TableRows> tables;
  uint64_t rows, records;
  uint64_t salt = 0;
};

class IndexTest : public ::testing::TestWithParam<Case> {
 protected:
  // A key of the domain, from two random numbers.
  static Key key_of(const Case& c, uint64_t a, uint64_t b) {
    if (c.tables.empty()) return a % 4 == 0 ? b : make_key(a % 7, b % 1000);
    const TableRows& table = c.tables[a % c.tables.size()];
    return make_key(table.table, b % table.rows);
  }
};

TEST_P(IndexTest, IsExactUpToItsLastRow) {
  const Case& c = GetParam();
  const KeyDomain domain(c.tables);
  auto index = Index::create(domain, c.rows, c.records, c.salt);
  ASSERT_TRUE(index.ok());
  std::mt19937_64 random(1);
  std::unordered_map<Key, uint64_t> expected;
  for (uint64_t i = 0; expected.size() < c.rows; ++i) {
    const uint64_t a = random(), b = random();
    const Key key = key_of(c, a, b);
    const uint64_t record = random() % c.records;
    ASSERT_TRUE(index->set(domain.number(key), record)) << expected.size();
    expected[key] = record;
    if (i > 20 * c.rows) break;  // a small domain takes long to fill by chance
  }
  EXPECT_EQ(index->rows(), expected.size());
  for (const auto& [key, record] : expected) ASSERT_EQ(index->find(domain.number(key)), record);
  for (int i = 0; i < 100000; ++i) {
    const uint64_t a = random(), b = random();
    const Key key = key_of(c, a, b);
    const auto it = expected.find(key);
    ASSERT_EQ(index->find(domain.number(key)), it == expected.end() ? kNoRecord : it->second);
  }
}

TEST_P(IndexTest, TakesAtMostNineBytesForEachRowOfGivenTables) {
  const Case& c = GetParam();
  if (c.tables.empty()) GTEST_SKIP() << "open 64-bit keys cost more";
  const IndexShape shape = IndexShape::of(KeyDomain(c.tables).bits(), c.rows, c.records);
  EXPECT_LE(shape.bytes(), c.rows * 9 + 8 * 64);
}

INSTANTIATE_TEST_SUITE_P(
    Domains, IndexTest,
    ::testing::Values(Case{"one_row", {{0, 1}}, 1, 1}, Case{"few_rows", {{3, 50}}, 50, 60},
                      Case{"all_rows_fit", {{0, 50000}, {2, 3}, {9, 100000}}, 150003, 400000},
                      Case{"few_of_many", {{0, 1ull << 40}, {1, 1ull << 20}}, 100000, 100000},
                      Case{"few_of_all", {{0, 1ull << 48}, {65000, 1ull << 48}}, 30000, 1 << 20},
                      Case{"many_records", {{0, 1ull << 33}}, 100000, 1ull << 36},
                      Case{"any_key", {}, 100000, 200000},
                      Case{"salted", {{0, 1ull << 33}, {1, 7}}, 100000, 100000, 0x9d5bf2a7c3e14680},
                      Case{"salted_any_key", {}, 100000, 200000, 0x9d5bf2a7c3e14680}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(IndexTest, NeedsNineBytesAtMostWhateverTheSizes) {
  for (int domain_bits = 10; domain_bits <= 54; ++domain_bits) {
    for (int row_bits = 8; row_bits <= std::min(domain_bits, 34); ++row_bits) {
      const uint64_t rows = (uint64_t{1} << row_bits) * 3 / 4;
      for (uint64_t records : {rows, rows * 3, rows * 16}) {
        const IndexShape shape = IndexShape::of(domain_bits, rows, records);
        ASSERT_LE(shape.bytes(), rows * 9 + 8 * 64) << domain_bits << " " << rows << " " << records;
      }
    }
  }
}

TEST(IndexTest, RefusesMoreRowsThanItWasMadeFor) {
  const KeyDomain domain(std::vector<TableRows>{{0, 1000}});
  auto index = Index::create(domain, 10, 10, /*salt=*/0);
  ASSERT_TRUE(index.ok());
  for (uint64_t row = 0; row < 10; ++row) ASSERT_TRUE(index->set(row, row));
  EXPECT_FALSE(index->set(10, 3));
  EXPECT_TRUE(index->set(9, 3));
  EXPECT_EQ(index->find(9), 3u);
}

}  // namespace
}  // namespace rowtide::storage
