// I7: budgets are hard.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>

#include "runtime/base/host_arena.h"
#include "tests/support/fake_disk_scope.h"
#include "tests/support/paired_runtime.h"

namespace rowtide {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

uint64_t sum_of(const Plan& plan, const std::string& tier) {
  uint64_t sum = 0;
  for (const PlanLine& line : plan.lines) sum += line.tier == tier ? line.bytes : 0;
  return sum;
}

// Shapes of all kinds: widths, groups, placements, features, windows.
RuntimeOptions random_shape(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&](std::initializer_list<uint64_t> of) {
    return of.begin()[random() % of.size()];
  };
  RuntimeOptions o;
  for (uint64_t t = 0; t < pick({1, 3, 8}); ++t) {
    o.tables.push_back({.name = "t" + std::to_string(t),
                        .rows = pick({1, 5, 40, 1000, 30000}),
                        .width = static_cast<uint32_t>(pick({1, 4, 33, 128})),
                        .precision = static_cast<Precision>(pick({0, 0, 1, 2})),
                        .optimizer = static_cast<OptimizerKind>(pick({0, 1, 2, 3})),
                        .placement = static_cast<Placement>(pick({0, 0, 0, 1, 2}))});
    for (uint64_t f = 0; f < pick({1, 1, 2}); ++f) {
      o.features.push_back({.name = "f",
                            .table = static_cast<uint32_t>(t),
                            .pooling = static_cast<Pooling>(pick({0, 1, 2})),
                            .max_ids_per_sample = static_cast<uint32_t>(pick({0, 1, 3}))});
    }
  }
  o.max_samples = pick({1, 20, 300});
  o.max_ids = o.max_samples * pick({1, 4, 16});
  o.open_steps = static_cast<uint32_t>(pick({1, 1, 2, 3}));
  o.placed_batches = o.open_steps - 1 + static_cast<uint32_t>(pick({0, 2, 4}));
  o.known_batches = o.placed_batches + static_cast<uint32_t>(pick({0, 3, 20}));
  o.gradient_parts = static_cast<uint32_t>(pick({0, 1, 3}));
  o.weighted = random() % 2 == 0;
  o.admission = random() % 3 == 0 ? "count" : "always";
  o.policy = random() % 2 == 0 ? "lookahead" : "clock";
  o.threads = 1;
  o.ssd = {{"unused", 64 << 20}};
  return o;
}

TEST(BudgetTest, I7_ThePlanIsTheSumOfItsLinesAndNeverAboveTheBudgets) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RuntimeOptions o = random_shape(seed);
    set_budgets(o);
    const uint64_t hbm = o.hbm_bytes, ddr = o.ddr_bytes;
    for (uint64_t beyond : {0, 1, 100, 1000, 10000, 300000, 30000000}) {
      o.hbm_bytes = hbm + beyond;
      o.ddr_bytes = ddr + (beyond * 7) % 50000;
      const Plan plan = Runtime::plan(o);
      ASSERT_TRUE(plan.status.ok()) << seed << " + " << beyond << ": " << plan.status.to_string();
      ASSERT_LE(plan.hbm_bytes, o.hbm_bytes) << seed << " + " << beyond;
      ASSERT_LE(plan.ddr_bytes, o.ddr_bytes) << seed << " + " << beyond;
      ASSERT_EQ(plan.hbm_bytes, sum_of(plan, "hbm")) << seed;
      ASSERT_EQ(plan.ddr_bytes, sum_of(plan, "ddr")) << seed;
      ASSERT_EQ(plan.least_hbm_bytes, hbm) << seed << " + " << beyond;
    }
  }
}

TEST(BudgetTest, I7_OneByteLessThanTheLeastIsRefusedWithTheNumber) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    RuntimeOptions o = random_shape(seed);
    set_budgets(o);
    RuntimeOptions less = o;
    --less.hbm_bytes;
    Status status = Runtime::open(less).status();
    EXPECT_EQ(status.code(), Code::kNoSpace);
    EXPECT_TRUE(contains(status.message(),
                         "hbm_bytes: the least that works is " + std::to_string(o.hbm_bytes)))
        << status.to_string();
    less = o;
    less.ddr_bytes = 5;
    less.hbm_bytes = 5;  // both are named
    status = Runtime::open(less).status();
    EXPECT_TRUE(contains(status.message(), std::to_string(o.hbm_bytes))) << status.to_string();
    EXPECT_TRUE(contains(status.message(), std::to_string(o.ddr_bytes))) << status.to_string();
  }
}

