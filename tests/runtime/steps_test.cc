// The order of calls: what is busy, what may be repeated, what a step leaves behind.

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "tests/support/numbers.h"
#include "tests/support/paired_runtime.h"

namespace rowtide {
namespace {

class StepsTest : public testing::Test {
 protected:
  RuntimeOptions options(uint32_t open_steps = 1) {
    RuntimeOptions o = one_table(directory_ / "store");
    o.open_steps = open_steps;
    set_budgets(o);
    return o;
  }
  // The code of a first forward, whatever it looks up.
  static Code forward_code(PairedRuntime& paired, Step& step, const ToyBatch& batch) {
    PlainValues out = paired.plain().shaped(batch.view(), 0);
    return step.forward(out.out()).code();
  }

  ScratchDirectory directory_;
  const ToyBatch batch_ = one_hot(range(0, 50)), other_ = one_hot(range(30, 80));
};

TEST_F(StepsTest, ForwardGoesInOrderButForDroppedSteps) {
  PairedRuntime paired(options());
  Step a = paired.submit(batch_), b = paired.submit(other_), c = paired.submit(batch_);
  EXPECT_EQ(forward_code(paired, b, other_), Code::kBusy);
  a.drop();
  EXPECT_EQ(forward_code(paired, c, batch_), Code::kBusy);
  paired.forward(b, other_);
  EXPECT_EQ(forward_code(paired, c, batch_), Code::kBusy);  // open_steps is 1
  paired.apply(b, other_);
  paired.forward(c, batch_);
  paired.apply(c, batch_);
  paired.check_digest();
}

TEST_F(StepsTest, ABackwardOrApplyWithoutForwardAndAnythingAfterTheEndAreBusy) {
  PairedRuntime paired(options());
  Step step = paired.submit(batch_);
  PlainValues gradient = paired.plain().shaped(batch_.view(), 1);
  EXPECT_EQ(step.backward(gradient.gradient()).code(), Code::kBusy);
  EXPECT_EQ(step.apply({}).code(), Code::kBusy);
  EXPECT_EQ(step.backward_and_apply(gradient.gradient(), {}).code(), Code::kBusy);
  paired.forward(step, batch_);
  paired.apply(step, batch_);
  Step empty;
  for (Step* ended : {&step, &empty}) {
    EXPECT_EQ(forward_code(paired, *ended, batch_), Code::kBusy);
    EXPECT_EQ(ended->backward(gradient.gradient()).code(), Code::kBusy);
    EXPECT_EQ(ended->apply({}).code(), Code::kBusy);
    EXPECT_EQ(ended->backward_and_apply(gradient.gradient(), {}).code(), Code::kBusy);
    ended->drop();
  }
  EXPECT_EQ(step.number(), 0u);
  paired.check_digest();
}

TEST_F(StepsTest, ArraysOfAnotherShapeAreRefusedAndTheStepStays) {
  RuntimeOptions o = options();
  o.features.push_back({.name = "s", .table = 0, .pooling = Pooling::kNone});
  set_budgets(o);
  PairedRuntime paired(o);
  const ToyBatch batch = batch_of({{{1}, {2}}, {{3}, {4, 5}}});
  Step step = paired.submit(batch);
  PlainValues out = paired.plain().shaped(batch.view(), 0), narrow = out;
  narrow.pooled.pop_back();
  EXPECT_EQ(step.forward(narrow.out()).code(), Code::kInvalid);
  EXPECT_EQ(step.forward({.pooled = out.pooled}).code(), Code::kInvalid);
  paired.forward(step, batch);
  EXPECT_EQ(step.backward_and_apply(narrow.gradient(), {}).code(), Code::kInvalid);
  std::vector<float> three(3);
  EXPECT_EQ(step.backward(out.gradient(), three).code(), Code::kInvalid);
  paired.apply(step, batch);
  paired.check_digest();
}

TEST_F(StepsTest, SubmitBeyondTheKnownWindowIsBusyUntilAStepEnds) {
  RuntimeOptions o = options();
  PairedRuntime paired(o);
  std::vector<Step> steps;
  for (uint32_t n = 0; n <= o.known_batches; ++n) steps.push_back(paired.submit(batch_));
  EXPECT_EQ(paired->submit(batch_.view()).status().code(), Code::kBusy);
  EXPECT_EQ(paired->next_step(), o.known_batches + 1);
  paired.forward(steps[0], batch_);
  EXPECT_EQ(paired->submit(batch_.view()).status().code(), Code::kBusy);
  paired.apply(steps[0], batch_);
  steps.push_back(paired.submit(batch_));
  EXPECT_EQ(steps.back().number(), o.known_batches + 1);
}

TEST_F(StepsTest, RepeatedForwardsSeeTheRowsAsTheyAre) {
  PairedRuntime paired(options(2));
  Step a = paired.submit(batch_), b = paired.submit(other_);
  paired.forward(a, batch_);
  paired.forward(a, batch_);
  paired.forward(b, other_);
  paired.apply(b, other_);
  paired.forward(a, batch_);  // with b's update
  paired.apply(a, batch_);
  paired.check_digest();
}

TEST_F(StepsTest, OpenStepsEndInAnyOrder) {
  for (uint32_t open : {2, 3}) {
    std::filesystem::remove_all(directory_ / "store");
    PairedRuntime paired(options(open));
    for (int64_t n = 0; n < 12; ++n) {
      std::vector<ToyBatch> batches;
      std::vector<Step> steps;
      for (int64_t s = 0; s < open; ++s) {
        batches.push_back(one_hot(range(n * 37 + s * 11, n * 37 + s * 11 + 50)));
        steps.push_back(paired.submit(batches.back()));
      }
      for (size_t s = 0; s < open; ++s) paired.forward(steps[s], batches[s]);
      for (size_t s = 1; s < open; ++s) paired.apply(steps[s], batches[s]);
      paired.apply(steps[0], batches[0]);
    }
    paired.check_digest();
  }
}

TEST_F(StepsTest, AStepTooFarAfterTheOldestOpenOneIsBusyAlsoWhenOthersBetweenHaveEnded) {
  RuntimeOptions o = options(2);
  o.placed_batches = 1;
  set_budgets(o);
  PairedRuntime paired(o);
  Step a = paired.submit(batch_), b = paired.submit(other_), c = paired.submit(batch_);
  paired.forward(a, batch_);
  paired.forward(b, other_);
  paired.apply(b, other_);
  EXPECT_EQ(forward_code(paired, c, batch_), Code::kBusy);
  paired.apply(a, batch_);
  paired.forward(c, batch_);
}

TEST_F(StepsTest, DestroyingOrOverwritingAStepDropsIt) {
  RuntimeOptions o = options();
  PairedRuntime paired(o);
  for (uint32_t n = 0; n < 3 * o.known_batches; ++n) {
    Step step = paired.submit(batch_);
    if (n % 2 == 0) paired.forward(step, batch_);
  }
  Step held = paired.submit(batch_);
  held = paired.submit(other_);
  paired.forward(held, other_);
  Step moved = std::move(held);
  PlainValues gradient = paired.plain().shaped(other_.view(), 1);
  EXPECT_EQ(held.backward_and_apply(gradient.gradient(), {}).code(), Code::kBusy);
  Step& itself = moved;
  moved = std::move(itself);
  paired.apply(moved, other_);
  EXPECT_EQ(paired->stats().steps, 1u);
  paired.check_digest();
  EXPECT_TRUE(paired->commit({}).ok());  // so nothing is open
}

TEST_F(StepsTest, PartsAreSummedInOrderAndOneTooManyIsBusy) {
  RuntimeOptions o = options();
  o.gradient_parts = 2;
  set_budgets(o);
  PairedRuntime paired(o);
  const ToyBatch batch = batch_of({{{1, 2}, {2, 3}, {1}}});
  for (int extra = 0; extra < 2; ++extra) {
    Step step = paired.submit(batch);
    paired.forward(step, batch);
    std::vector<PlainValues> parts;
    for (int p = 0; p < 2; ++p) {
      parts.push_back(paired.plain().shaped(batch.view(), 0));
      parts.back().pooled = random_floats(12, 5 * extra + p);
      ASSERT_TRUE(step.backward(parts.back().gradient()).ok());
    }
    EXPECT_EQ(step.backward(parts[0].gradient()).code(), Code::kBusy);
    if (extra == 1) {  // the fused path brings one more
      parts.push_back(parts[0]);
      ASSERT_TRUE(step.backward_and_apply(parts[0].gradient(), PairedRuntime::kOptions).ok());
    } else {
      ASSERT_TRUE(step.apply(PairedRuntime::kOptions).ok());
    }
    paired.plain().apply(batch.view(), parts, PairedRuntime::kOptions, step.number());
  }
  paired.check_digest();
}

TEST_F(StepsTest, ApplyWithoutAGradientEndsTheStepAndChangesNothing) {
  PairedRuntime paired(options());
  Step step = paired.submit(batch_);
  paired.forward(step, batch_);
  ASSERT_TRUE(step.apply({.weight_decay = 0.5f}).ok());
  EXPECT_EQ(digest_of(paired.runtime()), Digest().to_string());
  paired.train(batch_);
  paired.check_digest();
}

TEST_F(StepsTest, TheCallerMayOverwriteAndFreeItsArraysAtOnce) {
  RuntimeOptions o = options();
  o.weighted = true;
  set_budgets(o);
  PairedRuntime paired(o);
  for (int64_t n = 0; n < 10; ++n) {
    ToyBatch batch = one_hot(range(n * 20, n * 20 + 50));
    batch.weights = random_floats(50, n);
    auto handed = std::make_unique<ToyBatch>(batch);
    Step step = paired.submit(*handed);
    std::fill(handed->ids.begin(), handed->ids.end(), -1);
    std::fill(handed->offsets.begin(), handed->offsets.end(), -1);
    handed.reset();
    paired.forward(step, batch);
    paired.apply(step, batch);
  }
  paired.check_digest();
}

TEST_F(StepsTest, TheGradientOfWeightsIsTheSlopeOfTheOutput) {
  RuntimeOptions o = options();
  o.weighted = true;
  o.gradient_parts = 1;
  o.tables[0].init_scale = 1;
  o.features = {{.name = "sum", .table = 0},
                {.name = "mean", .table = 0, .pooling = Pooling::kMean},
                {.name = "each", .table = 0, .pooling = Pooling::kNone}};
  set_budgets(o);
  PairedRuntime paired(o);
  ToyBatch batch = batch_of({{{1, 2}, {3}}, {{4, 5, 1}, {}}, {{2, 2}, {9}}});
  batch.weights = random_floats(batch.ids.size(), 3);
  PlainValues gradient = paired.plain().shaped(batch.view(), 0);
  gradient.pooled = random_floats(gradient.pooled.size(), 4);
  gradient.sequences[0] = random_floats(gradient.sequences[0].size(), 5);
  const auto loss = [&](const ToyBatch& b) {  // linear in the weights
    const PlainValues out = paired.plain().forward(b.view());
    double sum = 0;
    for (size_t i = 0; i < out.pooled.size(); ++i)
      sum += double{out.pooled[i]} * gradient.pooled[i];
    for (size_t i = 0; i < out.sequences[0].size(); ++i) {
      sum += double{out.sequences[0][i]} * gradient.sequences[0][i];
    }
    return sum;
  };
  std::vector<float> is(batch.ids.size(), -99);
  Step step = paired.submit(batch);
  paired.forward(step, batch);
  ASSERT_TRUE(step.backward(gradient.gradient(), is).ok());
  EXPECT_EQ(first_difference(paired.plain().weights_gradient(batch.view(), {gradient}), is), "");
  for (size_t i = 0; i < is.size(); ++i) {
    ToyBatch up = batch, down = batch;
    up.weights[i] += 0.5f, down.weights[i] -= 0.5f;
    EXPECT_NEAR(is[i], loss(up) - loss(down), 1e-5) << i;
  }
  ASSERT_TRUE(step.backward_and_apply(gradient.gradient(), {}, is).ok());  // summed over parts
  EXPECT_EQ(
      first_difference(paired.plain().weights_gradient(batch.view(), {gradient, gradient}), is),
      "");
}

TEST_F(StepsTest, TheFirstPartThatAsksForTheGradientOfWeightsOverwritesIt) {
  RuntimeOptions o = options();
  o.weighted = true;
  set_budgets(o);
  PairedRuntime paired(o);
  ToyBatch batch = one_hot({1, 2, 3});
  batch.weights = {1, 2, 3};
  Step step = paired.submit(batch);
  paired.forward(step, batch);
  PlainValues gradient = paired.plain().shaped(batch.view(), 0.5f);
  ASSERT_TRUE(step.backward(gradient.gradient()).ok());  // does not ask
  std::vector<float> is(3, -99);
  ASSERT_TRUE(step.backward_and_apply(gradient.gradient(), {}, is).ok());
  EXPECT_EQ(first_difference(paired.plain().weights_gradient(batch.view(), {gradient}), is), "");
}

TEST_F(StepsTest, ARefusedRowIsServedFromTransitAndKeepsItsUpdate) {
  RuntimeOptions o = options();
  {
    std::ofstream profile(directory_ / "profile");
    for (int row = 0; row < 10; ++row) profile << "t:" << row << "\n";
  }
  o.admission = "profile";
  o.profile = directory_ / "profile";
  set_budgets(o, 0, 4000);
  PairedRuntime paired(o);
  for (int64_t n = 0; n < 12; ++n) {
    const int64_t first = 10 + n % 4 * 30;  // gone from transit when its rows come again
    auto ids = range(0, 10);
    for (int64_t id : range(first, first + 30)) ids.push_back(id);
    paired.train(one_hot(ids));
  }
  const Stats stats = paired->stats();
  EXPECT_EQ(stats.transit_rows, 12u * 30u);
  EXPECT_EQ(stats.hbm.hits, 11u * 10u);  // those of the profile stay in their set
  EXPECT_EQ(stats.fresh.hits, 10u + 4u * 30u);
  for (int64_t row = 0; row < 130; ++row) paired.check_row(0, row);
  paired.check_digest();
}

// A reader's thread submits as far as it may; another one trains, evaluates and reads statistics.
TEST_F(StepsTest, BatchesAreSubmittedByOneThreadAndTrainedByAnother) {
  RuntimeOptions o = options();
  o.skip_bad_ids = true;
  set_budgets(o);
  PairedRuntime paired(o);
  constexpr int64_t kSteps = 200;
  const auto batch_at = [](int64_t n) {
    auto ids = range(n * 29 % 900, n * 29 % 900 + 60);
    ids[5] = -1;
    return one_hot(ids);
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Step> steps;
  int64_t ended = 0;
  std::thread reader([&] {
    for (int64_t n = 0; n < kSteps; ++n) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return n - ended <= o.known_batches; });
      lock.unlock();
      Step step = paired.submit(batch_at(n));
      if (n + 1 == kSteps) paired->end_of_input();
      lock.lock();
      steps.push_back(std::move(step));
      changed.notify_all();
    }
  });
  for (int64_t n = 0; n < kSteps; ++n) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !steps.empty(); });
    Step step = std::move(steps.front());
    steps.pop_front();
    lock.unlock();
    paired.forward(step, batch_at(n));
    if (n % 5 == 0) paired.evaluate(batch_at(n + 3));
    paired.apply(step, batch_at(n));
    EXPECT_LE(paired->stats().skipped_ids, static_cast<uint64_t>(kSteps));
    lock.lock();
    ++ended;
    changed.notify_all();
  }
  reader.join();
  EXPECT_EQ(paired->stats().skipped_ids, static_cast<uint64_t>(kSteps));
  paired.check_digest();
}

}  // namespace
}  // namespace rowtide
