// Disks that rot, fail, fill up and answer late.

#include <random>

#include "tests/storage/store_fixture.h"

namespace rowtide::storage {
namespace {

using Versions = std::map<Key, uint64_t>;

// A committed store of 500 rows, some rewritten.
Versions fill(StoreTester& t) {
  Versions versions;
  for (Key key = 0; key < 500; ++key) {
    EXPECT_TRUE(t.put(key, 1, 1).ok());
    versions[key] = 1;
  }
  EXPECT_TRUE(t.commit(1, "one").ok());
  for (Key key = 0; key < 500; key += 7) {
    EXPECT_TRUE(t.put(key, 2, 2).ok());
    versions[key] = 2;
  }
  EXPECT_TRUE(t.commit(2, "two").ok());
  return versions;
}

// After one flipped bit: every row is right or says corrupt, or the store names what is wrong.
TEST(ColdStoreFaultsTest, AFlippedBitAnywhereIsNoticedAndNamed) {
  StoreTester t;
  t.options.directories[0].bytes = 1 << 20;
  t.options.tables = {{0, 600}};
  ASSERT_TRUE(t.open().ok());
  const Versions versions = fill(t);
  int refused = 0, corrupt = 0;
  for (const char* file : {"dir/LOG", "dir/MANIFEST", "dir/arrays-2"}) {
    const uint64_t size = t.disk.bytes_of(file);
    ASSERT_GT(size, 0u) << file;
    for (uint64_t at = 0; at < size; at += at < 200 || size < 4096 ? 1 : 211) {
      t.close();
      t.disk.flip_bit(file, at);
      const Status status = t.open();
      if (!status.ok()) {
        ++refused;
        EXPECT_TRUE(status.code() == Code::kCorrupt || status.code() == Code::kFormat ||
                    status.code() == Code::kInvalid)
            << at << " " << status.to_string();
        EXPECT_NE(status.message().find(file), std::string::npos) << status.to_string();
      } else {
        for (const auto& [key, version] : versions) {
          const std::string got = read_row(*t.store, key, 68);
          if (got == "corrupt") ++corrupt;
          ASSERT_TRUE(got == "corrupt" || got == std::to_string(version)) << file << " " << at;
        }
      }
      t.disk.flip_bit(file, at);
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_TRUE(t.open().ok());
  EXPECT_TRUE(holds(*t.store, versions, 501, 68));
}

TEST(ColdStoreFaultsTest, ARottenRecordOfASealedSegmentIsNamedByFileOffsetTableAndRow) {
  StoreTester t;
  t.options.tables = {{4, 10000}};
  ASSERT_TRUE(t.open().ok());
  for (uint64_t row = 0; row < 5000; ++row) ASSERT_TRUE(t.put(make_key(4, row), 1, 1).ok());
  ASSERT_TRUE(t.commit(1).ok());
  // Row 1 lies in slot 2 of the first segment: slot 0 is under the segment's header.
  t.disk.flip_bit("dir/LOG", 4096 + 2 * 88 + 50);
  ASSERT_TRUE(t.open().ok());
  std::vector<std::byte> out(68);
  std::vector<ColdStore::Done> done;
  ASSERT_EQ(t.store->start_read(make_key(4, 1), out.data(), 1), ColdStore::Read::kStarted);
  while (done.empty()) t.store->poll(true, done);
  EXPECT_EQ(done[0].status.code(), Code::kCorrupt);
  for (const char* part : {"dir/LOG", "offset 4272", "table 4", "row 1"}) {
    EXPECT_NE(done[0].status.message().find(part), std::string::npos) << done[0].status.message();
  }
  EXPECT_EQ(read_row(*t.store, make_key(4, 0), 68), "1");
  EXPECT_FALSE(
      t.store->scan([](Key, uint32_t, std::span<const std::byte>) { return Status(); }, nullptr)
          .ok());
}

TEST(ColdStoreFaultsTest, AShorterMissingOrForeignFileIsADistinctError) {
  StoreTester t;
  ASSERT_TRUE(t.open().ok());
  fill(t);
  t.close();
  FakeDisk& disk = t.disk;
  disk.put_file("dir/thesis.txt");
  EXPECT_EQ(t.open().code(), Code::kFormat);
  EXPECT_NE(t.open().message().find("dir/thesis.txt"), std::string::npos);
  ASSERT_TRUE(disk.remove("dir/thesis.txt").ok());
  ASSERT_TRUE(t.open().ok());
  t.close();
  disk.truncate("dir/LOG", disk.bytes_of("dir/LOG") - 1);
  EXPECT_EQ(t.open().code(), Code::kCorrupt);
  EXPECT_NE(t.open().message().find("dir/LOG has"), std::string::npos);
  ASSERT_TRUE(disk.remove("dir/LOG").ok());
  EXPECT_NE(t.open().message().find("dir/LOG is missing"), std::string::npos);
}

TEST(ColdStoreFaultsTest, AMissingOrShortArraysFileIsNamed) {
  StoreTester t;
  ASSERT_TRUE(t.open().ok());
  fill(t);
  t.close();
  t.disk.truncate("dir/arrays-2", t.disk.bytes_of("dir/arrays-2") - 1);
  EXPECT_NE(t.open().message().find("dir/arrays-2 has"), std::string::npos);
  ASSERT_TRUE(t.disk.remove("dir/arrays-2").ok());
  EXPECT_EQ(t.open().code(), Code::kCorrupt);
}

TEST(ColdStoreFaultsTest, FailedReadsAreTriedOnceMoreAndThenReported) {
  StoreTester t;
  ASSERT_TRUE(t.open().ok());
  const Versions versions = fill(t);
  ASSERT_TRUE(t.open().ok());
  t.faults().read_error = 0.3;
  int failed = 0;
  for (const auto& [key, version] : versions) {
    const std::string got = read_row(*t.store, key, 68);
    failed += got == "io error";
    EXPECT_TRUE(got == "io error" || got == std::to_string(version)) << got;
  }
  EXPECT_GT(failed, 10);
  EXPECT_LT(failed, 100);  // 0.3 squared of 500
  t.faults().read_error = 0;
  EXPECT_TRUE(holds(*t.store, versions, 501, 68));
}

TEST(ColdStoreFaultsTest, FailingWritesAndSyncsLoseNothing) {
  StoreTester t;
  ASSERT_TRUE(t.open().ok());
  t.faults() = {.delay = 0.3, .short_transfer = 0.3, .write_error = 0.2, .sync_error = 0.3};
  Versions versions;
  uint32_t epoch = 1, failed_commits = 0;
  for (uint64_t round = 1; round <= 40; ++round) {
    for (Key key = 0; key < 500; ++key) {
      ASSERT_TRUE(t.put(key, round, epoch).ok());
      versions[key] = round;
    }
    Status status = t.commit(epoch);
    for (; !status.ok(); status = t.commit(epoch)) {
      EXPECT_EQ(status.code(), Code::kIo) << status.to_string();
      ++failed_commits;
    }
    ++epoch;
  }
  EXPECT_GT(failed_commits, 0u);
  EXPECT_EQ(t.store->take_write_error().code(), Code::kIo);
  t.faults() = {};
  t.crash();
  ASSERT_TRUE(t.open().ok());
  EXPECT_TRUE(holds(*t.store, versions, 501, 68));
}

// Puts rows `from`, from + 1, ... of `epoch` until the store refuses one.
Status put_until_refused(StoreTester& t, Versions& versions, Key from, uint64_t version,
                         uint32_t epoch) {
  for (Key key = from; key < 100000; ++key) {
    if (Status status = t.put(key, version, epoch); !status.ok()) return status;
    versions[key] = version;
  }
  return {};
}

TEST(ColdStoreFaultsTest, AFullDiskIsNamedLosesNothingAndTheStoreGoesOnOnceThereIsRoom) {
  StoreTester t;
  ASSERT_TRUE(t.open().ok());
  const Versions committed = fill(t);
  t.faults().capacity = 1 << 20;
  Versions versions = committed;
  for (Key from : {250, 300}) {  // over committed rows and new ones; and again while it is full
    const Status status = put_until_refused(t, versions, from, 3, 3);
    ASSERT_EQ(status.code(), Code::kNoSpace);
    EXPECT_NE(status.message().find("the disk is full"), std::string::npos) << status.to_string();
    EXPECT_GT(versions.size(), 5000u);
    EXPECT_TRUE(holds(*t.store, versions, 15000, 68));
  }

  t.crash();  // of what was never committed nothing is left, of the last commit all
  ASSERT_TRUE(t.open().ok());
  EXPECT_EQ(t.store->last_commit().meta, "two");
  EXPECT_TRUE(holds(*t.store, committed, 15000, 68));

  const uint32_t epoch = t.store->next_epoch();
  versions = committed;
  ASSERT_EQ(put_until_refused(t, versions, 250, 4, epoch).code(), Code::kNoSpace);
  t.faults().capacity = 8 << 20;
  std::vector<ColdStore::Done> done;
  t.store->poll(false, done);
  EXPECT_TRUE(holds(*t.store, versions, 15000, 68));
  for (Key more = 5000; more < 20000; ++more) {  // rows that were refused, and others
    ASSERT_TRUE(t.put(more, 5, epoch).ok());
    versions[more] = 5;
  }
  ASSERT_TRUE(t.commit(epoch, "three").ok());
  t.crash();
  ASSERT_TRUE(t.open().ok());
  EXPECT_EQ(t.store->last_commit().meta, "three");
  EXPECT_TRUE(holds(*t.store, versions, 25000, 68));
}

// A flush pads the page it ends in.  Of so many small records that the segment is nearly full, the
// footer of the padded names would begin on the page that the last of them lie on.
TEST(ColdStoreFaultsTest, AFooterNeverCoversRecordsThatAreNotWrittenYet) {
  for (Key count = 1990; count < 2040; ++count) {
    StoreTester t;
    t.options.payload_bytes = {5};
    t.options.tables = {{0, 1 << 30}};
    ASSERT_TRUE(t.open().ok());
    Versions versions;
    const auto put = [&](Key n, uint32_t epoch) {
      const Key key = n << 18;  // a column of four bytes
      ASSERT_TRUE(t.put(key, 1, epoch).ok());
      versions[key] = 1;
    };
    for (Key n = 0; n < 10; ++n) put(n, 1);
    for (Key n = 10; n < count; ++n) put(n, 2);
    t.faults().write_error = 1.0;
    ASSERT_EQ(t.commit(2).code(), Code::kIo);
    t.faults().write_error = 0.0;
    for (Key n = count; n < count + 400; ++n) put(n, 3);
    ASSERT_TRUE(t.commit(3).ok());
    t.crash();
    ASSERT_TRUE(t.open().ok());
    for (const auto& [key, version] : versions) {
      ASSERT_EQ(read_row(*t.store, key, 5), "1") << count << " records, row " << (key >> 18);
    }
  }
}

// Its budget is four times what the disk has.
TEST(ColdStoreFaultsTest, OnAFullDiskTheLogCleansWithinWhatItHas) {
  StoreTester t;
  t.faults().capacity = 1 << 20;
  ASSERT_TRUE(t.open().ok());
  Versions versions;
  for (uint64_t round = 1; round <= 60; ++round) {
    for (Key key = 0; key < 1000; ++key) {
      const Status status = t.put(key, round, 1);
      ASSERT_TRUE(status.ok()) << round << " " << status.to_string();
      versions[key] = round;
    }
  }
  EXPECT_EQ(t.store->take_write_error().code(), Code::kNoSpace);
  EXPECT_TRUE(t.store->take_write_error().ok());  // said once
  ASSERT_TRUE(t.commit(1).ok());
  t.crash();
  ASSERT_TRUE(t.open().ok());
  EXPECT_TRUE(holds(*t.store, versions, 1001, 68));
}

// The log has grown to its budget, and most of it is garbage.
TEST(ColdStoreFaultsTest, ACommitFindsRoomForArraysLargerThanWhatIsFree) {
  StoreTester t;
  t.options.directories.push_back({"dir2", 1 << 20});
  ASSERT_TRUE(t.open().ok());
  Versions versions;
  uint64_t version = 0;
  for (uint32_t epoch = 1; epoch <= 12; ++epoch) {
    for (int round = 0; round < 20; ++round) {
      ++version;
      for (Key key = 0; key < 1000; ++key) ASSERT_TRUE(t.put(key, version, epoch).ok());
    }
    for (Key key = 0; key < 1000; ++key) versions[key] = version;
    CommitContent content{.epoch = epoch};
    const size_t bytes = epoch < 4 ? 1000 : 900000;  // the first large ones come unexpected
    content.arrays = {
        {"dense/w", "uint8", {bytes}, std::vector<std::byte>(bytes, std::byte(epoch))}};
    const Status status = t.store->commit(content);
    ASSERT_TRUE(status.ok()) << epoch << " " << status.to_string();
    EXPECT_LE(t.store->stats().bytes_used, 5u << 20);
  }
  t.crash();
  ASSERT_TRUE(t.open().ok());
  EXPECT_EQ(t.store->last_commit().arrays.at(0).bytes.at(899999), std::byte{12});
  EXPECT_TRUE(holds(*t.store, versions, 1001, 68));
}

TEST(ColdStoreFaultsTest, ADiskThatCannotGrowTheLogIsNotCalledFull) {
  StoreTester t;
  ASSERT_TRUE(t.open().ok());
  Versions versions = fill(t);
  t.faults().allocate_error = 1.0;
  const Status status = put_until_refused(t, versions, 500, 3, 3);
  ASSERT_EQ(status.code(), Code::kIo) << status.to_string();
  EXPECT_NE(status.message().find("the disk fails: dir/LOG"), std::string::npos)
      << status.to_string();
  EXPECT_EQ(status.message().find("the disk is full"), std::string::npos) << status.to_string();
  t.faults().allocate_error = 0.0;
  std::vector<ColdStore::Done> done;
  t.store->poll(false, done);
  ASSERT_TRUE(t.put(50000, versions[50000] = 3, 3).ok());
  EXPECT_TRUE(holds(*t.store, versions, 60000, 68));
}

TEST(ColdStoreFaultsTest, ALogFullOfLiveRowsSaysWhatFillsItAndGoesOnAfterACommit) {
  StoreTester t;
  t.options.directories[0].bytes = 2 << 20;
  ASSERT_TRUE(t.open().ok());
  Versions versions;
  constexpr Key kRows = 7000;  // 0.6 MB of 2; three versions of them are too many
  for (Key key = 0; key < kRows; ++key) ASSERT_TRUE(t.put(key, versions[key] = 1, 1).ok());
  ASSERT_TRUE(t.commit(1).ok());
  for (Key key = 0; key < kRows; ++key) ASSERT_TRUE(t.put(key, versions[key] = 2, 2).ok());
  ASSERT_TRUE(t.commit(2).ok());
  Status status;
  Key key = 0;
  for (; key < kRows && status.ok(); ++key) {
    status = t.put(key, 3, 3);
    if (status.ok()) versions[key] = 3;
  }
  ASSERT_EQ(status.code(), Code::kNoSpace);
  EXPECT_NE(status.message().find("held by commits 1 2"), std::string::npos) << status.message();
  ASSERT_TRUE(t.commit(3).ok());  // commit 1 goes
  for (key = 0; key < kRows; ++key) {
    status = t.put(key, 4, 4);
    if (!status.ok()) break;
    versions[key] = 4;
  }
  EXPECT_GT(key, 1000u) << status.to_string();
  EXPECT_TRUE(holds(*t.store, versions, kRows + 1, 68));
}

TEST(ColdStoreFaultsTest, ANewerWriteWinsOverAReadThatComesBackLate) {
  for (bool still_buffered : {true, false}) {
    StoreTester t;
    ASSERT_TRUE(t.open().ok());
    for (Key key = 0; key < 5000; ++key) ASSERT_TRUE(t.put(key, 1, 1).ok());
    ASSERT_TRUE(t.commit(1).ok());
    t.faults().delay = 1;
    std::vector<std::byte> out(68);
    ASSERT_EQ(t.store->start_read(3, out.data(), 9), ColdStore::Read::kStarted);
    t.store->poll(false, t.ended);
    ASSERT_TRUE(t.put(3, 2, 2).ok());
    t.faults().delay = still_buffered ? 0 : 0.5;
    if (!still_buffered) {
      for (Key key = 5000; key < 9000; ++key) ASSERT_TRUE(t.put(key, 1, 2).ok());
    }
    while (t.ended.empty()) t.store->poll(true, t.ended);
    ASSERT_TRUE(t.ended[0].status.ok());
    EXPECT_EQ(t.ended[0].ticket, 9u);
    EXPECT_EQ(out, payload_of(3, 2, 68));
  }
}

TEST(ColdStoreFaultsTest, AStalledWriterSlowsAppendsAndDropsNone) {
  StoreTester t;
  t.options.write_buffer_bytes = 64 << 10;
  ASSERT_TRUE(t.open().ok());
  t.faults().delay = 0.98;
  Versions versions;
  for (Key key = 0; key < 5000; ++key) ASSERT_TRUE(t.put(key, versions[key] = 1, 1).ok());
  EXPECT_TRUE(holds(*t.store, versions, 5001, 68));
}

TEST(ColdStoreFaultsTest, ReadsOfOnePageInFlightCostOneIo) {
  StoreTester t;
  ASSERT_TRUE(t.open().ok());
  for (Key key = 0; key < 1000; ++key) ASSERT_TRUE(t.put(key, 1, 1).ok());
  ASSERT_TRUE(t.commit(1).ok());
  ASSERT_TRUE(t.open().ok());
  std::vector<std::vector<std::byte>> out(40, std::vector<std::byte>(68));
  std::vector<ColdStore::Done> done;
  for (Key key = 0; key < 40; ++key) {
    ASSERT_EQ(t.store->start_read(key, out[key].data(), key), ColdStore::Read::kStarted);
  }
  while (done.size() < 40) t.store->poll(true, done);
  EXPECT_EQ(t.store->stats().reads, 1u);
  EXPECT_EQ(t.store->stats().reads_joined, 39u);
  for (Key key = 0; key < 40; ++key) EXPECT_EQ(out[key], payload_of(key, 1, 68));
}

}  // namespace
}  // namespace rowtide::storage
