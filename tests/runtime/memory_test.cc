// I7: what is reserved at open is all that steps, commits and digests take.

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "tests/support/bags.h"
#include "tests/support/count_allocations.h"
#include "tests/support/paired_runtime.h"

namespace rowtide {
namespace {

uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * 4096;
}

class MemoryTest : public testing::Test {
 protected:
  ScratchDirectory directory_;
};

// Batches of 64 rows, the next one `stride` rows on.
std::vector<ToyBatch> batches_of(int64_t count, int64_t stride, int64_t rows) {
  std::vector<ToyBatch> batches;
  for (int64_t n = 0; n < count; ++n) {
    const int64_t first = n * stride % (rows - 64);
    batches.push_back(one_hot(range(first, first + 64)));
  }
  return batches;
}

// Trains on all of them, submitted two ahead.
void train_on(Runtime& runtime, std::span<const ToyBatch> batches, std::vector<float>& pooled) {
  std::array<Step, 3> steps;
  for (size_t n = 0; n < batches.size() + 2; ++n) {
    if (n < batches.size()) {
      auto step = runtime.submit(batches[n].view());
      ASSERT_TRUE(step.ok());
      steps[n % 3] = std::move(*step);
    }
    if (n < 2) continue;
    Step& step = steps[(n - 2) % 3];
    ASSERT_TRUE(step.forward({.pooled = pooled}).ok());
    ASSERT_TRUE(step.backward({.pooled = pooled}).ok());
    ASSERT_TRUE(step.apply({.learning_rate = 0.01f}).ok());
  }
}

TEST_F(MemoryTest, ASteadyStepAllocatesNothing) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer brings its own operator new";
  RuntimeOptions o = one_table(directory_ / "store", 300);
  set_budgets(o, 30000, 30000);  // all rows fit hot and warm: the store is not what is counted
  auto runtime = open_or_fail(o);
  const auto batches = batches_of(20, 11, 300);
  std::vector<float> pooled(64 * 4);
  for (int n = 0; n < 3; ++n) train_on(*runtime, batches, pooled);
  const uint64_t before = allocation_count();
  train_on(*runtime, batches, pooled);
  EXPECT_EQ(allocation_count(), before);
}

TEST_F(MemoryTest, AThousandStepsKeepMemoryFlat) {
  RuntimeOptions o = one_table(directory_ / "store", 300);
  set_budgets(o, 5000, 5000);
  auto runtime = open_or_fail(o);
  const auto batches = batches_of(100, 11, 300);
  std::vector<float> pooled(64 * 4);
  for (int n = 0; n < 3; ++n) train_on(*runtime, batches, pooled);
  const uint64_t before = resident_bytes();
  for (int n = 0; n < 10; ++n) train_on(*runtime, batches, pooled);
  EXPECT_LT(resident_bytes(), before + (1 << 20));
}

class MemoryOfEngineTest : public MemoryTest, public testing::WithParamInterface<const char*> {};

// Nearly every row of every step comes from the log and goes back to it.  The log has gone round
// already, and rows are rewritten in no order, so that segments are cleaned while some rows in them
// live.
TEST_P(MemoryOfEngineTest, StepsThatReadAppendAndCleanAllocateNothingAndKeepMemoryFlat) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer brings its own operator new";
  const std::string engine = GetParam();
  RuntimeOptions o = one_table(directory_ / engine, 8000, 128);
  o.ssd[0].bytes = 8 << 20;
  o.io_engine = engine;
  set_budgets(o);
  auto runtime = open_or_fail(o);
  ASSERT_NE(runtime, nullptr);
  std::vector<ToyBatch> batches;
  for (uint64_t n = 0; n < 400; ++n) {
    const auto rows = random_slots(64, 8000, /*seed=*/n);
    batches.push_back(one_hot({rows.begin(), rows.end()}));
  }
  std::vector<float> pooled(64 * 128);
  train_on(*runtime, std::span(batches).first(300), pooled);
  const Stats warm = runtime->stats();
  ASSERT_GT(warm.ssd_tier.rows_in * 536, warm.ssd_tier.bytes_budget);
  const uint64_t resident = resident_bytes(), count = allocation_count();
  train_on(*runtime, std::span(batches).subspan(300), pooled);
  EXPECT_EQ(allocation_count(), count);
  EXPECT_LT(resident_bytes(), resident + (1 << 20));
  const Stats stats = runtime->stats();
  EXPECT_GT(stats.rows_read_from_ssd, warm.rows_read_from_ssd + 100 * 32);
  EXPECT_GT(stats.ssd_tier.rows_in, warm.ssd_tier.rows_in + 100 * 32);
}

