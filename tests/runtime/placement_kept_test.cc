// I8: placement is saved at a clean exit; it changes what place finds, never a bit.

#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "kernels/policies/policy.h"
#include "tests/support/paired_runtime.h"

namespace rowtide {
namespace {

class PlacementKeptTest : public testing::TestWithParam<std::string> {
 protected:
  PlacementKeptTest() {
    m_.options.policy = GetParam();
    m_.options.known_batches = 6;
    m_.options.placed_batches = 2;
    new_directory();
    m_.options.log = [this](const std::string& line) { log_ += line + '\n'; };
    set_budgets(m_.options, 60000, 60000);
  }
  void new_directory() { m_.options.ssd = {{directory_.emplace().path(), 64 << 20}}; }
  std::string hints() const { return *directory_ / "HINTS"; }
  // The first life: steps [0, 60), a commit, and some more steps that are lost.
  void live(uint64_t lost = 0) {
    auto runtime = open_or_fail(m_.options);
    train_toy(m_, *runtime, {.steps = 60});
    ASSERT_TRUE(runtime->commit({}).ok());
    if (lost > 0) train_toy(m_, *runtime, {.first = 60, .steps = lost});
  }
  // Ten more steps; counts the rows that place found in memory.
  std::string go_on(uint64_t* found) {
    auto runtime = open_or_fail(m_.options);
    train_toy(m_, *runtime, {.first = 60, .steps = 10});
    const Stats stats = runtime->stats();
    *found = stats.hbm.unique_hits + stats.ddr.unique_hits;
    return digest_of(*runtime);
  }
  std::string never_stopped(uint64_t* found) {
    ToyModel m = m_;
    const ScratchDirectory directory;
    m.options.ssd[0].directory = directory.path();
    auto runtime = open_or_fail(m.options);
    train_toy(m, *runtime, {.steps = 60});
    const Stats before = runtime->stats();
    train_toy(m, *runtime, {.first = 60, .steps = 10});
    const Stats after = runtime->stats();
    *found = after.hbm.unique_hits + after.ddr.unique_hits - before.hbm.unique_hits -
             before.ddr.unique_hits;
    return digest_of(*runtime);
  }
  bool restored() const { return log_.find("placement restored") != std::string::npos; }

  std::optional<ScratchDirectory> directory_;
  ToyModel m_ = ToyModel::make();
  std::string log_;
};

TEST_P(PlacementKeptTest, I8_ACleanExitKeepsIt) {
  live();
  uint64_t found = 0, never = 0;
  EXPECT_EQ(go_on(&found), never_stopped(&never));
  EXPECT_TRUE(restored()) << log_;
  // Rows in transit and the known uses are forgotten, so a few differ.
  EXPECT_GE(found, never * 95 / 100);
}

TEST_P(PlacementKeptTest, I8_RowsThatTheCommitDoesNotHaveAreNewAgain) {
  live(/*lost=*/25);
  uint64_t found = 0, never = 0;
  EXPECT_EQ(go_on(&found), never_stopped(&never));
  EXPECT_TRUE(restored()) << log_;
}

TEST_P(PlacementKeptTest, I8_ItCountsForOneOpenOnly) {
  live();
  uint64_t found = 0, never = 0;
  {
    auto runtime = open_or_fail(m_.options);
    EXPECT_FALSE(std::ifstream(hints()).good()) << "a crash from here on must not find it";
  }
  EXPECT_TRUE(std::ifstream(hints()).good());
  EXPECT_EQ(go_on(&found), never_stopped(&never));
}

TEST_P(PlacementKeptTest, I8_ADamagedOneIsLeftAlone) {
  for (int64_t at : {-1, 0, 8, 16, 24, 32, 40, 60, 4000}) {
    new_directory();
    live();
    std::fstream file(hints(), std::ios::in | std::ios::out | std::ios::binary);
    ASSERT_TRUE(file.good());
    if (at < 0) {
      std::ofstream(hints(), std::ios::trunc | std::ios::binary);  // empty
    } else {
      file.seekg(at);
      const char byte = static_cast<char>(file.get() ^ 0x40);
      file.seekp(at);
      file.put(byte);
      file.close();
    }
    uint64_t found = 0, never = 0;
    log_.clear();
    EXPECT_EQ(go_on(&found), never_stopped(&never));
    EXPECT_FALSE(restored()) << log_ << at;
  }
}

TEST_P(PlacementKeptTest, I8_OtherBudgetsTakeWhatFits) {
  live();
  set_budgets(m_.options, 90000, 30000);
  uint64_t found = 0, never = 0;
  EXPECT_EQ(go_on(&found), never_stopped(&never));
  EXPECT_TRUE(restored()) << log_;
  EXPECT_GE(found, never * 80 / 100);
}

TEST_P(PlacementKeptTest, I8_AnotherPolicyStartsEmpty) {
  live();
  m_.options.policy = GetParam() == "lru" ? "lookahead" : "lru";
  set_budgets(m_.options, 60000, 60000);
  uint64_t found = 0, never = 0;
  EXPECT_EQ(go_on(&found), never_stopped(&never));
  EXPECT_FALSE(restored()) << log_;
}

TEST_P(PlacementKeptTest, I8_RowsOfTablesThatBecameResidentAreNotPutBack) {
  live();
  for (TableOptions& table : m_.options.tables) table.placement = Placement::kResident;
  m_.options.hbm_bytes = m_.options.ddr_bytes = 64 << 20;
  uint64_t found = 0, never = 0;
  EXPECT_EQ(go_on(&found), never_stopped(&never));
  EXPECT_FALSE(restored()) << log_;
}

INSTANTIATE_TEST_SUITE_P(Policies, PlacementKeptTest,
                         testing::ValuesIn(std::vector<std::string>(policy_names().begin(),
                                                                    policy_names().end())),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace rowtide
