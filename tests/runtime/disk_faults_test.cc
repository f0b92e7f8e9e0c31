// I6: nothing is lost, whatever the disk does.

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>

#include "tests/support/fake_disk_scope.h"
#include "tests/support/numbers.h"
#include "tests/support/paired_runtime.h"

namespace rowtide {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class DiskFaultsTest : public testing::Test {
 protected:
  RuntimeOptions options(uint64_t rows = 2000, uint32_t width = 4) {
    RuntimeOptions o = one_table("store", rows, width);
    set_budgets(o);
    return o;
  }
  // Trains and commits in a life of its own, so that nothing is in memory any more.
  PlainTables trained_before(const ToyBatch& batch) {
    PlainTables plain(options());
    {
      PairedRuntime paired(options());
      paired.train(batch);
      EXPECT_TRUE(paired->commit({}).ok());
      plain = paired.plain();
    }
    EXPECT_TRUE(scope_.disk.remove("store/HINTS").ok());  // or the next life would read them
    return plain;
  }
  // Where the log holds this row's weights and state; 0: nowhere.
  uint64_t offset_of_row(const std::string& path, const std::vector<float>& row) {
    const auto bytes = scope_.disk.read_file(path).value();
    const auto record = std::as_bytes(std::span(row));
    const auto at = std::search(bytes.begin(), bytes.end(), record.begin(), record.end());
    return at == bytes.end() ? 0 : static_cast<uint64_t>(at - bytes.begin());
  }
  // Rows far away, so that all that was trained before goes down to the log.
  void push_out(PairedRuntime& paired) {
    for (int64_t n = 0; n < 6; ++n) paired.train(one_hot(range(1000 + n * 64, 1064 + n * 64)));
  }
  // The step's forward until it works; what it said at first.
  Status forward_in_the_end(PairedRuntime& paired, Step& step, const ToyBatch& batch) {
    PlainValues out = paired.plain().shaped(batch.view(), 0);
    const Status first = step.forward(out.out());
    if (!first.ok()) {
      scope_.disk.faults = {};
      paired.forward(step, batch);
    }
    return first;
  }

  static ToyBatch batch_at(int64_t n) { return one_hot(range(n * 64, n * 64 + 64)); }
  // Trains steps *n, *n + 1, ... of ever new rows, calling `before` each, until a forward fails.
  // That step is then the n-th and waits in refused_.
  template <typename Before>
  Status train_until_refused(PairedRuntime& paired, int64_t* n, Before&& before) {
    for (; *n < 400; ++*n) {
      before();
      const ToyBatch batch = batch_at(*n);
      refused_ = paired.submit(batch);
      PlainValues out = paired.plain().shaped(batch.view(), 0);
      if (Status status = refused_->forward(out.out()); !status.ok()) return status;
      paired.forward(*refused_, batch);
      paired.apply(*refused_, batch);
    }
    return {};
  }

  // Trains until the disk is full, and drops the step that it refused.
  void drop_refused_step(PairedRuntime& paired) {
    scope_.disk.faults.capacity = 8 << 20;
    int64_t n = 0;
    EXPECT_EQ(train_until_refused(paired, &n, [] {}).code(), Code::kNoSpace);
    refused_->drop();
  }

