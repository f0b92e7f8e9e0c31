// I5: evaluation changes nothing.

#include <gtest/gtest.h>

#include "tests/support/paired_runtime.h"

namespace rowtide {
namespace {

class EvaluationTest : public testing::Test {
 protected:
  ScratchDirectory directory_;
};

void expect_same_hits(const TierHits& a, const TierHits& b, const std::string& what) {
  EXPECT_EQ(a.hits, b.hits) << what;
  EXPECT_EQ(a.unique_hits, b.unique_hits) << what;
}

void expect_same_hits(const Stats& a, const Stats& b) {
  expect_same_hits(a.hbm, b.hbm, "hbm");
  expect_same_hits(a.ddr, b.ddr, "ddr");
  expect_same_hits(a.ssd, b.ssd, "ssd");
  expect_same_hits(a.fresh, b.fresh, "fresh");
  EXPECT_EQ(a.transit_rows, b.transit_rows);
  EXPECT_EQ(a.rows_on_ssd, b.rows_on_ssd);
  EXPECT_EQ(a.hbm_tier.rows_in, b.hbm_tier.rows_in);
  EXPECT_EQ(a.ddr_tier.rows_in, b.ddr_tier.rows_in);
  EXPECT_EQ(a.ssd_tier.written, b.ssd_tier.written);
  EXPECT_EQ(a.ssd_tier.dropped, b.ssd_tier.dropped);
}

TEST_F(EvaluationTest, I5_PlacementAndDigestAreThoseOfARunWithoutEvaluations) {
  for (const char* policy : {"lookahead", "clock", "lfu"}) {
    ToyModel model = ToyModel::make();
    model.options.policy = policy;
    model.options.known_batches = 6;
    model.options.placed_batches = 2;
    model.options.ssd = {{directory_ / "store", 64 << 20}};
    set_budgets(model.options, 30000, 30000);
    const auto trained = [&](uint64_t evaluate_every, Stats* stats) {
      std::filesystem::remove_all(directory_ / "store");
      auto runtime = open_or_fail(model.options);
      train_toy(model, *runtime, {.steps = 150, .evaluate_every = evaluate_every});
      *stats = runtime->stats();
      return digest_of(*runtime);
    };
    Stats without, with;
    EXPECT_EQ(trained(0, &without), trained(2, &with)) << policy;
    expect_same_hits(without, with);
    EXPECT_GT(without.ssd.hits, 0u);
  }
}

TEST_F(EvaluationTest, I5_RowsThatNoStepNamedStayUnwrittenAndFresh) {
  RuntimeOptions options = one_table(directory_ / "store", 2000);
  options.tables.push_back(
      {.name = "whole", .rows = 50, .width = 4, .placement = Placement::kResident});
  options.features.push_back({.name = "g", .table = 1});
  options.max_ids = 128;
  set_budgets(options);
  PairedRuntime paired(options);
  for (int64_t first = 0; first < 2000; first += 64) {
    const auto ids = range(first, std::min<int64_t>(first + 64, 2000));
    std::vector<std::vector<int64_t>> cached, whole;
    for (int64_t id : ids) {
      cached.push_back({id});
      whole.push_back({id % 50});
    }
    paired.evaluate(batch_of({cached, whole}));
  }
  EXPECT_EQ(digest_of(paired.runtime()), Digest().to_string());
  Stats stats = paired->stats();
  EXPECT_EQ(stats.rows_on_ssd, 0u);
  EXPECT_EQ(stats.hbm.hits + stats.ddr.hits + stats.ssd.hits + stats.fresh.hits, 0u);
  EXPECT_EQ(stats.hbm_tier.rows_in, 0u);
  paired.train(batch_of({{{1}, {2}}, {{3}, {4}}}));
  stats = paired->stats();
  EXPECT_EQ(stats.fresh.hits, 4u);  // looked at is not used
}

TEST_F(EvaluationTest, SeesEveryAppliedStepInEveryTier) {
  RuntimeOptions options = one_table(directory_ / "store", 600);
  set_budgets(options, 0, 5000);
  PairedRuntime paired(options);
  for (int64_t step = 0; step < 40; ++step) {
    paired.train(one_hot(range(step * 13 % 500, step * 13 % 500 + 64)));
    paired.evaluate(one_hot(range(step * 7 % 500, step * 7 % 500 + 64)));  // hot, warm, cold, new
  }
}

TEST_F(EvaluationTest, WhileOneIsOpenAFirstForwardACommitAndAnotherOneAreBusy) {
  RuntimeOptions options = one_table(directory_ / "store");
  options.open_steps = 2;
  set_budgets(options);
  PairedRuntime paired(options);
  const ToyBatch batch = one_hot(range(0, 40)), other = one_hot(range(20, 60));
  Step open = paired.submit(batch), next = paired.submit(other);
  paired.forward(open, batch);
  {
    auto evaluation = paired->evaluate(other.view());
    ASSERT_TRUE(evaluation.ok());
    PlainValues out = paired.plain().shaped(other.view(), 0);
    EXPECT_EQ(next.forward(out.out()).code(), Code::kBusy);
    EXPECT_EQ(paired->commit({}).code(), Code::kBusy);
    EXPECT_EQ(paired->evaluate(other.view()).status().code(), Code::kBusy);
    // Submit, a repeated forward, apply and drop are not.
    Step late = paired.submit(other);
    paired.forward(open, batch);
    paired.apply(open, batch);
    late.drop();
    Evaluation moved = std::move(*evaluation);
    EXPECT_TRUE(moved.forward(out.out()).ok());
    EXPECT_EQ(evaluation->forward(out.out()).code(), Code::kBusy);
  }
  paired.forward(next, other);
  next.drop();
  EXPECT_TRUE(paired->commit({}).ok());
}

TEST_F(EvaluationTest, RowsReadByKeyMeanwhileLeaveItsSlotsAlone) {
  RuntimeOptions options = one_table(directory_ / "store", 600);
  set_budgets(options);
  PairedRuntime paired(options);
  for (int64_t first = 0; first < 576; first += 64) paired.train(one_hot(range(first, first + 64)));
  const ToyBatch cold = one_hot(range(0, 64));
  auto evaluation = paired->evaluate(cold.view());
  ASSERT_TRUE(evaluation.ok());
  for (int64_t row = 64; row < 600; row += 5) paired.check_row(0, row);
  PlainValues out = paired.plain().shaped(cold.view(), -99);
  ASSERT_TRUE(evaluation->forward(out.out()).ok());
  EXPECT_EQ(out.pooled, paired.plain().forward(cold.view()).pooled);
}

TEST_F(EvaluationTest, ReadsRowsThatAnOpenStepHasJustUpdated) {
  RuntimeOptions options = one_table(directory_ / "store");
  options.open_steps = 2;
  set_budgets(options);
  PairedRuntime paired(options);
  const ToyBatch batch = one_hot(range(0, 50));
  Step a = paired.submit(batch), b = paired.submit(batch);
  paired.forward(a, batch);
  paired.forward(b, batch);
  paired.evaluate(batch);
  paired.apply(b, batch);
  paired.evaluate(batch);
  paired.apply(a, batch);
  paired.evaluate(batch);
}

}  // namespace
}  // namespace rowtide
