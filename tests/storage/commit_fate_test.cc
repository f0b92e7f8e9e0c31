// A commit that fails while its manifest is renamed may be on the disk or not; whatever is done
// afterwards, a crash returns to a whole one.

#include <gtest/gtest.h>

#include "tests/storage/store_fixture.h"

namespace rowtide::storage {
namespace {

constexpr uint64_t kKeys = 50;

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
  void put_all(uint64_t version, uint32_t epoch) {
    for (Key key = 0; key < kKeys; ++key) EXPECT_TRUE(t.put(key, version, epoch).ok());
  }
  void expect_all(uint64_t version) {
    std::map<Key, uint64_t> versions;
    for (Key key = 0; key < kKeys; ++key) versions[key] = version;
    EXPECT_TRUE(holds(*t.store, versions, kKeys, t.bytes_of(0)));
  }

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

}  // namespace
}  // namespace rowtide::storage