  FakeDiskScope scope_{1};
  std::optional<Step> refused_;  // must not outlive its runtime
};

TEST_F(DiskFaultsTest, I6_AFailedReadFailsTheStepByNameAndTheRowIsReadAgain) {
  const ToyBatch cold = one_hot(range(0, 64));
  const PlainTables before = trained_before(cold);
  PairedRuntime paired(options());
  paired.plain() = before;
  scope_.disk.faults.read_error = 1;
  Step step = paired.submit(cold);
  const Status status = forward_in_the_end(paired, step, cold);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_TRUE(contains(status.message(), "table 0, row ")) << status.to_string();
  paired.apply(step, cold);
  paired.check_digest();
}

TEST_F(DiskFaultsTest, I6_AVoidRowThatIsDroppedOrPushedOutLeavesTheLogsRecord) {
  const ToyBatch cold = one_hot(range(0, 64));
  const PlainTables before = trained_before(cold);
  PairedRuntime paired(options());
  paired.plain() = before;
  scope_.disk.faults.read_error = 1;
  {
    Step step = paired.submit(cold);
    PlainValues out = paired.plain().shaped(cold.view(), 0);
    EXPECT_EQ(step.forward(out.out()).code(), Code::kIo);
    EXPECT_EQ(paired->evaluate(cold.view()).status().code(), Code::kIo);
  }
  scope_.disk.faults = {};
  push_out(paired);
  paired.train(cold);
  paired.evaluate(cold);
  paired.check_digest();
}

// The rows of the trained batch, as the log's first segment holds them.
TEST_F(DiskFaultsTest, I6_ARottenRecordIsNamedAndOnlyStepsThatNeedItFail) {
  const ToyBatch cold = one_hot(range(0, 64)), others = one_hot(range(10, 64));
  const PlainTables before = trained_before(cold);
  PairedRuntime paired(options());
  paired.plain() = before;
  const uint64_t at = offset_of_row("store/LOG", before.row(0, 5));
  ASSERT_NE(at, 0u);
  scope_.disk.flip_bit("store/LOG", at);
  Step step = paired.submit(cold);
  PlainValues out = paired.plain().shaped(cold.view(), 0);
  for (int tries = 0; tries < 3; ++tries) {
    const Status status = step.forward(out.out());
    EXPECT_EQ(status.code(), Code::kCorrupt) << status.to_string();
    for (const char* part : {"store/LOG", "table 0", "row 5"}) {
      EXPECT_TRUE(contains(status.message(), part)) << status.to_string();
    }
  }
  step.drop();
  for (int64_t row = 0; row < 64; ++row) {
    if (row != 5) paired.check_row(0, row);
  }
  std::vector<float> weights(4);
  EXPECT_EQ(paired->read_rows(0, std::vector<int64_t>{5}, weights).code(), Code::kCorrupt);
  EXPECT_EQ(paired->evaluate(cold.view()).status().code(), Code::kCorrupt);
  paired.train(others);
  push_out(paired);
  paired.train(others);
  ASSERT_TRUE(paired->commit({}).ok());
  EXPECT_EQ(paired->digest().status().code(), Code::kCorrupt);
  scope_.disk.flip_bit("store/LOG", at);  // as if it had never been
  paired.train(cold);
  paired.check_digest();
}

// An open reads the resident rows and what was in memory, in one pass or row by row.
TEST_F(DiskFaultsTest, I6_ARottenRecordKeepsAStoreFromOpeningOnlyIfItsRowIsResident) {
  for (const uint64_t beyond : {0, 200000}) {
    scope_.disk.crash();
    FakeDiskScope fresh(1);
    RuntimeOptions o = options();
    o.tables.push_back({.name = "whole", .rows = 9, .width = 4, .placement = Placement::kResident});
    o.features.push_back({.name = "w", .table = 1});
    set_budgets(o, beyond, beyond);
    const std::vector<std::vector<int64_t>> bags = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}};
    PlainTables before(o);
    {
      PairedRuntime paired(o);
      paired.train(batch_of({bags, bags}));
      for (int64_t n = 0; n < 80; ++n) {  // so that the segment of those rows is full and sealed
        if (n % 40 == 0) {
          ASSERT_TRUE(paired->commit({}).ok());
        }
        std::vector<std::vector<int64_t>> others(64);
        for (int64_t i = 0; i < 64; ++i) others[i] = {100 + (n * 64 + i) % 1900};
        paired.train(batch_of({others, std::vector<std::vector<int64_t>>(64)}));
      }
      ASSERT_TRUE(paired->commit({}).ok());
      before = paired.plain();
    }
    const auto bytes = fresh.disk.read_file("store/LOG").value();
    const auto flip = [&](uint32_t table) {
      const std::vector<float> row = before.row(table, 5);
      const auto record = std::as_bytes(std::span(row));
      const auto at = std::search(bytes.begin(), bytes.end(), record.begin(), record.end());
      fresh.disk.flip_bit("store/LOG", static_cast<uint64_t>(at - bytes.begin()));
    };
    flip(0);
    {
      PairedRuntime paired(o);
      paired.plain() = before;
      for (int64_t row = 0; row < 9; ++row) paired.check_row(1, row);
      paired.check_row(0, 4);
      std::vector<float> weights(4);
      EXPECT_EQ(paired->read_rows(0, std::vector<int64_t>{5}, weights).code(), Code::kCorrupt);
    }
    flip(0);
    flip(1);
    const Status resident = Runtime::open(o).status();
    EXPECT_EQ(resident.code(), Code::kCorrupt);
    EXPECT_TRUE(contains(resident.message(), "row 5")) << resident.message();
    flip(1);
    EXPECT_EQ(digest_of(*open_or_fail(o)), before.digest());
  }
}