TEST(BudgetTest, I7_TheLeastBudgetsTrainAnyBatch) {
  ScratchDirectory directory;
  for (uint32_t open_steps : {1, 3}) {
    RuntimeOptions o = one_table(directory / std::to_string(open_steps), 5000);
    o.open_steps = open_steps;
    o.placed_batches = 4;
    set_budgets(o);
    PairedRuntime paired(o);
    for (int64_t n = 0; n < 60; ++n) {
      std::vector<ToyBatch> batches;
      std::vector<Step> steps;
      for (int64_t s = 0; s < open_steps; ++s) {
        batches.push_back(one_hot(range((n * 3 + s) * 61 % 4900, (n * 3 + s) * 61 % 4900 + 64)));
        steps.push_back(paired.submit(batches.back()));
      }
      for (size_t s = 0; s < steps.size(); ++s) paired.forward(steps[s], batches[s]);
      for (size_t s = steps.size(); s-- > 0;) paired.apply(steps[s], batches[s]);
    }
    const Stats stats = paired->stats();
    EXPECT_GT(stats.placed_lowered, 0u);
    EXPECT_GT(stats.transit_rows, 0u);
    paired.check_digest();
  }
}

TEST(BudgetTest, BytesReportedAreThoseOfThePlan) {
  ScratchDirectory directory;
  RuntimeOptions o = one_table(directory / "store", 50000, 16);
  set_budgets(o, 1 << 20, 1 << 20);
  const Plan plan = Runtime::plan(o);
  PairedRuntime paired(o);
  const Stats stats = paired->stats();
  EXPECT_EQ(stats.hbm_tier.bytes_used, plan.hbm_bytes);
  EXPECT_EQ(stats.ddr_tier.bytes_used, plan.ddr_bytes);
  EXPECT_EQ(stats.hbm_tier.bytes_budget, o.hbm_bytes);
  EXPECT_EQ(stats.ddr_tier.bytes_budget, o.ddr_bytes);
  EXPECT_GT(plan.hbm_bytes * 100, o.hbm_bytes * 99);  // and nothing is given away
}

TEST(BudgetTest, AThinHotTierIsAcceptedWithOneWarningThatNamesP) {
  const FakeDiskScope disk(1);  // of which nothing is said, as of real ones
  RuntimeOptions o = one_table("store", 100000);
  o.placed_batches = 4;
  set_budgets(o);
  std::vector<std::string> said;
  o.log = [&](const std::string& line) { said.push_back(line); };
  const Plan plan = Runtime::plan(o);
  ASSERT_EQ(plan.warnings.size(), 1u);
  EXPECT_TRUE(contains(plan.warnings[0],
                       "placed_batches = " + std::to_string(plan.placed_batches) + ", not for 4"));
  EXPECT_LT(plan.placed_batches, 4u);
  EXPECT_NE(open_or_fail(o), nullptr);
  EXPECT_EQ(said, plan.warnings);
  o.hbm_bytes += 1 << 20;
  EXPECT_TRUE(Runtime::plan(o).warnings.empty());
}

TEST(BudgetTest, ATableThatMayBeCachedIsNeverWhyABudgetIsTooSmall) {
  RuntimeOptions o = one_table("unused", 1000000);
  o.tables.push_back({.name = "small", .rows = 1000, .width = 4});
  o.features.push_back({.name = "g", .table = 1, .max_ids_per_sample = 1});
  o.max_samples = 10;
  o.max_ids = 1000;
  set_budgets(o);
  const Plan plan = Runtime::plan(o);
  EXPECT_TRUE(plan.status.ok()) << plan.status.to_string();
  o.hbm_bytes += 200000;
  bool resident = false;
  for (const PlanLine& line : Runtime::plan(o).lines) resident |= line.what == "resident small";
  EXPECT_TRUE(resident);  // once there is room
}

