#include "tests/support/random_case.h"

#include <string>

#include "kernels/policies/policy.h"
#include "runtime/base/key.h"

namespace rowtide {

RuntimeOptions draw_options(Random& random) {
  RuntimeOptions o;
  const auto precision = random.pick({Precision::kFp32, Precision::kFp16, Precision::kBf16});
  const auto optimizer = random.pick({OptimizerKind::kSgd, OptimizerKind::kAdagrad,
                                      OptimizerKind::kRowwiseAdagrad, OptimizerKind::kAdam});
  const auto table = [&](const char* name, uint64_t rows, uint32_t width, Placement placement) {
    o.tables.push_back({.name = name,
                        .rows = rows,
                        .width = width,
                        .precision = precision,
                        .optimizer = optimizer,
                        .init_scale = 0.5f,
                        .placement = placement});
  };
  const uint64_t rows = random.pick({40, 150, 600});
  table("whole", 9, 3, Placement::kResident);
  table("a", rows, 3, Placement::kCached);
  table("b", rows / 2, 3, Placement::kCached);
  table("c", rows, 8, Placement::kCached);
  const uint32_t hot = random.pick({1u, 2u, 4u});
  for (const uint32_t t : {0, 1, 2, 3, 1, 3}) {
    o.features.push_back({.name = "f" + std::to_string(o.features.size()),
                          .table = t,
                          .pooling = random.pick({Pooling::kSum, Pooling::kMean, Pooling::kNone}),
                          .max_ids_per_sample = hot});
  }
  o.max_samples = random.pick({2, 10, 40});
  o.max_ids = o.max_samples * hot * o.features.size();
  o.open_steps = random.pick({1u, 1u, 2u, 3u});
  o.placed_batches = o.open_steps - 1 + random.pick({0u, 1u, 2u, 4u});
  o.known_batches = o.placed_batches + random.pick({0u, 1u, 3u, 8u});
  o.policy = policy_names()[random.below(policy_names().size())];
  o.admission = random.pick({"always", "always", "count"});
  o.gradient_parts = random.pick({0u, 1u, 2u});
  o.weighted = random.chance(50);
  o.skip_bad_ids = random.chance(50);
  o.threads = random.pick({1, 1, 1, 2});
  o.seed = random.below(1000);
  o.ssd = {{"store", 64 << 20}};
  o.hbm_bytes = o.ddr_bytes = 1;
  const Plan least = Runtime::plan(o);
  o.hbm_bytes = least.least_hbm_bytes + random.pick({0, 0, 3000, 20000});
  o.ddr_bytes = least.least_ddr_bytes + random.pick({0, 0, 2000, 20000});
  return o;
}

BatchMaker::BatchMaker(const RuntimeOptions& options, Random& random)
    : o_(options), random_(random), style_(random.below(3)) {
  for (int i = 0; i < 12; ++i) few_.push_back(static_cast<int64_t>(random.below(1000)));
}

ToyBatch BatchMaker::make(uint64_t samples) {
  ToyBatch batch;
  batch.samples = samples;
  batch.offsets.push_back(0);
  for (const FeatureOptions& feature : o_.features) {
    for (uint64_t s = 0; s < samples; ++s) {
      uint64_t ids = random_.below(feature.max_ids_per_sample + 1);
      if (style_ == 0) ids = feature.max_ids_per_sample;
      for (uint64_t i = 0; i < ids; ++i) batch.ids.push_back(id(feature.table));
      batch.offsets.push_back(static_cast<int64_t>(batch.ids.size()));
    }
  }
  if (o_.weighted && random_.chance(70)) {
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      batch.weights.push_back(static_cast<float>(random_.below(16)) / 8 - 0.5f);
    }
  }
  return batch;
}

int64_t BatchMaker::id(uint32_t table) {
  if (o_.skip_bad_ids && random_.chance(4)) {
    return random_.pick<int64_t>({-1, INT64_MIN, INT64_MAX, 600, int64_t{1} << 40});
  }
  const uint64_t rows = o_.tables[table].rows;
  if (style_ == 1) return few_[random_.below(few_.size())] % static_cast<int64_t>(rows);
  for (int trial = 0; style_ == 2 && trial < 20; ++trial) {
    const uint64_t row = random_.below(rows);  // of a quarter of the sets, of some group
    if (mix64(make_key(table, row) ^ (11 + table / 3)) >> 62 == 0) return row;
  }
  return static_cast<int64_t>(random_.below(rows));
}

}  // namespace rowtide
