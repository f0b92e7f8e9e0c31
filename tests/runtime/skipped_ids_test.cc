// Ids at the very edges of a table, where out of range begins.

#include <gtest/gtest.h>

#include "tests/support/paired_runtime.h"

namespace rowtide {
namespace {

// Two tables of one group: what one row too far would touch belongs to somebody.
RuntimeOptions two_tables(const std::string& directory, Placement placement, bool skip) {
  RuntimeOptions o = one_table(directory, 10);
  o.tables[0].placement = placement;
  o.tables.push_back({.name = "u", .rows = 7, .width = 4, .placement = placement});
  o.features.push_back({.name = "g", .table = 1});
  o.skip_bad_ids = skip;
  set_budgets(o);
  return o;
}

class SkippedIdsTest : public testing::TestWithParam<Placement> {
 protected:
  ScratchDirectory directory_;
};

TEST_P(SkippedIdsTest, I10_TheLastRowCountsAndTheOneBehindItIsSkipped) {
  PairedRuntime paired(two_tables(directory_ / "store", GetParam(), /*skip=*/true));
  const ToyBatch edges = batch_of({{{9}, {10}, {-1}, {0, 10, 11}}, {{6}, {7}, {-1}, {0, 7, 8}}});
  for (int n = 0; n < 3; ++n) paired.train(edges);
  paired.evaluate(edges);
  EXPECT_EQ(paired->stats().skipped_ids, 3u * 8u);
  EXPECT_EQ(paired.plain().rows_written(), 4u);  // the first and the last of each
  for (int64_t row = 0; row < 10; ++row) paired.check_row(0, row);
  for (int64_t row = 0; row < 7; ++row) paired.check_row(1, row);
  paired.check_digest();
}

TEST_P(SkippedIdsTest, I10_WhereNothingIsSkippedTheRowBehindTheLastIsRefused) {
  PairedRuntime paired(two_tables(directory_ / "store", GetParam(), /*skip=*/false));
  for (const auto& [first, second] : {std::pair{10, 6}, {9, 7}, {-1, 6}, {9, -1}}) {
    const ToyBatch batch = batch_of({{{first}}, {{second}}});
    EXPECT_EQ(paired->submit(batch.view()).status().code(), Code::kInvalid) << first << second;
  }
  paired.train(batch_of({{{9}}, {{6}}}));
  paired.check_digest();
}

INSTANTIATE_TEST_SUITE_P(Placements, SkippedIdsTest,
                         testing::Values(Placement::kResident, Placement::kCached),
                         [](const auto& info) {
                           return std::string(info.param == Placement::kCached ? "cached"
                                                                               : "resident");
                         });

}  // namespace
}  // namespace rowtide