INSTANTIATE_TEST_SUITE_P(Engines, MemoryOfEngineTest, testing::Values("auto", "threads"),
                         [](const auto& info) { return std::string(info.param); });

// 14 MB of dirty rows, hot, warm and resident: none is copied aside.
TEST_F(MemoryTest, ACommitAndADigestTakeNoMemoryThatGrowsWithTheRows) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer brings its own operator new";
  RuntimeOptions o = one_table(directory_ / "store", 16000, 128);
  o.tables.push_back(
      {.name = "whole", .rows = 16000, .width = 128, .placement = Placement::kResident});
  o.features.push_back({.name = "g", .table = 1});
  o.max_ids = 128;
  set_budgets(o, 3 << 20, 8 << 20);
  auto runtime = open_or_fail(o);
  ASSERT_NE(runtime, nullptr);
  std::vector<float> pooled(64 * 256);
  const auto train_all = [&] {
    for (int64_t n = 0; n < 240; ++n) {
      ToyBatch batch = one_hot(range(n * 64, n * 64 + 64));
      for (int64_t id : range(n * 64, n * 64 + 64)) batch.ids.push_back(id);
      for (int64_t s = 1; s <= 64; ++s) batch.offsets.push_back(64 + s);
      Step step = std::move(*runtime->submit(batch.view()));
      ASSERT_TRUE(step.forward({.pooled = pooled}).ok());
      ASSERT_TRUE(step.backward_and_apply({.pooled = pooled}, {}).ok());
    }
  };
  train_all();
  ASSERT_TRUE(runtime->commit({}).ok());  // touches the memory that was reserved
  train_all();
  const uint64_t rows_in = runtime->stats().ssd_tier.rows_in;
  const uint64_t resident = resident_bytes(), before = allocated_bytes();
  const auto dirty = runtime->digest();
  const Status committed = runtime->commit({});
  const auto clean = runtime->digest();
  EXPECT_LT(allocated_bytes(), before + (256 << 10));
  EXPECT_LT(resident_bytes(), resident + (1 << 20));
  EXPECT_TRUE(committed.ok()) << committed.to_string();
  ASSERT_TRUE(dirty.ok() && clean.ok());
  EXPECT_EQ(*clean, *dirty);
  EXPECT_GT(runtime->stats().ssd_tier.rows_in, rows_in + 25000);
}

// Many without a store, whose opening costs no disk; some with.
TEST_F(MemoryTest, SlowTenThousandRuntimesComeAndGoInFlatMemory) {
  RuntimeOptions stored = one_table(directory_ / "store");
  set_budgets(stored);
  RuntimeOptions plain = stored;
  plain.ssd.clear();
  for (TableOptions& table : plain.tables) table.placement = Placement::kResident;
  plain.hbm_bytes = 8 << 20;
  const ToyBatch batch = one_hot(range(0, 50));
  uint64_t before = 0;
  for (int n = 0; n < 10000; ++n) {
    auto runtime = open_or_fail(n % 100 == 0 ? stored : plain);
    std::filesystem::remove_all(directory_ / "store");
    Step step = std::move(*runtime->submit(batch.view()));
    if (n == 500) before = resident_bytes();
  }
  EXPECT_LT(resident_bytes(), before + (4 << 20));
}

}  // namespace
}  // namespace rowtide
