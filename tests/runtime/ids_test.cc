// I10: ids are hostile.  I4: a row never written costs nothing and has a value.

#include <gtest/gtest.h>

#include <chrono>
#include <climits>
#include <cmath>

#include "runtime/base/host_arena.h"
#include "runtime/base/key.h"
#include "tests/support/numbers.h"
#include "tests/support/paired_runtime.h"

namespace rowtide {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class IdsTest : public testing::Test {
 protected:
  // Three tables side by side in memory: a whole one, and two cached ones of one group.
  RuntimeOptions three_tables() {
    RuntimeOptions o = one_table(directory_ / "store", 100, 4);
    o.tables.insert(o.tables.begin(),
                    {.name = "whole", .rows = 10, .width = 4, .placement = Placement::kResident});
    o.tables.push_back({.name = "next", .rows = 7, .width = 4, .placement = Placement::kCached});
    o.features = {{.name = "w", .table = 0}, {.name = "f", .table = 1}, {.name = "n", .table = 2}};
    return o;
  }
  Status submit_error(PairedRuntime& paired, const ToyBatch& batch) {
    return paired->submit(batch.view()).status();
  }

  ScratchDirectory directory_;
};

TEST_F(IdsTest, I10_AnIdOutOfRangeIsRefusedWithTableSampleAndId) {
  RuntimeOptions o = three_tables();
  set_budgets(o);
  PairedRuntime paired(o);
  const int64_t rows[] = {10, 100, 7};
  for (size_t f = 0; f < 3; ++f) {
    for (int64_t bad :
         {int64_t{-1}, rows[f], rows[f] + 1, INT64_MIN, INT64_MAX, int64_t{1} << 48}) {
      std::vector<std::vector<std::vector<int64_t>>> bags(3, {{1}, {2, 3}, {4, 0}});
      bags[f][1][1] = bad;
      const Status status = submit_error(paired, batch_of(bags));
      EXPECT_EQ(status.code(), Code::kInvalid);
      EXPECT_TRUE(contains(status.message(), "table " + o.tables[f].name + ", sample 1: id " +
                                                 std::to_string(bad) + " is not in [0, " +
                                                 std::to_string(rows[f]) + ")"))
          << status.to_string();
      EXPECT_EQ(paired->evaluate(batch_of(bags).view()).status().code(), Code::kInvalid);
    }
  }
  // A refused batch is no step, and the run goes on.
  EXPECT_EQ(paired->next_step(), 0u);
  paired.train(batch_of({{{9}}, {{99}}, {{6}}}));
  paired.check_digest();
}

TEST_F(IdsTest, I10_SkippedIdsAddNothingAndTouchNoOtherRow) {
  RuntimeOptions o = three_tables();
  o.skip_bad_ids = true;
  o.features[2].pooling = Pooling::kNone;
  o.max_ids = 128;
  set_budgets(o);
  PairedRuntime paired(o);
  const std::vector<int64_t> bad = {-1, 10, 100, 7, 101, INT64_MIN, INT64_MAX, int64_t{1} << 48};
  std::vector<std::vector<int64_t>> only_bad, mixed;
  for (int64_t id : bad) {
    only_bad.push_back({id < 100 && id >= 0 ? 100 : id});
    mixed.push_back({3, only_bad.back()[0], 5});
  }
  paired.train(batch_of({only_bad, only_bad, only_bad}));
  EXPECT_EQ(digest_of(paired.runtime()), Digest().to_string());
  EXPECT_EQ(paired->stats().skipped_ids, 3 * bad.size());
  paired.train(batch_of({mixed, mixed, mixed}));
  paired.evaluate(batch_of({mixed, mixed, mixed}));
  EXPECT_EQ(paired.plain().rows_written(), 6u);  // rows 3 and 5 of each table
  for (uint32_t t = 0; t < 3; ++t) {
    for (int64_t row = 0; row < 7; ++row) paired.check_row(t, row);
  }
  paired.check_digest();
}

TEST_F(IdsTest, I10_ShapesThatDoNotFitTogetherAreRefusedByName) {
  RuntimeOptions o = three_tables();
  o.weighted = true;
  o.features[1].max_ids_per_sample = 1;
  set_budgets(o);
  PairedRuntime paired(o);
  const ToyBatch good = batch_of({{{1}, {2}}, {{3}, {4}}, {{5}, {6}}});
  const auto error_of = [&](auto&& spoil) {
    ToyBatch batch = good;
    spoil(batch);
    return submit_error(paired, batch).to_string();
  };
  EXPECT_TRUE(
      contains(error_of([](auto& b) { b.ids.pop_back(); }), "lengths sum to 6, but there are 5"));
  EXPECT_TRUE(contains(error_of([](auto& b) { b.ids.push_back(1); }), "lengths sum to 6"));
  EXPECT_TRUE(contains(error_of([](auto& b) { b.offsets.pop_back(); }), "offsets: 6 given, 7"));
  EXPECT_TRUE(contains(error_of([](auto& b) { b.offsets[0] = 1; }), "begin with 0"));
  EXPECT_TRUE(contains(error_of([](auto& b) { b.offsets[3] = 1; }),
                       "feature 1 (f), sample 0: offsets fall from 2 to 1"));
  EXPECT_TRUE(
      contains(error_of([](auto& b) { b.offsets[4] = INT64_MIN; }), "feature 1 (f), sample 1"));
  EXPECT_TRUE(contains(error_of([](auto& b) { b.offsets[6] = INT64_MAX; }), "lengths sum to"));
  EXPECT_TRUE(contains(error_of([](auto& b) { b.weights = {1, 2}; }), "2 weights for 6 ids"));
  EXPECT_TRUE(contains(error_of([](auto& b) { b.samples = 65; }), "max_samples is 64"));
  EXPECT_TRUE(contains(error_of([](auto& b) { b.ids.resize(65); }), "max_ids is 64"));
  ToyBatch many = one_hot(range(0, 65));
  EXPECT_TRUE(contains(submit_error(paired, many).message(), "max_samples is 64"));
  // More ids than the feature was announced with.
  many = batch_of({{{}}, {std::vector<int64_t>(64, 1)}, {{}}});
  EXPECT_TRUE(submit_error(paired, many).ok());
  o.max_samples = 8;
  o.ssd[0].directory = directory_ / "other";
  set_budgets(o);
  PairedRuntime small(o);
  EXPECT_TRUE(contains(submit_error(small, many).message(), "feature 1 (f) has 64 ids, at most 8"));
  o.weighted = false;
  o.ssd[0].directory = directory_ / "third";
  PairedRuntime unweighted(o);
  ToyBatch weights = good;
  weights.weights.assign(6, 1);
  EXPECT_TRUE(contains(submit_error(unweighted, weights).message(), "without `weighted`"));
}

TEST_F(IdsTest, EmptyBatchesBagsAndTablesPassThroughEveryCall) {
  RuntimeOptions o = three_tables();
  o.tables.push_back({.name = "nobody", .rows = 5, .width = 4, .placement = Placement::kCached});
  o.features[0].pooling = Pooling::kMean;
  o.features[2].pooling = Pooling::kNone;
  o.gradient_parts = 1;
  set_budgets(o);
  PairedRuntime paired(o);
  ToyBatch nothing;
  nothing.offsets = {0};
  for (const ToyBatch& batch : {nothing, batch_of({{{}, {}}, {{}, {}}, {{}, {}}}),
                                batch_of({{{}, {}}, {{}, {1}}, {{}, {}}}), nothing}) {
    Step step = paired.submit(batch);
    paired.forward(step, batch);
    PlainValues gradient = paired.plain().shaped(batch.view(), 0.5f);
    EXPECT_TRUE(step.backward(gradient.gradient()).ok());
    EXPECT_TRUE(step.apply({}).ok());
    paired.plain().apply(batch.view(), {gradient}, {}, step.number());
    paired.evaluate(batch);
  }
  paired.check_row(3, 4);
  paired.check_digest();
  EXPECT_TRUE(paired->commit({}).ok());
}

TEST_F(IdsTest, AHundredThousandCopiesOfOneIdAreOneUpdateOfTheSummedGradient) {
  std::string first;
  for (int run = 0; run < 5; ++run) {
    RuntimeOptions o = one_table(directory_ / std::to_string(run), 100, 8);
    o.max_ids = 100000;
    o.max_samples = 1000;
    o.threads = 1 + run % 2;
    set_budgets(o);
    PairedRuntime paired(o);
    ToyBatch batch;
    batch.samples = 1000;
    batch.ids.assign(100000, 7);
    for (int64_t s = 0; s <= 1000; ++s) batch.offsets.push_back(s * 100);
    paired.train(batch);
    paired.check_digest();
    EXPECT_EQ(paired.plain().rows_written(), 1u);
    if (run == 0) first = digest_of(paired.runtime());
    EXPECT_EQ(digest_of(paired.runtime()), first);
  }
}

TEST_F(IdsTest, ABagOfOneIdThreeTimesIsThreeTimesTheRowAndOneStep) {
  RuntimeOptions o = one_table(directory_ / "store", 100, 1);
  o.tables[0].optimizer = OptimizerKind::kSgd;
  set_budgets(o);
  auto runtime = open_or_fail(o);
  const int64_t seven[] = {7};
  const float one[] = {1};
  ASSERT_TRUE(runtime->write_rows(0, seven, one).ok());
  const ToyBatch batch = batch_of({{{7, 7, 7}}});
  Step step = std::move(*runtime->submit(batch.view()));
  float out[1], gradient[1] = {0.5f};
  ASSERT_TRUE(step.forward({.pooled = out}).ok());
  EXPECT_EQ(out[0], 3);
  ASSERT_TRUE(step.backward_and_apply({.pooled = gradient}, {.learning_rate = 0.1f}).ok());
  float after[1];
  ASSERT_TRUE(runtime->read_rows(0, seven, after).ok());
  EXPECT_EQ(after[0], 1 - 0.1f * 1.5f);
}

TEST_F(IdsTest, TwoFeaturesOfOneTableAreOneOptimizerStepOfEachRow) {
  RuntimeOptions o = one_table(directory_ / "store", 100, 1);
  o.tables[0].optimizer = OptimizerKind::kAdagrad;
  o.features.push_back({.name = "g", .table = 0});
  set_budgets(o);
  PairedRuntime paired(o);
  const ToyBatch batch = batch_of({{{7}, {8}}, {{8}, {7, 9}}});
  Step step = paired.submit(batch);
  paired.forward(step, batch);
  std::vector<float> gradient = {1, 2, 4, 8};  // (sample, feature)
  ASSERT_TRUE(step.backward_and_apply({.pooled = gradient}, {}).ok());
  const int64_t rows[] = {7, 8, 9};
  float weights[3], state[3];
  ASSERT_TRUE(paired->read_rows(0, rows, weights, state).ok());
  EXPECT_EQ(state[0], 81);  // (1 + 8)^2: not 1 + 64
  EXPECT_EQ(state[1], 36);  // (4 + 2)^2
  EXPECT_EQ(state[2], 64);
}

TEST_F(IdsTest, IdsAroundPowersOfTwoAreRowsOfTheirOwn) {
  RuntimeOptions o = one_table(directory_ / "store", uint64_t{1} << 48, 4);
  set_budgets(o);
  PairedRuntime paired(o);
  std::vector<int64_t> ids;
  for (int bit : {0, 8, 16, 31, 32, 33, 40, 47}) {
    for (int64_t near : {-1, 0, 1}) ids.push_back(std::max<int64_t>(0, (int64_t{1} << bit) + near));
  }
  ids.push_back((int64_t{1} << 48) - 1);
  for (int n = 0; n < 12; ++n) {
    paired.train(one_hot(ids));
    paired.train(one_hot(range(1000 + n * 64, 1064 + n * 64)));  // and out they go
  }
  for (int64_t id : ids) paired.check_row(0, id);
  paired.check_row(0, (int64_t{1} << 35));
  paired.check_digest();
}

TEST_F(IdsTest, TheLastRowOfATableBeyondTwoToThe31ElementsChangesAlone) {
  for (const Placement placement : {Placement::kCached, Placement::kResident}) {
    const bool whole = placement == Placement::kResident;
    RuntimeOptions o = one_table(directory_ / (whole ? "whole" : "cached"), (1 << 21) + 5, 1024);
    o.tables[0].optimizer = OptimizerKind::kSgd;
    o.tables[0].placement = placement;
    o.tables[0].precision = Precision::kBf16;
    o.tables[0].init_scale = 0.5f;
    if (!whole) o.tables[0].rows <<= 10;
    set_budgets(o);
    if (o.hbm_bytes + o.ddr_bytes > available_host_bytes()) GTEST_SKIP() << "needs 5 GB of memory";
    const auto last = static_cast<int64_t>(o.tables[0].rows) - 1;
    PairedRuntime paired(o);
    paired.train(one_hot({last}));
    for (int64_t row : {last, last - 1, int64_t{0}, (last + 1) / 2, last - (1 << 21)}) {
      paired.check_row(0, row);
    }
    paired.check_digest();
  }
}

// With the largest state and with none: records of 2 bytes to 48 KiB.
TEST_F(IdsTest, EveryWidthTrainsInEveryPrecision) {
  int store = 0;
  for (uint32_t width : {1, 2, 3, 5, 7, 13, 100, 1024, 1025, 2048, 4096}) {
    for (const auto precision : {Precision::kFp32, Precision::kFp16, Precision::kBf16}) {
      for (const auto optimizer : {OptimizerKind::kAdam, OptimizerKind::kSgd}) {
        RuntimeOptions o = one_table(directory_ / std::to_string(store++), 200, width);
        o.tables[0].precision = precision;
        o.tables[0].optimizer = optimizer;
        o.max_ids = o.max_samples = 40;
        set_budgets(o);
        PairedRuntime paired(o);
        for (int64_t n = 0; n < 3; ++n) paired.train(one_hot(range(n * 40, n * 40 + 3 + n)));
        paired.train(one_hot(range(0, 40)));  // 40 of one set, some cold by now
        paired.check_digest();
      }
    }
  }
}

TEST_F(IdsTest, BatchSizesAroundEveryBlockEqualThePlainTables) {
  for (uint64_t size : {0, 1, 31, 32, 33, 255, 256, 257, 1023, 1025, 4099}) {
    RuntimeOptions o = one_table(directory_ / std::to_string(size), 3000, 3);
    o.max_ids = o.max_samples = std::max<uint64_t>(size, 1);
    set_budgets(o, 2000, 2000);
    PairedRuntime paired(o);
    for (uint64_t n = 0; n < 3; ++n) {
      std::vector<int64_t> ids;
      for (uint64_t i = 0; i < size; ++i) {
        ids.push_back(static_cast<int64_t>(mix64(i * 3 + n) % 3000));
      }
      paired.train(one_hot(ids));
    }
    paired.check_digest();
  }
}

TEST_F(IdsTest, I4_ABillionRowTableOpensAtOnce) {
  RuntimeOptions o = one_table(directory_ / "store", 1000000000, 64);
  set_budgets(o, 1 << 20, 1 << 20);
  const auto begin = std::chrono::steady_clock::now();
  PairedRuntime paired(o);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  paired.train(one_hot({0, 999999999, 123456789}));
  paired.check_digest();
}

TEST_F(IdsTest, I4_ARowNeverWrittenReadsTheSameAtAnyTimeAndInAnyOrder) {
  RuntimeOptions o = one_table(directory_ / "store", 100000, 4);
  o.tables[0].init_scale = 0.25f;
  set_budgets(o);
  PairedRuntime paired(o);
  std::vector<std::vector<float>> first;
  const std::vector<int64_t> some = {0, 1, 77, 50000, 99999};
  for (int64_t row : some) {
    paired.check_row(0, row);
    for (float w : paired.plain().row(0, row)) EXPECT_LE(std::abs(w), 0.25f);
  }
  for (int64_t n = 0; n < 20; ++n) paired.train(one_hot(range(1000 + n * 64, 1064 + n * 64)));
  Step dropped = paired.submit(one_hot(some));  // looked at and dropped is not written
  paired.forward(dropped, one_hot(some));
  dropped.drop();
  for (int64_t n = 0; n < 20; ++n) paired.train(one_hot(range(5000 + n * 64, 5064 + n * 64)));
  for (size_t i = some.size(); i-- > 0;) paired.check_row(0, some[i]);
  paired.check_digest();
  const uint64_t rows = paired->stats().rows_on_ssd;
  EXPECT_LE(rows, paired.plain().rows_written());
  // The scale belongs to the table, not to its row count.
  RuntimeOptions other = o;
  other.ssd[0].directory = directory_ / "other";
  other.tables[0].rows = 200000;
  set_budgets(other);
  PairedRuntime grown(other);
  EXPECT_EQ(grown.plain().row(0, 77), paired.plain().row(0, 77));
  grown.check_row(0, 77);
}

}  // namespace
}  // namespace rowtide
