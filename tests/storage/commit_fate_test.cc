// A commit that fails while its manifest is renamed may be on the disk or not; whatever is done
// afterwards, a crash returns to a whole one.

#include <gtest/gtest.h>

#include "tests/storage/store_fixture.h"

namespace rowtide::storage {
namespace {

constexpr uint64_t kKeys = 50;

void put_all(StoreTester& t, uint64_t version, uint32_t epoch) {
  for (Key key = 0; key < kKeys; ++key) EXPECT_TRUE(t.put(key, version, epoch).ok());
}

void expect_all(StoreTester& t, uint64_t version) {
  std::map<Key, uint64_t> versions;
  for (Key key = 0; key < kKeys; ++key) versions[key] = version;
  EXPECT_TRUE(holds(*t.store, versions, kKeys, t.bytes_of(0)));
}

// Epoch 1 is committed with version 1, epoch 2 fails at the n-th change, with version 2.
struct FailedCommit {
  FailedCommit(uint64_t seed, uint64_t changes) : t(seed) {
    EXPECT_TRUE(t.open().ok());
    put_all(1, 1);
    EXPECT_TRUE(t.commit(1).ok());
    put_all(2, 2);
    t.disk.freeze_after(changes);
    status = t.commit(2, "first");
    t.disk.freeze_after(~uint64_t{0} >> 1);  // and thaws
  }
  void put_all(uint64_t version, uint32_t epoch) { rowtide::storage::put_all(t, version, epoch); }
  void expect_all(uint64_t version) { rowtide::storage::expect_all(t, version); }

  StoreTester t;
  Status status;
};

TEST(CommitFateTest, NothingWrittenAfterwardsBelongsToIt) {
  int there = 0, absent = 0;
  for (uint64_t changes = 0; changes < 12; ++changes) {
    for (uint64_t seed = 1; seed < 8; ++seed) {
      FailedCommit failed(seed, changes);
      if (failed.status.ok()) continue;
      failed.put_all(3, failed.t.store->next_epoch());
      failed.t.crash();
      ASSERT_TRUE(failed.t.open().ok());
      const uint32_t epoch = failed.t.store->last_commit().epoch;
      failed.expect_all(epoch);
      ++(epoch == 2 ? there : absent);
    }
  }
  EXPECT_GT(there, 0);
  EXPECT_GT(absent, 0);
}

TEST(CommitFateTest, TheNextCommitIsTheNewestAndAllItsFilesVerify) {
  for (uint64_t changes = 0; changes < 12; ++changes) {
    for (uint64_t seed = 1; seed < 8; ++seed) {
      FailedCommit failed(seed, changes);
      if (failed.status.ok()) continue;
      const uint32_t epoch = failed.t.store->next_epoch();
      failed.put_all(3, epoch);
      failed.t.disk.freeze_after(failed.t.disk.changes() % 9);  // this one may fail as well
      const Status next = failed.t.commit(epoch, "second");
      failed.t.crash();
      const Status opened = failed.t.open();
      ASSERT_TRUE(opened.ok()) << opened.to_string();
      const CommitContent& last = failed.t.store->last_commit();
      failed.expect_all(last.meta == "second" ? 3 : last.epoch);
      if (next.ok()) {
        EXPECT_EQ(last.meta, "second");
      }
    }
  }
}

TEST(CommitFateTest, RowsOfBothFatesStayWhileTheLogIsCleaned) {
  for (uint64_t seed = 1; seed < 6; ++seed) {
    for (uint64_t changes = 0; changes < 12; ++changes) {
      FailedCommit failed(seed, changes);
      if (failed.status.ok() || failed.t.store->next_epoch() == 2) continue;
      for (uint64_t version = 3; version < 400; ++version) {  // the log is filled many times over
        for (Key key = 1000; key < 1200; ++key) {
          ASSERT_TRUE(failed.t.put(key, version, 3).ok());
        }
        if (version < 6) failed.put_all(version, 3);
      }
      failed.t.crash();
      ASSERT_TRUE(failed.t.open().ok());
      failed.expect_all(failed.t.store->last_commit().epoch);
    }
  }
}

// The arrays take one page of the disk and the manifest another one.
TEST(CommitFateTest, AFullDiskLeavesTheLastCommitWholeAndTriesDoNotFillItFurther) {
  for (uint64_t pages : {0, 1}) {
    for (bool crashes : {false, true}) {
      StoreTester t;
      ASSERT_TRUE(t.open().ok());
      put_all(t, 1, 1);
      ASSERT_TRUE(t.commit(1, "first").ok());
      put_all(t, 2, 2);
      const uint64_t taken = t.disk.bytes_taken(), counted = t.store->stats().bytes_used;
      t.faults().capacity = taken + pages * kPageBytes;
      for (int tries = 0; tries < 20; ++tries) {
        const Status status = t.commit(t.store->next_epoch(), "second");
        ASSERT_EQ(status.code(), Code::kNoSpace) << status.to_string();
        const std::string file = pages == 0 ? "dir/arrays-" : "dir/MANIFEST";
        ASSERT_NE(status.message().find(file), std::string::npos) << status.to_string();
      }
      EXPECT_LE(t.store->stats().bytes_used, counted + 1000);  // the arrays of one try
      expect_all(t, 2);
      if (crashes) {
        t.crash();
        ASSERT_TRUE(t.open().ok());
        EXPECT_EQ(t.store->last_commit().meta, "first");
        expect_all(t, 1);
        t.faults().capacity = ~uint64_t{0};
        put_all(t, 2, t.store->next_epoch());
      }
      t.faults().capacity = (crashes ? t.disk.bytes_taken() : taken) + 2 * kPageBytes;
      const Status status = t.commit(t.store->next_epoch(), "second");
      ASSERT_TRUE(status.ok()) << status.to_string();
      t.crash();
      ASSERT_TRUE(t.open().ok());
      EXPECT_EQ(t.store->last_commit().meta, "second");
      expect_all(t, 2);
    }
  }
}

}  // namespace
}  // namespace rowtide::storage
