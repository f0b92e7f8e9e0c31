// I3: tiering changes no bit.

#include <gtest/gtest.h>

#include "tests/support/toy_training.h"

namespace rowtide {
namespace {

// The plain run: everything resident, no store.
struct Plain {
  std::string digest;
  double sum;
};

Plain plain_run(ToyModel model, const ToyRun& run) {
  model.options.ssd.clear();
  for (TableOptions& table : model.options.tables) table.placement = Placement::kResident;
  model.options.hbm_bytes = 64 << 20;
  auto runtime = open_or_fail(model.options);
  const double sum = train_toy(model, *runtime, run);
  return {digest_of(*runtime), sum};
}

// The least budgets, and `share` of the way from there to everything.
void set_budgets(ToyModel& model, double hot_share, double warm_share) {
  model.options.hbm_bytes = model.options.ddr_bytes = 1;
  const Plan least = Runtime::plan(model.options);
  const double all = static_cast<double>(model.all_rows()) * 160;
  model.options.hbm_bytes = least.least_hbm_bytes + 4096 + static_cast<uint64_t>(hot_share * all);
  model.options.ddr_bytes = least.least_ddr_bytes + 4096 + static_cast<uint64_t>(warm_share * all);
}

struct ExactnessTest : testing::Test {
  TemporaryDirectory directory;
  ToyModel model = ToyModel::make();
  ToyRun run;

  void tiered(double hot_share, double warm_share) {
    model.options.ssd = {{directory / "store", 64 << 20}};
    set_budgets(model, hot_share, warm_share);
  }
  void expect_equal(const std::string& what) {
    const Plain plain = plain_run(model, run);
    auto runtime = open_or_fail(model.options);
    ASSERT_NE(runtime, nullptr) << what;
    EXPECT_EQ(train_toy(model, *runtime, run), plain.sum) << what;
    EXPECT_EQ(digest_of(*runtime), plain.digest) << what;
  }
};

TEST_F(ExactnessTest, I3_AHotTierOfOneSetChangesNoBit) {
  tiered(0, 0);
  expect_equal("one set");
}

TEST_F(ExactnessTest, I3_AHotTierOfATwentiethChangesNoBit) {
  tiered(0.05, 0.1);
  expect_equal("a twentieth");
}

TEST_F(ExactnessTest, I3_AHotTierOfHalfChangesNoBit) {
  tiered(0.5, 0.5);
  expect_equal("a half");
}

TEST_F(ExactnessTest, I3_WeightsOfSamplesChangeNothingAboutIt) {
  model.weighted = model.options.weighted = true;
  tiered(0.05, 0.1);
  expect_equal("weighted");
}

}  // namespace
}  // namespace rowtide