TEST(BudgetTest, PlansOfAbsurdSizesAreQuickAndDoNotWrapAround) {
  RuntimeOptions o = one_table("unused", uint64_t{1} << 48, 4096);
  o.tables[0].optimizer = OptimizerKind::kAdam;
  for (int t = 1; t < 1000; ++t) {
    o.tables.push_back(o.tables[0]);
    o.tables.back().name = "t" + std::to_string(t);
    o.tables.back().placement = Placement::kAuto;
  }
  const Plan plan = Runtime::plan(o);  // the tables are cached, for all their size
  EXPECT_TRUE(plan.status.ok()) << plan.status.to_string();
  o.ssd.clear();  // now they would have to lie whole in the hot tier
  EXPECT_TRUE(contains(Runtime::plan(o).status.message(), "2^31 rows"))
      << Runtime::plan(o).status.to_string();
}

TEST(BudgetTest, MemoryThatCannotBeHadIsAnErrorThatNamesIt) {
  ScratchDirectory directory;
  RuntimeOptions o = one_table(directory / "store", uint64_t{1} << 30, 4096);
  o.tables[0].name = "vast";
  o.hbm_bytes = uint64_t{3} << 40;
  const Status status = Runtime::open(o).status();
  EXPECT_EQ(status.code(), Code::kNoSpace);
  EXPECT_TRUE(contains(status.message(), std::to_string(Runtime::plan(o).hbm_bytes)));
  EXPECT_TRUE(contains(status.message(), "are there")) << status.message();
  EXPECT_TRUE(contains(status.message(), "table is vast")) << status.message();
}

// The process's address space, in bytes.
uint64_t mapped_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t pages = 0;
  file >> pages;
  return pages * 4096;
}

TEST(BudgetTest, BytesReportedAreThoseAllocated) {
  ScratchDirectory directory;
  RuntimeOptions o = one_table(directory / "store", uint64_t{1} << 30, 64);
  o.hbm_bytes = available_host_bytes() / 4;
  o.ddr_bytes = available_host_bytes() / 3;
  o.ssd[0].bytes = uint64_t{1} << 36;
  const uint64_t before = mapped_bytes();
  auto runtime = open_or_fail(o);
  const uint64_t grown = mapped_bytes() - before;
  const Stats stats = runtime->stats();
  const uint64_t reported = stats.hbm_tier.bytes_used + stats.ddr_tier.bytes_used;
  // Beside them: stacks of threads, and the address space that allocators ask for ahead.
  constexpr uint64_t kStacks = 160 << 20;
  EXPECT_GE(grown, reported - reported / 100);
  EXPECT_LE(grown, reported + reported / 100 + kStacks);
  EXPECT_GE(reported, (o.hbm_bytes + o.ddr_bytes) / 100 * 97);
}

// Ends the process, with 0 if `test` says true under the limit.  For children of a test.
template <typename Test>
void exit_under_limit(int resource, uint64_t limit, Test&& test) {
  const rlimit limits = {limit, limit};
  setrlimit(static_cast<__rlimit_resource_t>(resource), &limits);
  std::_Exit(test() ? 0 : 1);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

TEST(BudgetTest, ALimitOfTheProcessIsAnErrorThatNamesBytes) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // this process has threads
  if (kSanitized) GTEST_SKIP() << "sanitizers need all of the address space";
  ScratchDirectory directory;
  RuntimeOptions o = one_table(directory / "store", uint64_t{1} << 30, 64);
  o.hbm_bytes = uint64_t{2} << 30;
  o.ddr_bytes = uint64_t{2} << 30;
  o.ssd[0].bytes = uint64_t{1} << 34;
  const auto refused = [&] {
    const Status status = Runtime::open(o).status();
    std::fprintf(stderr, "%s\n", status.to_string().c_str());
    return status.code() == Code::kNoSpace;
  };
  EXPECT_EXIT(exit_under_limit(RLIMIT_AS, uint64_t{1} << 30, refused), testing::ExitedWithCode(0),
              "needs [0-9]+ bytes");
}

