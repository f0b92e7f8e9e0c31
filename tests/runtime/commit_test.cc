// I8: a crash returns to the last commit, whole; and what may change when a store is opened again.

#include <gtest/gtest.h>

#include "tests/support/fake_disk_scope.h"
#include "tests/support/paired_runtime.h"

namespace rowtide {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class CommitTest : public testing::Test {
 protected:
  ToyModel model() {
    ToyModel model = ToyModel::make();
    model.options.known_batches = 6;
    model.options.placed_batches = 2;
    model.options.ssd = {{"store", 64 << 20}};
    set_budgets(model.options, 30000, 30000);
    return model;
  }
  void crash(std::unique_ptr<Runtime>& runtime) {
    runtime.reset();
    scope_.disk.crash();
  }

  FakeDiskScope scope_{1};
};

TEST_F(CommitTest, I8_ARunThatCrashesAndResumesIsTheRunThatNeverStopped) {
  const ToyModel m = model();
  auto runtime = open_or_fail(m.options);
  const double first = train_toy(m, *runtime, {.steps = 60});
  ASSERT_TRUE(runtime->commit({}).ok());
  const double second = train_toy(m, *runtime, {.first = 60, .steps = 60});
  const std::string digest = digest_of(*runtime);
  crash(runtime);

  runtime = open_or_fail(m.options);
  EXPECT_EQ(runtime->next_step(), 60u);
  EXPECT_EQ(runtime->commits(), 1u);
  EXPECT_EQ(train_toy(m, *runtime, {.first = 60, .steps = 60}), second);
  EXPECT_EQ(digest_of(*runtime), digest);
  EXPECT_NE(first, second);
}

TEST_F(CommitTest, I8_TheCallersArraysComeBackWithTheRows) {
  const ToyModel m = model();
  auto runtime = open_or_fail(m.options);
  train_toy(m, *runtime, {.steps = 10});
  const CommitArray dense = {"dense/w", "float32", {2, 1}, std::vector<std::byte>(8, std::byte{7})};
  const CommitArray position = {"position", "uint64", {}, std::vector<std::byte>(8, std::byte{3})};
  ASSERT_TRUE(runtime->commit({dense, position}).ok());
  const auto with_dense = runtime->digest(std::vector{dense}).value().to_string();
  train_toy(m, *runtime, {.first = 10, .steps = 5});
  crash(runtime);
  runtime = open_or_fail(m.options);
  ASSERT_EQ(runtime->arrays().size(), 2u);
  EXPECT_EQ(runtime->arrays()[0].name, "dense/w");
  EXPECT_EQ(runtime->arrays()[0].shape, (std::vector<uint64_t>{2, 1}));
  EXPECT_EQ(runtime->arrays()[1].bytes, position.bytes);
  EXPECT_EQ(runtime->digest(runtime->arrays()).value().to_string(), with_dense);
  EXPECT_NE(digest_of(*runtime), with_dense);
}

TEST_F(CommitTest, I8_BudgetsPoliciesAndPlacementsMayChangeBetweenTheLives) {
  const ToyModel plain = model();
  auto runtime = open_or_fail(plain.options);
  train_toy(plain, *runtime, {.steps = 200});
  const std::string digest = digest_of(*runtime);
  crash(runtime);  // nothing was committed

  ToyModel m = plain;
  for (uint64_t life = 0; life < 4; ++life) {
    m.options.policy = life % 2 == 0 ? "lru" : "lookahead";
    for (size_t t = 0; t < m.options.tables.size(); ++t) {
      m.options.tables[t].placement =
          (t + life) % 3 == 0 ? Placement::kResident : Placement::kCached;
    }
    set_budgets(m.options, 10000 * life, 10000 * (3 - life));
    runtime = open_or_fail(m.options);
    ASSERT_NE(runtime, nullptr);
    train_toy(m, *runtime, {.first = life * 50, .steps = 50});
    ASSERT_TRUE(runtime->commit({}).ok());
    crash(runtime);
  }
  runtime = open_or_fail(m.options);
  EXPECT_EQ(runtime->next_step(), 200u);
  EXPECT_EQ(digest_of(*runtime), digest);
}

TEST_F(CommitTest, TablesAreKnownByNameWhenSomeAreAddedDroppedGrownOrReordered) {
  RuntimeOptions o = one_table("store", 100);
  o.tables.push_back({.name = "u", .rows = 100, .width = 8, .placement = Placement::kCached});
  o.features.push_back({.name = "g", .table = 1});
  set_budgets(o);
  std::vector<float> t_row(4), u_row(8);
  const int64_t rows[] = {5};
  {
    PairedRuntime paired(o);
    paired.train(batch_of({{{5}, {6}}, {{5}, {7}}}));
    ASSERT_TRUE(paired->read_rows(0, rows, t_row).ok());
    ASSERT_TRUE(paired->read_rows(1, rows, u_row).ok());
    ASSERT_TRUE(paired->commit({}).ok());
  }
  // Only u, grown, beside a new table of a third width that comes first.
  RuntimeOptions other = o;
  other.tables = {{.name = "v", .rows = 50, .width = 2, .placement = Placement::kCached},
                  o.tables[1]};
  other.tables[1].rows = 500;
  set_budgets(other);
  {
    auto runtime = open_or_fail(other);
    ASSERT_NE(runtime, nullptr);
    std::vector<float> row(8);
    ASSERT_TRUE(runtime->read_rows(1, rows, row).ok());
    EXPECT_EQ(row, u_row);
    const int64_t far[] = {499};
    ASSERT_TRUE(runtime->write_rows(1, far, row).ok());
    ASSERT_TRUE(runtime->commit({}).ok());
  }
  // All together, in another order.
  o.tables = {other.tables[1], o.tables[0], other.tables[0]};
  o.features.push_back({.name = "h", .table = 2});
  set_budgets(o);
  auto runtime = open_or_fail(o);
  ASSERT_NE(runtime, nullptr);
  std::vector<float> row(8), narrow(4);
  const int64_t far[] = {499};
  ASSERT_TRUE(runtime->read_rows(0, far, row).ok());
  EXPECT_EQ(row, u_row);
  ASSERT_TRUE(runtime->read_rows(1, rows, narrow).ok());
  EXPECT_EQ(narrow, t_row);  // t's rows outlived the life without it
}

TEST_F(CommitTest, ATableOfAnotherShapeIsRefusedByName) {
  RuntimeOptions o = one_table("store", 100);
  set_budgets(o);
  {
    PairedRuntime paired(o);
    paired.train(one_hot({1}));
    ASSERT_TRUE(paired->commit({}).ok());
  }
  const auto error_of = [&](auto&& change) {
    RuntimeOptions other = o;
    change(other);
    other.hbm_bytes += 1 << 20;
    other.ddr_bytes += 1 << 20;
    return Runtime::open(other).status().to_string();
  };
  EXPECT_TRUE(contains(error_of([](auto& r) { r.tables[0].width = 8; }), "table t"));
  EXPECT_TRUE(contains(error_of([](auto& r) { r.tables[0].rows = 99; }), "cannot shrink"));
  EXPECT_TRUE(
      contains(error_of([](auto& r) { r.tables[0].optimizer = OptimizerKind::kSgd; }), "table t"));
  EXPECT_TRUE(contains(error_of([](auto& r) { r.seed = 9; }), "seed"));
}

TEST_F(CommitTest, WithoutAStoreThereIsNoCommit) {
  RuntimeOptions o = one_table("store", 100);
  o.ssd.clear();
  set_budgets(o);
  PairedRuntime paired(o);
  paired.train(one_hot({1, 2}));
  EXPECT_EQ(paired->commit({}).code(), Code::kUnavailable);
  paired.check_digest();
}

TEST_F(CommitTest, ASecondCommitAppendsNothingAndCommittedRowsAreDroppedNotWritten) {
  RuntimeOptions o = one_table("store");
  o.known_batches = o.placed_batches = 0;
  set_budgets(o);
  PairedRuntime paired(o);
  paired.train(one_hot(range(0, 64)));
  ASSERT_TRUE(paired->commit({}).ok());
  const Stats once = paired->stats();
  EXPECT_EQ(once.ssd_tier.rows_in, 64u);
  ASSERT_TRUE(paired->commit({}).ok());
  EXPECT_EQ(paired->commits(), 2u);
  EXPECT_EQ(paired->stats().ssd_tier.rows_in, 64u);
  // Far rows push the first ones out; looked up only, they are themselves clean.
  for (int64_t n = 1; n < 6; ++n) {
    const ToyBatch far = one_hot(range(n * 64, n * 64 + 64));
    Step step = paired.submit(far);
    paired.forward(step, far);
    step.drop();
  }
  const Stats after = paired->stats();
  EXPECT_GE(after.ssd_tier.dropped, once.ssd_tier.dropped + 64);
  EXPECT_EQ(after.ssd_tier.written, once.ssd_tier.written);
  EXPECT_EQ(after.ssd_tier.rows_in, 64u);
  paired.train(one_hot(range(0, 10)));  // dirty again, and nothing else
  ASSERT_TRUE(paired->commit({}).ok());
  EXPECT_EQ(paired->stats().ssd_tier.rows_in, 64u + 10u);
  paired.check_digest();
}

// A commit that fails is tried again, also after more steps; the state is that of the last attempt.
TEST_F(CommitTest, I8_ACommitThatFailedIsContinuedByTheNext) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    scope_.disk.crash();
    FakeDiskScope fresh(seed);
    RuntimeOptions o = one_table("store", 500);
    set_budgets(o, 2000, 2000);
    PlainTables plain(o);
    std::string digest;
    {
      PairedRuntime paired(o);
      paired.train(one_hot(range(0, 60)));
      fresh.disk.faults.sync_error = 0.7;
      for (int64_t n = 1; n < 5; ++n) {
        (void)paired->commit({}).ok();
        paired.train(one_hot(range(n * 50, n * 50 + 60)));
      }
      fresh.disk.faults = {};
      const Status status = paired->commit({});
      ASSERT_TRUE(status.ok()) << status.to_string();
      digest = digest_of(paired.runtime());
      paired.train(one_hot(range(30, 90)));
    }
    fresh.disk.crash();
    auto runtime = open_or_fail(o);
    ASSERT_NE(runtime, nullptr);
    EXPECT_EQ(digest_of(*runtime), digest) << seed;
  }
}

