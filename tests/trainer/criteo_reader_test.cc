#include "trainer/criteo_reader.h"

#include <gtest/gtest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "tests/support/criteo_files.h"
#include "tests/support/scratch_directory.h"

namespace rowtide {
namespace {

class CriteoReaderTest : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& text) {
    write_file(scratch_.file(name), text);
    return scratch_.file(name);
  }

  ScratchDirectory scratch_;
};

TEST_F(CriteoReaderTest, ReadsWhatThePlainReferenceReads) {
  for (bool has_label : {true, false}) {
    for (const char* end : {"\n", "\r\n"}) {
      const std::string text = random_criteo_text(5000, 7, end, has_label);
      const auto expected = reference_criteo_rows(text, has_label);
      for (const std::string& file : {put("plain", text), put("gz", gzipped(text))}) {
        const Reading reading = read_all(file);
        ASSERT_TRUE(reading.status.ok()) << reading.status.to_string();
        EXPECT_EQ(reading.has_labels, has_label);
        ASSERT_EQ(reading.rows.size(), expected.size());
        for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(reading.rows[i], expected[i]) << i;
      }
    }
  }
}

TEST_F(CriteoReaderTest, TheRealRowsAreReadAsThePlainReferenceReadsThem) {
  const auto text = real_criteo_text();
  if (!text) GTEST_SKIP() << "ROWTIDE_DATA names no folder with the real Criteo rows";
  const Reading reading = read_all(put("real.tsv", *text));
  ASSERT_TRUE(reading.status.ok()) << reading.status.to_string();
  EXPECT_EQ(reading.rows.size(), 1999u);
  EXPECT_EQ(reading.rows, reference_criteo_rows(*text, true));
}

// Labels, integers and ids that are easy to get wrong, worked by hand.
TEST_F(CriteoReaderTest, FieldsMeanWhatTheFormatSays) {
  const std::string line =
      "1\t\t0\t-1\t4095\t4096\t-2147483648\t2147483647\t-0\t007\t99999999\t100000000\t3\t"
      "\tffffffff\t80000000\t\t0\tA\t00000010\t7fffffff" +
      std::string(19, '\t') + "fFfF";
  const Reading reading = read_all(put("hand", line));
  ASSERT_TRUE(reading.status.ok()) << reading.status.to_string();
  const CriteoRow& row = reading.rows.at(0);
  EXPECT_EQ(row.label, 1);
  const std::vector<double> values = {0, 0, 0,        4095,      4096, 0, 2147483647,
                                      0, 7, 99999999, 100000000, 3,    0};
  for (size_t i = 0; i < 13; ++i)
    EXPECT_EQ(row.dense[i], std::log1p(static_cast<float>(values[i]))) << i;
  std::vector<int64_t> ids(26);
  ids[0] = 0xffffffffll, ids[1] = 0x80000000ll, ids[4] = 10, ids[5] = 16, ids[6] = 0x7fffffffll;
  ids[25] = 0xffff;
  EXPECT_EQ(row.ids, ids);
}

TEST_F(CriteoReaderTest, UntransformedIntegersKeepTheirSign) {
  const std::string file = put("raw", "0\t-5\t\t7" + std::string(36, '\t') + "\n");
  const Reading reading = read_all(CriteoReaderOptions{
      .files = {file}, .tables = criteo_tables(), .dense_transform = DenseTransform::kNone});
  ASSERT_TRUE(reading.status.ok()) << reading.status.to_string();
  EXPECT_EQ(reading.rows.at(0).dense[0], -5);
  EXPECT_EQ(reading.rows.at(0).dense[1], 0);
  EXPECT_EQ(reading.rows.at(0).dense[2], 7);
}