TEST_F(DiskFaultsTest, I6_ADiskThatOnlyFailsIsAnErrorByNameAndTheStepGoesOnOnceItWorks) {
  RuntimeOptions o = options(1 << 20, 1024);
  std::vector<std::string> said;
  std::mutex mutex;
  o.log = [&](const std::string& line) {
    std::lock_guard lock(mutex);
    said.push_back(line);
  };
  PairedRuntime paired(o);
  paired.train(one_hot(range(0, 64)));
  paired->stats();
  scope_.disk.faults.write_error = 1;
  Status failed;
  for (int64_t n = 1; n < 200 && failed.ok(); ++n) {  // more than the write buffer takes
    const ToyBatch batch = one_hot(range(n * 64, n * 64 + 64));
    Step step = paired.submit(batch);
    failed = forward_in_the_end(paired, step, batch);
    paired.apply(step, batch);
  }
  EXPECT_EQ(failed.code(), Code::kIo) << failed.to_string();
  EXPECT_TRUE(contains(failed.message(), "store/LOG")) << failed.to_string();
  {
    std::lock_guard lock(mutex);
    EXPECT_FALSE(said.empty());
  }
  for (int64_t n = 0; n < 8; ++n) paired.train(one_hot(range(n * 64, n * 64 + 64)));
  paired.check_digest();
}

TEST_F(DiskFaultsTest, I6_ALogThatIsFullSaysSoWithNumbersAndALargerOneGoesOnFromTheCommit) {
  RuntimeOptions o = options(1 << 20, 1024);
  o.ssd[0].bytes = 24 << 20;
  set_budgets(o);
  PlainTables committed(o);
  int64_t steps_committed = 0;
  {
    PairedRuntime paired(o);
    int64_t n = 0;
    const Status full = train_until_refused(paired, &n, [&] {
      if (n != 30) return;
      ASSERT_TRUE(paired->commit({}).ok());
      committed = paired.plain();
      steps_committed = n;
    });
    EXPECT_EQ(full.code(), Code::kNoSpace);
    EXPECT_TRUE(contains(full.message(), "the log is full")) << full.to_string();
    const Stats stats = paired->stats();  // are there also now
    EXPECT_EQ(stats.steps, static_cast<uint64_t>(n));
    EXPECT_GT(stats.ssd_tier.bytes_used, 0u);
    refused_->drop();
    EXPECT_EQ(paired->commit({}).code(), Code::kNoSpace);
  }
  ASSERT_GT(steps_committed, 0);
  scope_.disk.crash();
  o.ssd[0].bytes = 64 << 20;
  set_budgets(o);
  PairedRuntime paired(o);
  paired.plain() = committed;
  paired.check_digest();
  for (int64_t n = steps_committed; n < 60; ++n) paired.train(batch_at(n));
  paired.check_digest();
}

