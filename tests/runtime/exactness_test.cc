// I3: tiering changes no bit.

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>
#include <string_view>

#include "tests/support/io_uring.h"
#include "tests/support/paired_runtime.h"

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

// One case of the cover: an index into each list below.
struct Case {
  double hot;  // share of all records
  const char* policy;
  uint32_t known, placed;
  const char* engine;
  const char* admission;
  int threads;
  Precision precision;
  OptimizerKind optimizer;
  uint64_t evaluate_every, commit_every;
  double drop_share;
  bool weighted;
};

constexpr double kHot[] = {0, 0.05, 0.5};
constexpr const char* kPolicies[] = {"lookahead", "lru", "clock", "lfu"};
constexpr std::pair<uint32_t, uint32_t> kAhead[] = {{1, 1}, {8, 2}, {64, 4}, {0, 0}};
constexpr const char* kEngines[] = {"io_uring", "threads"};
constexpr const char* kAdmissions[] = {"always", "count"};
constexpr int kThreads[] = {1, 2};
constexpr Precision kPrecisions[] = {Precision::kFp32, Precision::kFp16, Precision::kBf16};
constexpr OptimizerKind kOptimizers[] = {OptimizerKind::kRowwiseAdagrad, OptimizerKind::kAdagrad,
                                         OptimizerKind::kAdam, OptimizerKind::kSgd};
constexpr uint64_t kEvery[] = {0, 7};
constexpr double kDrops[] = {0, 0.2};

// Greedy pairwise cover: every pair of values of any two factors occurs in some case.
std::vector<std::vector<size_t>> pairwise(const std::vector<size_t>& sizes, uint32_t seed) {
  std::set<std::array<size_t, 4>> open;
  for (size_t a = 0; a < sizes.size(); ++a) {
    for (size_t b = a + 1; b < sizes.size(); ++b) {
      for (size_t i = 0; i < sizes[a]; ++i) {
        for (size_t j = 0; j < sizes[b]; ++j) open.insert({a, i, b, j});
      }
    }
  }
  std::mt19937 random(seed);
  const auto covers = [&](const std::vector<size_t>& c) {
    size_t n = 0;
    for (const auto& [a, i, b, j] : open) n += c[a] == i && c[b] == j;
    return n;
  };
  std::vector<std::vector<size_t>> cases;
  while (!open.empty()) {
    std::vector<size_t> best;
    for (int trial = 0; trial < 60; ++trial) {
      std::vector<size_t> c;
      for (size_t size : sizes) c.push_back(random() % size);
      c[(*open.begin())[0]] = (*open.begin())[1];
      c[(*open.begin())[2]] = (*open.begin())[3];
      if (best.empty() || covers(c) > covers(best)) best = c;
    }
    std::erase_if(open, [&](const auto& o) { return best[o[0]] == o[1] && best[o[2]] == o[3]; });
    cases.push_back(best);
  }
  return cases;
}

std::vector<Case> cover() {
  std::vector<Case> cases;
  for (const auto& c : pairwise({3, 4, 4, 2, 2, 2, 3, 4, 2, 2, 2, 2}, /*seed=*/1)) {
    cases.push_back({.hot = kHot[c[0]],
                     .policy = kPolicies[c[1]],
                     .known = kAhead[c[2]].first,
                     .placed = kAhead[c[2]].second,
                     .engine = kEngines[c[3]],
                     .admission = kAdmissions[c[4]],
                     .threads = kThreads[c[5]],
                     .precision = kPrecisions[c[6]],
                     .optimizer = kOptimizers[c[7]],
                     .evaluate_every = kEvery[c[8]],
                     .commit_every = kEvery[c[9]] * 3,
                     .drop_share = kDrops[c[10]],
                     .weighted = c[11] == 1});
  }
  return cases;
}

class ExactnessTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (std::string_view(GetParam().engine) != "io_uring") return;
    if (const std::string why = why_no_io_uring(); !why.empty()) GTEST_SKIP() << why;
  }
  ScratchDirectory directory_;
};

TEST_P(ExactnessTest, I3_TieringChangesNoBit) {
  const Case& c = GetParam();
  ToyModel model = ToyModel::make(c.optimizer, c.precision);
  model.weighted = model.options.weighted = c.weighted;
  model.options.policy = c.policy;
  model.options.known_batches = c.known;
  model.options.placed_batches = c.placed;
  model.options.io_engine = c.engine;
  model.options.admission = c.admission;
  model.options.threads = c.threads;
  ToyRun run = {.steps = 300, .drop_share = c.drop_share};
  const Plain plain = plain_run(model, run);

  run.evaluate_every = c.evaluate_every;
  run.commit_every = c.commit_every;
  model.options.ssd = {{directory_ / "store", 64 << 20}};
  // So large a share of all records, about, beyond the least.
  const auto beyond = static_cast<uint64_t>(c.hot * static_cast<double>(model.all_rows()) * 160);
  set_budgets(model.options, beyond, beyond);
  auto runtime = open_or_fail(model.options);
  ASSERT_NE(runtime, nullptr);
  EXPECT_EQ(train_toy(model, *runtime, run), plain.sum);
  EXPECT_EQ(digest_of(*runtime), plain.digest);
  const Stats stats = runtime->stats();
  EXPECT_GT(stats.hbm.hits, 0u);
  EXPECT_GT(stats.fresh.hits, 0u);
  if (c.hot < 0.5) {
    EXPECT_GT(stats.ssd.hits, 0u);  // else the case proves little
  }
  if (c.hot > 0) {
    EXPECT_GT(stats.ddr.hits, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Pairwise, ExactnessTest, testing::ValuesIn(cover()), [](const auto& info) {
  const Case& c = info.param;
  return std::to_string(info.index) + "_" + c.policy + "_hot" +
         std::to_string(static_cast<int>(c.hot * 100)) + "_L" + std::to_string(c.known) + "_P" +
         std::to_string(c.placed) + "_" + c.engine + "_" + c.admission + "_threads" +
         std::to_string(c.threads);
});

}  // namespace
}  // namespace rowtide