TEST(BudgetTest, NoLockedMemoryIsNeeded) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // this process has threads
  ScratchDirectory directory;
  RuntimeOptions o = one_table(directory / "store", 1000);
  set_budgets(o, 0, 6000);
  const auto trains = [&] {
    PairedRuntime paired(o);
    for (int64_t n = 0; n < 6; ++n) paired.train(one_hot(range(n * 60, n * 60 + 60)));
    const bool committed = paired->commit({}).ok();
    return committed && digest_of(paired.runtime()) == paired.plain().digest();
  };
  EXPECT_EXIT(exit_under_limit(RLIMIT_MEMLOCK, 0, trains), testing::ExitedWithCode(0), "");
}

TEST(BudgetTest, BothArenasTogetherMustFitTheMachine) {
  ScratchDirectory directory;
  RuntimeOptions o = one_table(directory / "store", uint64_t{1} << 30, 1024);
  o.hbm_bytes = available_host_bytes() / 10 * 7;
  o.ddr_bytes = available_host_bytes() / 10 * 7;
  EXPECT_EQ(Runtime::open(o).status().code(), Code::kNoSpace);
}

struct BadOption {
  const char* named;
  void (*spoil)(RuntimeOptions&);
};

TEST(BudgetTest, OptionsOutOfRangeAreNamed) {
  const BadOption bad[] = {
      {"no tables", [](auto& o) { o.tables.clear(); }},
      {"no features", [](auto& o) { o.features.clear(); }},
      {"has no name", [](auto& o) { o.tables[0].name = ""; }},
      {"table t is given twice", [](auto& o) { o.tables.push_back(o.tables[0]); }},
      {"table t: rows = 0", [](auto& o) { o.tables[0].rows = 0; }},
      {"table t: rows = 281474976710657", [](auto& o) { o.tables[0].rows = (1ull << 48) + 1; }},
      {"table t: width = 0", [](auto& o) { o.tables[0].width = 0; }},
      {"table t: width = 4097", [](auto& o) { o.tables[0].width = 4097; }},
      {"init_scale", [](auto& o) { o.tables[0].init_scale = -1; }},
      {"init_scale", [](auto& o) { o.tables[0].init_scale = NAN; }},
      {"feature f names table 7", [](auto& o) { o.features[0].table = 7; }},
      {"max_samples", [](auto& o) { o.max_samples = 0; }},
      {"max_samples", [](auto& o) { o.max_samples = 1ull << 63; }},
      {"max_ids", [](auto& o) { o.max_ids = 0; }},
      {"max_ids", [](auto& o) { o.max_ids = 1ull << 32; }},
      {"open_steps", [](auto& o) { o.open_steps = 0; }},
      {"open_steps", [](auto& o) { o.open_steps = 4; }},
      {"known_batches", [](auto& o) { o.known_batches = 1; }},
      {"known_batches", [](auto& o) { o.known_batches = 70000; }},
      {"policy \"best\" is none of", [](auto& o) { o.policy = "best"; }},
      {"io_engine", [](auto& o) { o.io_engine = "tape"; }},
      {"admission", [](auto& o) { o.admission = "never"; }},
      {"profile", [](auto& o) { o.admission = "profile", o.profile = "/none"; }},
      {"threads = -1", [](auto& o) { o.threads = -1; }},
      {"gradient_parts", [](auto& o) { o.gradient_parts = 1u << 30; }},
  };
  for (const BadOption& option : bad) {
    RuntimeOptions o = one_table("unused");
    option.spoil(o);
    for (const Status& status : {Runtime::open(o).status(), Runtime::plan(o).status}) {
      EXPECT_FALSE(status.ok()) << option.named;
      EXPECT_TRUE(contains(status.message(), option.named))
          << option.named << ": " << status.to_string();
    }
  }
  RuntimeOptions o = one_table("unused");
  o.device = "cuda";
  EXPECT_EQ(Runtime::open(o).status().code(), Code::kUnavailable);
  EXPECT_TRUE(contains(Runtime::open(o).status().message(), "cpu"));
}

}  // namespace
}  // namespace rowtide