TEST_F(CriteoReaderTest, IdsAreMappedToRowsOfTheTables) {
  const std::string text = random_criteo_text(500, 3);
  const auto plain = reference_criteo_rows(text, true);
  const std::string file = put("ids", text);
  for (uint64_t rows : {uint64_t{1}, uint64_t{3}, uint64_t{1000003}, uint64_t{0x80000000},
                        uint64_t{0xffffffff}, uint64_t{1} << 32, (uint64_t{1} << 48) - 1}) {
    for (IdMapping mapping : {IdMapping::kModulo, IdMapping::kHash}) {
      const Reading reading =
          read_all(CriteoReaderOptions{.files = {file}, .tables = criteo_tables(rows, mapping)});
      ASSERT_EQ(reading.rows.size(), plain.size()) << reading.status.to_string();
      for (size_t i = 0; i < plain.size(); ++i) {
        for (size_t f = 0; f < 26; ++f) {
          uint64_t id = static_cast<uint64_t>(plain[i].ids[f]);
          if (mapping == IdMapping::kHash) id = XXH3_64bits(&id, sizeof id);
          ASSERT_EQ(reading.rows[i].ids[f], static_cast<int64_t>(id % rows));
        }
      }
    }
  }
}

TEST_F(CriteoReaderTest, BatchesAreTheSameWhateverTheThreadsAndQueues) {
  const std::string a = put("a.gz", gzipped(random_criteo_text(3000, 1)));
  const std::string b = put("b", random_criteo_text(4321, 5000));
  const Reading expected =
      read_all(CriteoReaderOptions{.files = {a, b}, .tables = criteo_tables(), .batch = 1000});
  EXPECT_EQ(expected.batch_samples,
            (std::vector<uint64_t>{1000, 1000, 1000, 1000, 1000, 1000, 1000, 321, 0}));
  EXPECT_EQ(expected.first_rows,
            (std::vector<uint64_t>{0, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 7321}));
  for (int threads : {0, 2, 16}) {
    for (uint32_t ahead : {0, 1, 9}) {
      const Reading reading = read_all(CriteoReaderOptions{.files = {a, b},
                                                           .tables = criteo_tables(),
                                                           .batch = 1000,
                                                           .threads = threads,
                                                           .batches_ahead = ahead});
      EXPECT_EQ(reading.rows, expected.rows);
      EXPECT_EQ(reading.batch_samples, expected.batch_samples);
      EXPECT_EQ(reading.first_rows, expected.first_rows);
    }
  }
}

TEST_F(CriteoReaderTest, ABatchMayBeLargerThanAllFiles) {
  const std::string file = put("small", random_criteo_text(5, 1));
  const Reading reading = read_all(
      CriteoReaderOptions{.files = {file, file}, .tables = criteo_tables(), .batch = 100000});
  EXPECT_EQ(reading.batch_samples, (std::vector<uint64_t>{10, 0}));
}

TEST_F(CriteoReaderTest, ReadsAnyStretchOfRows) {
  const std::string text = random_criteo_text(6000, 11);
  const std::string a = put("a", text), b = put("b.gz", gzipped(random_criteo_text(3000, 99)));
  for (OnError on_error : {OnError::kFail, OnError::kSkip}) {
    CriteoReaderOptions options{
        .files = {a, b}, .tables = criteo_tables(), .batch = 700, .on_error = on_error};
    const Reading all = read_all(options);
    for (const auto& [first, end] : std::vector<std::pair<uint64_t, uint64_t>>{{0, 1},
                                                                               {0, 700},
                                                                               {699, 2101},
                                                                               {1, 5999},
                                                                               {5999, 6001},
                                                                               {7000, 1 << 20},
                                                                               {8999, 9000},
                                                                               {9000, 9001},
                                                                               {12345, 99999},
                                                                               {5, 5},
                                                                               {5, 3}}) {
      options.first_row = first;
      options.end_row = end;
      const Reading part = read_all(options);
      ASSERT_TRUE(part.status.ok());
      const size_t from = std::min<size_t>(first, all.rows.size());
      const size_t to = std::max(from, std::min<size_t>(end, all.rows.size()));
      EXPECT_EQ(part.rows, std::vector<CriteoRow>(all.rows.begin() + static_cast<ptrdiff_t>(from),
                                                  all.rows.begin() + static_cast<ptrdiff_t>(to)));
      if (to > from) {
        EXPECT_EQ(part.first_rows[0], first);
      }
    }
  }
}

