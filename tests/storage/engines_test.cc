// The store on the real disk, through every engine, with records of every kind of size.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <random>

#include "tests/storage/store_fixture.h"
#include "tests/support/io_uring.h"
#include "tests/support/scratch_directory.h"

namespace rowtide::storage {
namespace {

constexpr uint32_t kAllSizes[] = {4, 20, 68, 132, 260, 516, 2052, 16388, 49152};

ColdStoreOptions options_at(const std::string& path, IoEngine engine, uint64_t bytes = 24 << 20) {
  ColdStoreOptions options;
  options.directories = {{path, bytes}};
  options.payload_bytes = {68};
  options.tables = {{0, 100000}};
  options.max_rows = 100000;
  options.write_buffer_bytes = 1 << 20;
  options.reads_in_flight = 32;
  options.engine = engine;
  return options;
}

void put(ColdStore& store, uint32_t type, Key key, uint64_t version, uint32_t epoch,
         uint32_t bytes) {
  const auto payload = payload_of(key, version, bytes);
  std::vector<ColdStore::Done> done;
  for (;;) {
    auto accepted = store.append(type, key, epoch, payload, {});
    ASSERT_TRUE(accepted.ok()) << accepted.status().to_string();
    if (*accepted) return;
    store.poll(true, done);
  }
}

class EnginesTest : public ::testing::TestWithParam<IoEngine> {
 protected:
  void SetUp() override {
    if (GetParam() != IoEngine::kUring) return;
    if (const std::string why = why_no_io_uring(); !why.empty()) GTEST_SKIP() << why;
  }
  std::unique_ptr<ColdStore> open(const ColdStoreOptions& options) {
    auto store = ColdStore::open(options);
    EXPECT_TRUE(store.ok()) << store.status().to_string();
    return store.ok() ? std::move(*store) : nullptr;
  }
  ScratchDirectory scratch_;
};

TEST_P(EnginesTest, RecordsOfEverySizeComeBackBeforeAndAfterReopening) {
  ColdStoreOptions options = options_at(scratch_.path() + "/a", GetParam(), 40 << 20);
  options.directories.push_back({scratch_.path() + "/b", 30 << 20});
  options.payload_bytes.assign(std::begin(kAllSizes), std::end(kAllSizes));
  auto store = open(options);
  ASSERT_NE(store, nullptr);
  std::map<Key, std::pair<uint32_t, uint64_t>> rows;  // type, version
  for (uint64_t round = 1; round <= 2; ++round) {
    for (uint32_t type = 0; type < std::size(kAllSizes); ++type) {
      const uint64_t count = kAllSizes[type] > 3000 ? 40 : 900;
      for (Key key = type * 10000 + round; key < type * 10000 + count; key += round) {
        put(*store, type, key, round, static_cast<uint32_t>(round), kAllSizes[type]);
        rows[key] = {type, round};
      }
    }
    ASSERT_TRUE(store->commit({.epoch = static_cast<uint32_t>(round)}).ok());
  }
  for (bool reopened : {false, true}) {
    if (reopened) {
      store.reset();
      store = open(options);
    }
    ASSERT_NE(store, nullptr);
    for (const auto& [key, row] : rows) {
      ASSERT_EQ(read_row(*store, key, kAllSizes[row.first]), std::to_string(row.second)) << key;
    }
    EXPECT_EQ(store->stats().rows, rows.size());
  }
  const std::string engine = store->engine_name();
  EXPECT_TRUE(GetParam() == IoEngine::kThreads ? engine == "threads" : engine == "io_uring");
  EXPECT_FALSE(store->file_system().empty());
}

TEST_P(EnginesTest, PredictsTheMemoryThatItReserves) {
  for (uint64_t bytes : {uint64_t{4} << 20, uint64_t{64} << 20}) {
    const auto options =
        options_at(scratch_.path() + "/p" + std::to_string(bytes), GetParam(), bytes);
    uint64_t predicted = 0;
    for (const MemoryLine& line : ColdStore::predict(options)) predicted += line.bytes;
    auto store = open(options);
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(store->stats().ddr_reserved, predicted);
    EXPECT_LE(store->stats().ddr_used, predicted);
    // A store that is there keeps its geometry, whatever the new budget.
    auto larger = options;
    larger.directories[0].bytes *= 16;
    store.reset();
    predicted = 0;
    for (const MemoryLine& line : ColdStore::predict(larger)) predicted += line.bytes;
    store = open(larger);
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(store->stats().ddr_reserved, predicted);
  }
}

TEST_P(EnginesTest, ASecondWriterIsRefusedWithThePidOfTheFirst) {
  const auto options = options_at(scratch_.path(), GetParam());
  auto store = open(options);
  ASSERT_NE(store, nullptr);
  const auto second = ColdStore::open(options);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kLocked);
  EXPECT_NE(second.status().message().find(std::to_string(getpid())), std::string::npos);
}

// The child process commits and is killed; what it committed is there and its lock is not.
TEST_P(EnginesTest, AWriterKilledAfterItsCommitLeavesTheCommitAndNoLock) {
  const auto options = options_at(scratch_.path(), GetParam());
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto store = ColdStore::open(options);
    if (!store.ok()) _exit(1);
    for (Key key = 0; key < 2000; ++key) put(**store, 0, key, 5, 1, 68);
    if (!(*store)->commit({.epoch = 1, .meta = "kept"}).ok()) _exit(2);
    for (Key key = 0; key < 2000; ++key) put(**store, 0, key, 6, 2, 68);
    if (write(ready[1], "x", 1) != 1) _exit(3);
    pause();
    _exit(0);
  }
  char byte = 0;
  close(ready[1]);
  const ssize_t told = read(ready[0], &byte, 1);
  const auto locked = ColdStore::open(options);
  kill(child, SIGKILL);
  int code = 0;
  waitpid(child, &code, 0);
  close(ready[0]);
  ASSERT_EQ(told, 1) << "the child ended with " << WEXITSTATUS(code);
  ASSERT_FALSE(locked.ok());
  EXPECT_NE(locked.status().message().find(std::to_string(child)), std::string::npos);
  auto store = open(options);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->last_commit().meta, "kept");
  for (Key key = 0; key < 2000; ++key) ASSERT_EQ(read_row(*store, key, 68), "5");
}