TEST_F(DiskFaultsTest, I6_AFullDiskIsAnErrorByNameAndTheStepGoesOnOnceThereIsRoom) {
  PairedRuntime paired(options(1 << 20, 1024));
  scope_.disk.faults.capacity = 8 << 20;
  for (int64_t n = 0, times = 0; times < 3; ++times) {  // it fills up again and again
    const Status full = train_until_refused(paired, &n, [] {});
    EXPECT_EQ(full.code(), Code::kNoSpace);
    EXPECT_TRUE(contains(full.message(), "store/LOG: no space left")) << full.to_string();
    EXPECT_EQ(paired->stats().steps, static_cast<uint64_t>(n + times));
    EXPECT_EQ(paired->digest().status().code(), Code::kNoSpace);
    scope_.disk.faults.capacity = (16 << 20) + (times << 23);
    Step same = std::move(*refused_);  // the step that was refused, with all its rows
    paired.forward(same, batch_at(n));
    paired.apply(same, batch_at(n++));
    paired.train(batch_at(3));  // rows of long ago; one step more than n
    paired.evaluate(batch_at(1));
    paired.check_digest();
  }
}

TEST_F(DiskFaultsTest, I6_AfterTheRefusedStepIsDroppedSubmitSaysWhyItWaitsAndGoesOn) {
  RuntimeOptions o = options(1 << 20, 1024);
  o.known_batches = o.placed_batches = 0;
  PairedRuntime paired(o);
  drop_refused_step(paired);
  const ToyBatch batch = batch_at(1);
  while (paired->submit(batch.view()).ok())
    continue;  // and dropped: until none can be seen any more
  for (int tries = 0; tries < 100; ++tries) {
    EXPECT_EQ(paired->submit(batch.view()).status().code(), Code::kNoSpace);
  }
  scope_.disk.faults.capacity = ~uint64_t{0};
  Result<Step> step = paired->submit(batch.view());
  while (!step.ok()) {
    std::this_thread::yield();
    step = paired->submit(batch.view());
  }
  paired.forward(*step, batch);
  paired.apply(*step, batch);
  paired.check_digest();
}

TEST_F(DiskFaultsTest, I6_AStepThatWasRefusedBeforeItWasPlacedIsBusyDuringAnEvaluation) {
  RuntimeOptions o = options(1 << 20, 1024);
  o.known_batches = o.placed_batches = 1;
  PairedRuntime paired(o);
  drop_refused_step(paired);
  const ToyBatch batch = batch_at(1);
  Step step = paired.submit(batch);
  PlainValues out = paired.plain().shaped(batch.view(), 0);
  EXPECT_EQ(step.forward(out.out()).code(), Code::kNoSpace);
  scope_.disk.faults.capacity = ~uint64_t{0};
  {
    auto evaluation = paired->evaluate(batch.view());
    ASSERT_TRUE(evaluation.ok()) << evaluation.status().to_string();
    EXPECT_EQ(step.forward(out.out()).code(), Code::kBusy);
  }
  paired.forward(step, batch);
  paired.apply(step, batch);
  paired.check_digest();
}

// Steps go on while the commit waits for room, and the commit that comes at last has them all.
TEST_F(DiskFaultsTest, I8_ACommitOnAFullDiskIsRefusedAndTheOneBeforeStaysWhole) {
  for (const bool crashes : {false, true}) {
    for (const uint64_t pages : {0, 8, 9, 10}) {  // none; the arrays take 9, the manifest 1
      FakeDiskScope scope(1);
      RuntimeOptions o = options();
      const std::vector<CommitArray> arrays = {
          {"dense/w", "uint8", {33000}, std::vector<std::byte>(33000)}};
      std::string digest;
      {
        PairedRuntime paired(o);
        paired.train(batch_at(0));
        ASSERT_TRUE(paired->commit({}).ok());
        digest = digest_of(paired.runtime());
        paired.train(batch_at(1));
        paired->stats();  // the mover rests
        scope.disk.faults.capacity = scope.disk.bytes_taken() + pages * 4096;
        const Status refused = paired->commit(arrays);
        EXPECT_EQ(refused.code(), pages < 10 ? Code::kNoSpace : Code::kOk) << refused.to_string();
        paired.train(batch_at(2));
        EXPECT_EQ(paired->commits(), pages < 10 ? 1u : 2u);
        paired.check_digest();
        if (pages == 10) continue;
        if (!crashes) {
          scope.disk.faults.capacity = ~uint64_t{0};
          const Status status = paired->commit(arrays);
          ASSERT_TRUE(status.ok()) << status.to_string();
          digest = digest_of(paired.runtime());
        }
        paired.train(batch_at(3));
      }
      scope.disk.crash();
      auto runtime = open_or_fail(o);
      ASSERT_NE(runtime, nullptr);
      EXPECT_EQ(runtime->arrays().size(), crashes ? 0u : 1u);
      EXPECT_EQ(digest_of(*runtime), digest);
    }
  }
}

