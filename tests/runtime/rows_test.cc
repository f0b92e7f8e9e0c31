// read_rows and write_rows: rows by key, wherever they stand.

#include <gtest/gtest.h>

#include "tests/support/numbers.h"
#include "tests/support/paired_runtime.h"

namespace rowtide {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Kind {
  Precision precision;
  OptimizerKind optimizer;
  Placement placement;
};

class RowsTest : public testing::TestWithParam<Kind> {
 protected:
  RuntimeOptions options() {
    RuntimeOptions o = one_table(directory_ / "store", 400, 5);
    o.tables[0].precision = GetParam().precision;
    o.tables[0].optimizer = GetParam().optimizer;
    o.tables[0].placement = GetParam().placement;
    set_budgets(o, 0, 6000);
    return o;
  }
  // Values that no initial row has, and that 16 bits hold exactly.
  static std::vector<float> values(size_t count, int64_t row) {
    std::vector<float> v(count);
    for (size_t i = 0; i < count; ++i)
      v[i] = static_cast<float>(row) + 0.5f * static_cast<float>(i);
    return v;
  }
  void write(PairedRuntime& paired, int64_t row) {
    const size_t state_floats = paired.plain().row(0, row).size() - 5;
    const auto weights = values(5, row), state = values(state_floats, row + 1);
    const int64_t rows[] = {row};
    const Status status = paired->write_rows(0, rows, weights, state);
    ASSERT_TRUE(status.ok()) << status.to_string();
    paired.plain().write(0, row, weights, state);
  }

  ScratchDirectory directory_;
};

TEST_P(RowsTest, AreReadInEveryTierWithTheirState) {
  PairedRuntime paired(options());
  for (int64_t n = 0; n < 6; ++n) paired.train(one_hot(range(n * 60, n * 60 + 60)));
  for (int64_t row = 0; row < 400; ++row) paired.check_row(0, row);  // hot, warm, cold, new
  std::vector<int64_t> twice = {7, 7, 399, 0, 7};
  std::vector<float> weights(25);
  ASSERT_TRUE(paired->read_rows(0, twice, weights).ok());  // without state
  for (size_t i = 0; i < twice.size(); ++i) {
    const auto expected = paired.plain().row(0, twice[i]);
    for (size_t d = 0; d < 5; ++d) EXPECT_EQ(weights[i * 5 + d], expected[d]);
  }
}

TEST_P(RowsTest, AreReadWhileStepsAreSubmittedAndOpen) {
  PairedRuntime paired(options());
  const ToyBatch batch = one_hot(range(0, 60)), later = one_hot(range(100, 160));
  Step open = paired.submit(batch), ahead = paired.submit(later);
  paired.forward(open, batch);
  for (int64_t row : {0, 59, 100, 159, 300}) paired.check_row(0, row);
  paired.apply(open, batch);
  for (int64_t row : {0, 59, 100, 159, 300}) paired.check_row(0, row);
  paired.forward(ahead, later);
}

TEST_P(RowsTest, WrittenRowsAreReadTrainedAndDigestedInEveryTier) {
  PairedRuntime paired(options());
  for (int64_t n = 0; n < 5; ++n) paired.train(one_hot(range(n * 60, n * 60 + 60)));
  for (int64_t row = 0; row < 400; row += 3) write(paired, row);
  for (int64_t row = 0; row < 400; ++row) paired.check_row(0, row);
  paired.check_digest();
  for (int64_t n = 0; n < 8; ++n) paired.train(one_hot(range(n * 47 % 340, n * 47 % 340 + 60)));
  for (int64_t row = 0; row < 400; ++row) paired.check_row(0, row);
  paired.check_digest();
}

TEST_P(RowsTest, WithoutStateStartItAnew) {
  PairedRuntime paired(options());
  paired.train(one_hot({1, 2, 3}));
  const int64_t rows[] = {2, 3};
  auto weights = values(5, 20);
  const auto more = values(5, 30);
  weights.insert(weights.end(), more.begin(), more.end());
  ASSERT_TRUE(paired->write_rows(0, rows, weights).ok());
  paired.plain().write(0, 2, values(5, 20), {});
  paired.plain().write(0, 3, values(5, 30), {});
  for (int64_t row : {1, 2, 3}) paired.check_row(0, row);
  paired.train(one_hot({1, 2, 3}));
  paired.check_digest();
}

TEST_P(RowsTest, AreNotWrittenUnderASubmittedStep) {
  PairedRuntime paired(options());
  const int64_t rows[] = {2};
  Step step = paired.submit(one_hot({1}));
  EXPECT_EQ(paired->write_rows(0, rows, values(5, 2)).code(), Code::kBusy);
  step.drop();
  EXPECT_TRUE(paired->write_rows(0, rows, values(5, 2)).ok());
}

TEST_P(RowsTest, ThatAreNotThereAreRefusedByName) {
  PairedRuntime paired(options());
  std::vector<float> weights(5);
  for (int64_t row : {int64_t{-1}, int64_t{400}, INT64_MAX, INT64_MIN}) {
    const int64_t rows[] = {row};
    const Status status = paired->read_rows(0, rows, weights);
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_TRUE(contains(status.message(), "table t: row " + std::to_string(row)));
    EXPECT_EQ(paired->write_rows(0, rows, weights).code(), Code::kInvalid);
  }
  const int64_t rows[] = {1};
  EXPECT_TRUE(contains(paired->read_rows(3, rows, weights).message(), "table 3 of 1"));
  EXPECT_TRUE(contains(paired->read_rows(0, rows, std::span(weights).first(4)).message(),
                       "need 5 weights"));
  EXPECT_TRUE(paired->read_rows(0, {}, {}).ok());
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, RowsTest,
    testing::Values(Kind{Precision::kFp32, OptimizerKind::kRowwiseAdagrad, Placement::kCached},
                    Kind{Precision::kFp16, OptimizerKind::kAdam, Placement::kCached},
                    Kind{Precision::kBf16, OptimizerKind::kSgd, Placement::kCached},
                    Kind{Precision::kFp32, OptimizerKind::kAdagrad, Placement::kResident}),
    [](const auto& info) { return std::to_string(info.index); });

// A table that no feature names, alone with its record size: it has no sets and no batch's slots.
TEST(RowsOfAloneTableTest, AreReadWrittenAndCommittedToo) {
  const ScratchDirectory directory;
  RuntimeOptions o = one_table(directory / "store", 400, 5);
  o.tables.push_back({.name = "alone", .rows = 1000, .width = 7, .placement = Placement::kCached});
  set_budgets(o, 0, 6000);
  std::string digest;
  {
    PairedRuntime paired(o);
    paired.train(one_hot(range(0, 60)));
    paired.check_row(1, 999);
    const std::vector<float> weights(7, 2.5f), state(paired.plain().row(1, 0).size() - 7, 1.5f);
    const int64_t rows[] = {3};
    ASSERT_TRUE(paired->write_rows(1, rows, weights, state).ok());
    paired.plain().write(1, 3, weights, state);
    paired.check_row(1, 3);
    paired.check_row(1, 4);
    paired.check_digest();
    ASSERT_TRUE(paired->commit({}).ok());
    digest = digest_of(paired.runtime());
  }
  EXPECT_EQ(digest_of(*open_or_fail(o)), digest);
}

}  // namespace
}  // namespace rowtide