TEST_P(EnginesTest, AReaderSeesItsCommitBesideARunningWriterThatCleans) {
  auto options = options_at(scratch_.path(), GetParam(), 4 << 20);
  auto store = open(options);
  ASSERT_NE(store, nullptr);
  // Rows that stay lie between rows that go: their segments are worth cleaning.
  for (Key key = 0; key < 10000; ++key) put(*store, 0, key, 1, 1, 68);
  for (Key key = 0; key < 10000; ++key) {
    if (key % 3 != 0) put(*store, 0, key, 1, 1, 68);
  }
  ASSERT_TRUE(store->commit({.epoch = 1}).ok());
  auto reading = options;
  reading.read_only = true;
  auto reader = open(reading);
  ASSERT_NE(reader, nullptr);
  std::mt19937_64 random(1);
  Key newest = 0;
  for (uint64_t version = 2; version <= 40; ++version) {
    for (int i = 0; i < 3000; ++i) {
      newest = random() % 9000;
      put(*store, 0, newest, version, static_cast<uint32_t>(version), 68);
    }
    ASSERT_TRUE(store->commit({.epoch = static_cast<uint32_t>(version)}).ok());
  }
  EXPECT_GT(store->stats().records_cleaned, 0u);
  for (Key key = 0; key < 10000; key += 7) ASSERT_EQ(read_row(*reader, key, 68), "1") << key;
  uint64_t rows = 0;
  const Status status = reader->scan(
      [&](Key, uint32_t, std::span<const std::byte>) {
        ++rows;
        return Status();
      },
      nullptr);
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(rows, 10000u);
  EXPECT_EQ(reader->last_commit().epoch, 1u);
  reader = open(reading);
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(reader->last_commit().epoch, 40u);
  EXPECT_EQ(read_row(*reader, newest, 68), "40");
}

TEST_P(EnginesTest, FilesOfAnythingElseAreRefusedAndLeftAlone) {
  std::ofstream(scratch_.path() + "/thesis.txt") << "chapter one";
  const auto refused = ColdStore::open(options_at(scratch_.path(), GetParam()));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kFormat);
  EXPECT_NE(refused.status().message().find("thesis.txt"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() + "/LOG"));
}

TEST_P(EnginesTest, ADirectoryThatCannotBeMadeIsNamed) {
  std::ofstream(scratch_.path() + "/file") << "in the way";
  const auto refused = ColdStore::open(options_at(scratch_.path() + "/file/store", GetParam()));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("/file/store"), std::string::npos)
      << refused.status().to_string();
}

INSTANTIATE_TEST_SUITE_P(Engines, EnginesTest,
                         ::testing::Values(IoEngine::kUring, IoEngine::kThreads),
                         [](const auto& info) {
                           return std::string(info.param == IoEngine::kUring ? "uring" : "threads");
                         });

}  // namespace
}  // namespace rowtide::storage
