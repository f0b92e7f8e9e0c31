#include "storage/cold_store.h"

#include "tests/storage/store_fixture.h"

namespace rowtide::storage {
namespace {

TEST(ColdStoreTest, AnAppendedRowIsReadableAtOnceAndAfterItsWrite) {
  StoreTester t;
  ASSERT_TRUE(t.open().ok());
  ASSERT_TRUE(t.put(7, 1, 1).ok());
  EXPECT_EQ(read_row(*t.store, 7, 68), "1");
  EXPECT_EQ(t.store->stats().reads, 0u);
  for (Key key = 100; key < 10000; ++key) ASSERT_TRUE(t.put(key, 2, 1).ok());
  EXPECT_EQ(read_row(*t.store, 7, 68), "1");
  EXPECT_EQ(t.store->stats().reads, 1u);
  EXPECT_EQ(read_row(*t.store, 8, 68), "absent");
  EXPECT_EQ(t.store->stats().reads, 1u);
}

TEST(ColdStoreTest, ACommitComesBackWholeAfterACrash) {
  StoreTester t;
  ASSERT_TRUE(t.open().ok());
  EXPECT_EQ(t.store->next_epoch(), 1u);
  std::map<Key, uint64_t> committed;
  for (Key key = 0; key < 3000; ++key) {
    ASSERT_TRUE(t.put(key, key % 90, 1).ok());
    committed[key] = key % 90;
  }
  ASSERT_TRUE(t.commit(1, "first").ok());
  for (Key key = 0; key < 3000; key += 3) ASSERT_TRUE(t.put(key, 150, 2).ok());
  EXPECT_EQ(read_row(*t.store, 3, 68), "150");
  t.crash();
  const Status status = t.open();
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(t.store->last_commit().epoch, 1u);
  EXPECT_EQ(t.store->last_commit().meta, "first");
  ASSERT_EQ(t.store->last_commit().arrays.size(), 1u);
  EXPECT_EQ(t.store->last_commit().arrays[0].bytes[2], std::byte{1});
  EXPECT_GE(t.store->next_epoch(), 2u);
  EXPECT_TRUE(holds(*t.store, committed, 3001, 68));
}

TEST(ColdStoreTest, ASecondCommitWritesNoRecords) {
  StoreTester t;
  ASSERT_TRUE(t.open().ok());
  for (Key key = 0; key < 1000; ++key) ASSERT_TRUE(t.put(key, 1, 1).ok());
  ASSERT_TRUE(t.commit(1).ok());
  const uint64_t written = t.disk.bytes_written();
  ASSERT_TRUE(t.commit(2).ok());
  EXPECT_EQ(t.disk.bytes_written(), written);
}

TEST(ColdStoreTest, EpochsThatGoBackAndKeysOutsideTheTablesAreRefused) {
  StoreTester t;
  ASSERT_TRUE(t.open().ok());
  ASSERT_TRUE(t.put(1, 1, 3).ok());
  EXPECT_EQ(t.commit(2).code(), Code::kInvalid);  // row 1 would be above its commit
  ASSERT_TRUE(t.store->begin_commit(3).ok());
  ASSERT_TRUE(t.put(1, 2, 4).ok());
  EXPECT_EQ(t.put(1, 3, 3).code(), Code::kInvalid);
  EXPECT_EQ(t.put(2, 3, 2).code(), Code::kInvalid);
  ASSERT_TRUE(t.put(2, 3, 3).ok());
  ASSERT_TRUE(t.commit(3).ok());
  EXPECT_EQ(t.commit(3).code(), Code::kInvalid);
  EXPECT_EQ(t.put(2, 3, 3).code(), Code::kInvalid);
  EXPECT_EQ(t.put(make_key(0, 100000), 1, 4).code(), Code::kInvalid);
  EXPECT_EQ(t.put(make_key(9, 0), 1, 4).code(), Code::kInvalid);
  EXPECT_FALSE(t.store->contains(make_key(9, 0)));
  t.crash();
  ASSERT_TRUE(t.open().ok());
  EXPECT_TRUE(holds(*t.store, {{1, 1}, {2, 3}}, 5, 68));
}

TEST(ColdStoreTest, RecordTypesMayBeAddedButNotChanged) {
  StoreTester t;
  ASSERT_TRUE(t.open().ok());
  ASSERT_TRUE(t.put(1, 1, 1).ok());
  ASSERT_TRUE(t.commit(1).ok());
  t.options.payload_bytes = {72};
  EXPECT_EQ(t.open().code(), Code::kInvalid);
  t.options.payload_bytes = {68, 132};
  ASSERT_TRUE(t.open().ok());
  ASSERT_TRUE(t.put(2, 5, 2, 1).ok());
  EXPECT_EQ(read_row(*t.store, 1, 68), "1");
  EXPECT_EQ(read_row(*t.store, 2, 132), "5");
}

TEST(ColdStoreTest, RewritingAThousandRowsVeryOftenKeepsTheSsdUseBounded) {
  StoreTester t;
  ASSERT_TRUE(t.open().ok());
  for (uint32_t round = 1; round <= 300; ++round) {
    for (Key key = 0; key < 1000; ++key) {
      const Status status = t.put(key, round, 1 + round / 10);
      ASSERT_TRUE(status.ok()) << round << " " << status.to_string();
    }
    if (round % 10 != 9) continue;
    ASSERT_TRUE(t.commit(1 + round / 10).ok());
  }
  EXPECT_LE(t.store->stats().bytes_used, t.options.directories[0].bytes);
  EXPECT_EQ(read_row(*t.store, 999, 68, 1000), "300");
  std::map<Key, uint64_t> versions;
  for (Key key = 0; key < 1000; ++key) versions[key] = 300;
  EXPECT_TRUE(holds(*t.store, versions, 1001, 68));
}

// The worst split leaves all but a byte of a segment over in each directory.
TEST(ColdStoreTest, TheLeastBudgetSufficesHoweverItIsShared) {
  for (const std::vector<uint32_t>& types :
       std::vector<std::vector<uint32_t>>{{68}, {1, 68, 516}, {49152}}) {
    for (size_t count : {1, 2, 5}) {
      ColdStoreOptions o{.payload_bytes = types, .max_rows = 1000};
      for (size_t d = 0; d < count; ++d) o.directories.push_back({"unused", 0});
      const uint64_t least = ColdStore::judge_budget(o).least_bytes;
      const uint64_t segment =
          Layout::of({.directories = {{"unused", least}}, .payload_bytes = types, .max_rows = 1000},
                     0)
              .value()
              .segment_bytes;
      for (size_t d = 1; d < count; ++d) o.directories[d].bytes = kPageBytes + segment - 1;
      o.directories[0].bytes = least - (count - 1) * (kPageBytes + segment - 1);
      EXPECT_TRUE(ColdStore::judge_budget(o).status.ok()) << count;
      --o.directories[0].bytes;
      const Status less = ColdStore::judge_budget(o).status;
      EXPECT_EQ(less.code(), Code::kNoSpace) << count;
      EXPECT_NE(less.message().find(std::to_string(least)), std::string::npos) << less.message();
    }
  }
}

}  // namespace
}  // namespace rowtide::storage