TEST_F(DiskFaultsTest, I6_RowsOfACommitThatTheFullDiskRefusedAreAppendedByTheNext) {
  RuntimeOptions o = one_table("store", 4000, 128);
  set_budgets(o, 1 << 20, 2 << 20);  // 2.1 MB of rows: none goes down before the commit
  std::string digest;
  {
    PairedRuntime paired(o);
    scope_.disk.faults.capacity = 1 << 20;
    for (int64_t n = 0; n < 62; ++n) paired.train(batch_at(n));
    ASSERT_EQ(paired->stats().ssd_tier.rows_in, 0u);
    for (int tries = 0; tries < 3; ++tries) {
      EXPECT_EQ(paired->commit({}).code(), Code::kNoSpace);
      EXPECT_GT(paired->stats().ssd_tier.rows_in, 200u);
      paired.train(batch_at(tries));
      paired.check_digest();
    }
    scope_.disk.faults.capacity = ~uint64_t{0};
    const Status status = paired->commit({});
    ASSERT_TRUE(status.ok()) << status.to_string();
    paired.check_digest();
    digest = paired.plain().digest();
    EXPECT_EQ(paired->stats().rows_on_ssd, 62u * 64u);
  }
  scope_.disk.crash();
  EXPECT_EQ(digest_of(*open_or_fail(o)), digest);
}

TEST_F(DiskFaultsTest, I6_ADelayedReadNeverOvertakesANewerWriteOfTheRow) {
  RuntimeOptions o = options();
  PairedRuntime paired(o);
  const ToyBatch cold = one_hot(range(0, 64));
  paired.train(cold);
  push_out(paired);
  ASSERT_TRUE(paired->commit({}).ok());
  scope_.disk.faults.delay = 0.95;
  for (int round = 0; round < 20; ++round) {
    { Step dropped = paired.submit(cold); }  // its reads may still be on their way
    std::vector<float> weights(64 * 4, static_cast<float>(round));
    const auto rows = range(0, 64);
    ASSERT_TRUE(paired->write_rows(0, rows, weights).ok());
    for (int64_t row : rows) paired.plain().write(0, row, std::vector<float>(4, round), {});
    paired.evaluate(cold);
    push_out(paired);
  }
  paired.check_digest();
}

TEST_F(DiskFaultsTest, I3_EveryDelayAndTornTransferGivesTheSameBits) {
  std::string first;
  for (double delay : {0.0, 0.5, 0.95}) {
    FakeDiskScope disk(7);
    ToyModel model = ToyModel::make();
    model.options.known_batches = 12;
    model.options.placed_batches = 8;
    model.options.ssd = {{"store", 64 << 20}};
    set_budgets(model.options, 20000, 20000);
    auto runtime = open_or_fail(model.options);
    disk.disk.faults = {.delay = delay, .short_transfer = delay / 2};
    train_toy(model, *runtime, {.steps = 150, .evaluate_every = 5, .commit_every = 20});
    if (first.empty()) first = digest_of(*runtime);
    EXPECT_EQ(digest_of(*runtime), first) << delay;
  }
}

}  // namespace
}  // namespace rowtide
