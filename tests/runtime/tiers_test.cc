// Rows on their way through the tiers: small caches, crowded sets, abandoned steps.

#include <gtest/gtest.h>

#include <random>

#include "kernels/directory.h"
#include "tests/support/numbers.h"
#include "tests/support/paired_runtime.h"

namespace rowtide {
namespace {

class TiersTest : public testing::Test {
 protected:
  ScratchDirectory directory_;
};

TEST_F(TiersTest, AThreeRowTableAWholeOneACachedOneAndAColdOneReadNoOthersMemory) {
  RuntimeOptions o = one_table(directory_ / "store", 3);
  o.tables.push_back({.name = "whole", .rows = 70, .width = 4, .placement = Placement::kResident});
  o.tables.push_back({.name = "cached", .rows = 200, .width = 4, .placement = Placement::kCached});
  o.tables.push_back({.name = "cold", .rows = 100000, .width = 4, .placement = Placement::kCached});
  for (uint32_t t : {1, 2, 3}) o.features.push_back({.name = "g", .table = t});
  o.max_ids = 256;
  set_budgets(o, 4000, 4000);
  PairedRuntime paired(o);
  // Every row says whose it is.
  for (uint32_t t = 0; t < 4; ++t) {
    for (int64_t row = 0; row < std::min<int64_t>(200, static_cast<int64_t>(o.tables[t].rows));
         ++row) {
      const std::vector<float> mine(4, static_cast<float>(1000 * t) + static_cast<float>(row));
      const int64_t rows[] = {row};
      ASSERT_TRUE(paired->write_rows(t, rows, mine).ok());
      paired.plain().write(t, row, mine, {});
    }
  }
  std::mt19937_64 random(1);
  for (int n = 0; n < 60; ++n) {
    std::vector<std::vector<std::vector<int64_t>>> bags(4);
    for (int s = 0; s < 40; ++s) {
      bags[0].push_back({static_cast<int64_t>(random() % 3)});
      bags[1].push_back({static_cast<int64_t>(random() % 70)});
      bags[2].push_back({static_cast<int64_t>(random() % 200)});
      bags[3].push_back({n * 40 + s});
    }
    paired.train(batch_of(bags));
  }
  paired.check_digest();
}

TEST_F(TiersTest, RowsThatOverflowTheOnlySetAreTheSameInTheNextBatch) {
  for (int64_t crowd : {32, 33, 34, 63, 64}) {
    RuntimeOptions o = one_table(directory_ / std::to_string(crowd));
    set_budgets(o);
    PairedRuntime paired(o);
    for (int n = 0; n < 4; ++n) {
      paired.train(one_hot(range(0, crowd)));
      paired.train(one_hot(range(crowd - 20, crowd)));  // the last ones stand in transit
      paired.train(one_hot(range(100, 100 + crowd)));
    }
    paired.check_digest();
  }
}

TEST_F(TiersTest, DisjointBatchesOfTwoOpenStepsShareOneSet) {
  RuntimeOptions o = one_table(directory_ / "store");
  o.open_steps = 2;
  set_budgets(o);
  PairedRuntime paired(o);
  ToyBatch before = one_hot(range(0, 64));
  Step first = paired.submit(before);
  paired.forward(first, before);
  for (int64_t n = 1; n < 30; ++n) {
    const ToyBatch batch = one_hot(range(n % 5 * 64, n % 5 * 64 + 64));
    Step next = paired.submit(batch);
    paired.forward(next, batch);  // before the update of the one before
    paired.apply(first, before);
    first = std::move(next);
    before = batch;
  }
  paired.apply(first, before);
  paired.check_digest();
}

TEST_F(TiersTest, AfterAbandonedAndRefusedStepsNothingStaysTaken) {
  RuntimeOptions o = one_table(directory_ / "store");
  o.open_steps = 2;
  set_budgets(o);
  PairedRuntime paired(o);
  for (int64_t n = 0; n < 50; ++n) {
    const ToyBatch batch = one_hot(range(n * 16, n * 16 + 64));
    { Step abandoned = paired.submit(batch); }
    Step step = paired.submit(batch);
    paired.forward(step, batch);
    PlainValues wrong = paired.plain().shaped(batch.view(), 0);
    wrong.pooled.pop_back();
    EXPECT_FALSE(step.backward_and_apply(wrong.gradient(), {}).ok());
    if (n % 3 != 0) step.drop();  // else its destructor
  }
  // With the least budgets and no row in common a single slot too few would be an error.
  for (int64_t n = 0; n < 7; ++n) {
    const int64_t at = n * 128;
    const ToyBatch a = one_hot(range(at, at + 64)), b = one_hot(range(at + 64, at + 128));
    Step first = paired.submit(a), second = paired.submit(b);
    paired.forward(first, a);
    paired.forward(second, b);
    paired.apply(first, a);
    paired.apply(second, b);
  }
  paired.check_digest();
}

TEST_F(TiersTest, KeysMadeToFallIntoOneSetStayCorrect) {
  RuntimeOptions o = one_table(directory_ / "store", 1 << 30);
  set_budgets(o, 40000, 4000);
  PairedRuntime paired(o);
  const DirectoryView wide{.sets = 64,
                           .salt = 11};  // rows of the first set of 64 are of one of few
  std::vector<int64_t> crowd;
  for (int64_t row = 0; crowd.size() < 400; ++row) {
    if (wide.set_of(make_key(0, static_cast<uint64_t>(row))) == 0) crowd.push_back(row);
  }
  std::mt19937_64 random(1);
  for (int n = 0; n < 60; ++n) {
    std::vector<int64_t> ids;
    for (int i = 0; i < 64; ++i) {
      ids.push_back(i % 4 == 0 ? static_cast<int64_t>(random() % 50) : crowd[random() % 400]);
    }
    paired.train(one_hot(ids));
  }
  EXPECT_GT(paired->stats().transit_rows, 0u);
  paired.check_digest();
}

// Weights and state are functions of the key; nothing is ever updated, all is moved about.
void evict_often(const std::string& directory, uint64_t steps) {
  RuntimeOptions o = one_table(directory, 4000, 3);
  o.tables[0].optimizer = OptimizerKind::kAdagrad;
  set_budgets(o, 10000, 20000);
  auto runtime = open_or_fail(o);
  std::vector<int64_t> rows = range(0, 4000);
  std::vector<float> weights, state, out(64 * 3);
  for (int64_t row : rows) {
    for (int d = 0; d < 3; ++d) {
      weights.push_back(static_cast<float>(row * 3 + d));
      state.push_back(static_cast<float>(-row * 5 - d));
    }
  }
  ASSERT_TRUE(runtime->write_rows(0, rows, weights, state).ok());
  std::mt19937_64 random(1);
  for (uint64_t n = 0; n < steps; ++n) {
    std::vector<int64_t> ids;
    for (int i = 0; i < 64; ++i) ids.push_back(static_cast<int64_t>(random() % 4000));
    Step step = std::move(*runtime->submit(one_hot(ids).view()));
    ASSERT_TRUE(step.forward({.pooled = out}).ok());
    for (size_t i = 0; i < ids.size(); ++i) {
      ASSERT_EQ(out[i * 3 + 2], static_cast<float>(ids[i] * 3 + 2)) << "step " << n;
    }
  }
  std::vector<float> weights_after(weights.size()), state_after(state.size());
  ASSERT_TRUE(runtime->read_rows(0, rows, weights_after, state_after).ok());
  EXPECT_EQ(weights_after, weights);
  EXPECT_EQ(state_after, state);
  const Stats stats = runtime->stats();
  EXPECT_GT(stats.ddr_tier.rows_in + stats.ssd_tier.dropped, steps * 30);  // evictions
}

TEST_F(TiersTest, WeightsAndStateBelongToTheirKeyAfterManyEvictions) {
  evict_often(directory_ / "store", 1000);
}
TEST_F(TiersTest, SlowWeightsAndStateBelongToTheirKeyAfterAMillionEvictions) {
  evict_often(directory_ / "store", 30000);
}

TEST_F(TiersTest, AWindowFarBeyondWhatFitsIsBackPressureNotAnError) {
  ToyModel model = ToyModel::make();
  model.options.known_batches = 200;
  model.options.placed_batches = 150;
  RuntimeOptions plain = model.options;
  model.options.ssd = {{directory_ / "store", 64 << 20}};
  set_budgets(model.options);
  auto runtime = open_or_fail(model.options);
  const double sum = train_toy(model, *runtime, {.steps = 300});
  EXPECT_GT(runtime->stats().placed_lowered, 0u);
  auto in_memory = open_or_fail(plain);
  EXPECT_EQ(train_toy(model, *in_memory, {.steps = 300}), sum);
  EXPECT_EQ(digest_of(*runtime), digest_of(*in_memory));
}

}  // namespace
}  // namespace rowtide