TEST_F(CriteoReaderTest, RepeatsTheEndAndKeepsTheBatchsMemory) {
  const std::string file = put("file", random_criteo_text(2500, 1));
  auto reader = CriteoReader::open(
      CriteoReaderOptions{.files = {file}, .tables = criteo_tables(), .batch = 1000});
  ASSERT_TRUE(reader.ok());
  ClickBatch batch;
  ASSERT_TRUE((*reader)->next(batch).ok());
  const void* const ids = batch.ids.data();
  for (uint64_t samples : {1000, 500, 0, 0}) {
    ASSERT_TRUE((*reader)->next(batch).ok());
    EXPECT_EQ(batch.samples, samples);
    EXPECT_EQ(batch.ids.data(), ids);
  }
}

TEST_F(CriteoReaderTest, MayBeClosedAtAnyTime) {
  const std::string file = put("file", random_criteo_text(20000, 1));
  for (int batches : {0, 1, 5}) {
    auto reader = CriteoReader::open(
        CriteoReaderOptions{.files = {file}, .tables = criteo_tables(), .batch = 64, .threads = 3});
    ASSERT_TRUE(reader.ok());
    ClickBatch batch;
    for (int i = 0; i < batches; ++i) ASSERT_TRUE((*reader)->next(batch).ok());
  }
}

TEST_F(CriteoReaderTest, StatsCountRowsAndBytes) {
  const std::string text = random_criteo_text(3000, 1), packed = gzipped(text);
  const Reading reading = read_all(CriteoReaderOptions{
      .files = {put("a.gz", packed), put("b", text)}, .tables = criteo_tables()});
  EXPECT_EQ(reading.stats.rows, 6000u);
  EXPECT_EQ(reading.stats.bytes, 2 * text.size());
  EXPECT_EQ(reading.stats.file_bytes, packed.size() + text.size());
  EXPECT_EQ(reading.stats.total_file_bytes, packed.size() + text.size());
  EXPECT_EQ(reading.stats.skipped_lines, 0u);
}

// A day of Criteo Terabyte streams through a bounded queue.
TEST_F(CriteoReaderTest, ItsMemoryIsBoundedWhateverTheFiles) {
  const CriteoReaderOptions small{.batch = 2048, .threads = 1};
  const CriteoReaderOptions large{.batch = 65536, .threads = 16};
  EXPECT_LT(CriteoReader::predict_bytes(small), 10u << 20);
  EXPECT_GT(CriteoReader::predict_bytes(large), CriteoReader::predict_bytes(small));
  EXPECT_LT(CriteoReader::predict_bytes(large), 256u << 20);
}

// It fills its queue and stops, however much longer the files are.
TEST_F(CriteoReaderTest, AConsumerThatDoesNotComeLeavesItWaitingWithinItsMemory) {
  const std::string text = random_criteo_text(20000, 1);
  CriteoReaderOptions options{.tables = criteo_tables(), .batch = 64, .threads = 2};
  for (const std::string& file : {put("plain", text), put("packed.gz", gzipped(text))}) {
    options.files.assign(40, file);
    const auto reader = CriteoReader::open(options);
    ASSERT_TRUE(reader.ok());
    const uint64_t memory = CriteoReader::predict_bytes(options);
    ASSERT_GT(40 * text.size(), 4 * memory);
    uint64_t read = 0;
    for (int quiet = 0; quiet < 20;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const uint64_t now = (*reader)->stats().bytes;
      quiet = now == read && now > 0 ? quiet + 1 : 0;
      read = now;
    }
    EXPECT_LE(read, memory) << file;
  }
}

TEST_F(CriteoReaderTest, CountsRowsAsTheyAreNumbered) {
  const std::string text = random_criteo_text(3000, 1) + random_criteo_line(7);
  const std::string bad = "header\n" + text + "\n\nbad\n" + std::string(700000, 'x');
  const auto count = [](std::vector<std::string> files, OnError on_error) {
    return count_criteo_rows(
        {.files = std::move(files), .tables = criteo_tables(), .on_error = on_error});
  };
  const std::string a = put("a.gz", gzipped(text)), b = put("b", text), c = put("c", bad);
  for (OnError on_error : {OnError::kFail, OnError::kSkip}) {
    EXPECT_EQ(count({a, b}, on_error).value(), 6002u);
    EXPECT_EQ(count({scratch_.file("none")}, on_error).status().code(), Code::kNotFound);
  }
  EXPECT_EQ(count({a, c, b}, OnError::kSkip).value(), 9003u);
}

}  // namespace
}  // namespace rowtide