// The log holds the rows and what changes between two commits of 60 steps twice, but not thrice.
TEST_F(CommitTest, ACommitWhenItIsWantedKeepsTheLogFromFillingUp) {
  RuntimeOptions o = one_table("store", 3000, 16);
  o.max_ids = o.max_samples = 200;
  const auto train = [&](Runtime& runtime, bool commits, bool heeds) -> Status {
    std::vector<float> out(200 * 16);
    for (int64_t n = 0; n < 400; ++n) {
      const int64_t first = n * 1777 % 2800;
      Step step = runtime.submit(one_hot(range(first, first + 200)).view()).value();
      ROWTIDE_TRY(step.forward({.pooled = out}));
      ROWTIDE_TRY(step.backward_and_apply({.pooled = out}, {}));
      const bool wanted = heeds && runtime.commit_wanted();
      if (commits && (wanted || n % 60 == 59)) ROWTIDE_TRY(runtime.commit({}));
    }
    return {};
  };
  o.ssd.clear();
  o.tables[0].placement = Placement::kAuto;
  set_budgets(o);
  auto in_memory = open_or_fail(o);
  ASSERT_TRUE(train(*in_memory, false, false).ok());

  o.ssd = {{"store", 1 << 20}};
  o.tables[0].placement = Placement::kCached;
  set_budgets(o);
  const Status full = train(*open_or_fail(o), true, false);
  EXPECT_EQ(full.code(), Code::kNoSpace) << full.to_string();
  EXPECT_TRUE(contains(full.message(), "held by commits")) << full.message();

  scope_.disk.crash();
  const FakeDiskScope fresh(1);
  auto runtime = open_or_fail(o);
  const Status status = train(*runtime, true, true);
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_GT(runtime->commits(), 400u / 60);
  EXPECT_LT(runtime->commits(), 100u);
  EXPECT_EQ(digest_of(*runtime), digest_of(*in_memory));
}

}  // namespace
}  // namespace rowtide
