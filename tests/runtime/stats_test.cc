// What the statistics say of real placements.

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "kernels/policies/policy.h"
#include "tests/support/paired_runtime.h"

namespace rowtide {
namespace {

class StatsTest : public testing::Test {
 protected:
  ScratchDirectory directory_;
};

struct Lookups {
  uint64_t all = 0, distinct = 0;
};

// Of each table, over all steps.
std::vector<Lookups> lookups_of(const ToyModel& model, uint64_t steps) {
  std::vector<Lookups> tables(model.options.tables.size());
  for (uint64_t n = 0; n < steps; ++n) {
    const ToyBatch batch = model.batch(n);
    std::vector<std::set<int64_t>> rows(tables.size());
    for (size_t f = 0; f < model.options.features.size(); ++f) {
      const uint32_t table = model.options.features[f].table;
      for (int64_t i = batch.offsets[f * batch.samples]; i < batch.offsets[(f + 1) * batch.samples];
           ++i) {
        rows[table].insert(batch.ids[i]);
        ++tables[table].all;
      }
    }
    for (size_t t = 0; t < tables.size(); ++t) tables[t].distinct += rows[t].size();
  }
  return tables;
}

Lookups sum_of(const TierHits& a, const TierHits& b, const TierHits& c, const TierHits& d) {
  return {a.hits + b.hits + c.hits + d.hits,
          a.unique_hits + b.unique_hits + c.unique_hits + d.unique_hits};
}

TEST_F(StatsTest, HitsByTierSumToTheLookUpsOfEachTableUnderEveryPolicyAndAdmission) {
  std::string digest;
  for (std::string_view policy : policy_names()) {
    for (const char* admission : {"always", "count"}) {
      ToyModel model = ToyModel::make();
      model.options.policy = policy;
      model.options.admission = admission;
      model.options.known_batches = 6;
      model.options.placed_batches = 2;
      std::filesystem::remove_all(directory_ / "store");
      model.options.ssd = {{directory_ / "store", 64 << 20}};
      set_budgets(model.options, 60000, 60000);
      auto runtime = open_or_fail(model.options);
      train_toy(model, *runtime, {.steps = 120});
      const std::string is = digest_of(*runtime);
      if (digest.empty()) digest = is;
      EXPECT_EQ(is, digest) << policy << ", " << admission;  // a refused row has its update

      const Stats stats = runtime->stats();
      const auto expected = lookups_of(model, 120);
      uint64_t rows_on_ssd = 0;
      Lookups all, sum = sum_of(stats.hbm, stats.ddr, stats.ssd, stats.fresh);
      for (size_t t = 0; t < expected.size(); ++t) {
        const TableStats& table = stats.tables[t];
        const Lookups by_tier = sum_of(table.hbm, table.ddr, table.ssd, table.fresh);
        EXPECT_EQ(by_tier.all, expected[t].all) << policy << ", " << table.name;
        EXPECT_EQ(by_tier.distinct, expected[t].distinct) << policy << ", " << table.name;
        EXPECT_EQ(table.resident, t == 0);
        EXPECT_LE(table.rows_on_ssd, table.fresh.unique_hits);
        rows_on_ssd += table.rows_on_ssd;
        if (t == 0) {
          EXPECT_EQ(table.ddr.hits + table.ssd.hits, 0u);
        }
        all.all += by_tier.all, all.distinct += by_tier.distinct;
      }
      EXPECT_EQ(sum.all, all.all);
      EXPECT_EQ(sum.distinct, all.distinct);
      EXPECT_EQ(stats.steps, 120u);
      EXPECT_GT(stats.hbm.hits, 0u) << policy;
      EXPECT_GT(stats.ddr.hits, 0u) << policy;
      EXPECT_GT(stats.ssd.hits, 0u) << policy;
      EXPECT_EQ(stats.rows_on_ssd, rows_on_ssd);
      EXPECT_GT(rows_on_ssd, 0u);
      EXPECT_LE(stats.rows_on_ssd, stats.fresh.unique_hits);
      // Nothing is twice in hot or warm: what came in and did not leave is what is there.
      EXPECT_GE(stats.hbm_tier.rows_in, stats.ddr_tier.rows_in);
    }
  }
}

TEST_F(StatsTest, AHandMadeRunIsCountedRowByRow) {
  RuntimeOptions o = one_table(directory_ / "store", 1000);
  o.policy = "lru";
  o.placed_batches = 0;
  o.known_batches = 2;
  set_budgets(o, 0, 4000);  // one hot set and transit for the rest; some warm sets
  PairedRuntime paired(o);
  paired.train(batch_of({{{1, 2}, {2, 2}, {3}}}));
  Stats stats = paired->stats();
  EXPECT_EQ(stats.fresh.hits, 5u);
  EXPECT_EQ(stats.fresh.unique_hits, 3u);
  paired.train(one_hot({1, 3, 3, 4}));
  stats = paired->stats();
  EXPECT_EQ(stats.hbm.hits, 3u);
  EXPECT_EQ(stats.hbm.unique_hits, 2u);
  EXPECT_EQ(stats.fresh.unique_hits, 4u);
  paired.train(one_hot(range(100, 132)));  // 32 others take the set
  paired.train(one_hot({1, 2, 3, 4}));
  stats = paired->stats();
  EXPECT_EQ(stats.ddr.unique_hits, 4u);
  EXPECT_EQ(stats.fresh.unique_hits, 36u);
  EXPECT_EQ(stats.steps, 4u);
  EXPECT_EQ(stats.samples, 3u + 4 + 32 + 4);
  EXPECT_EQ(stats.ssd.hits, 0u);
}

// The hot set moves from one range to another: every policy that adapts has it back in the tier.
TEST_F(StatsTest, TheHitRateRecoversWhenTheHotSetMoves) {
  for (std::string_view policy : policy_names()) {
    if (policy == "static") continue;
    std::filesystem::remove_all(directory_ / "store");
    RuntimeOptions o = one_table(directory_ / "store", 4000);
    o.policy = policy;
    set_budgets(o, 8000, 8000);
    PairedRuntime paired(o);
    std::mt19937_64 random(1);
    const auto train = [&](int64_t first, int steps) {
      const uint64_t before = paired->stats().hbm.hits;
      for (int n = 0; n < steps; ++n) {
        std::vector<int64_t> ids;
        for (int i = 0; i < 64; ++i) ids.push_back(first + static_cast<int64_t>(random() % 64));
        paired.train(one_hot(ids));
      }
      return static_cast<double>(paired->stats().hbm.hits - before) / (64.0 * steps);
    };
    train(0, 30);
    const double settled = train(0, 20);
    train(3000, 10);
    EXPECT_GT(train(3000, 20), 0.9 * settled) << policy;
  }
}

}  // namespace
}  // namespace rowtide
