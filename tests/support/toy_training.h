#pragma once
// toy_training — a small trainer on rowtide.h whose result shows any stale, lost or doubled update.
//
// Batches are a pure function of (seed, step): skewed ids that drift, multi-hot bags, empty bags,
// two features on one table, a sequence feature, per-sample weights.  The gradient is a function of
// what was looked up, so one wrong bit spreads.

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <string>
#include <vector>

#include "runtime/rowtide.h"
#include "tests/support/scratch_directory.h"

namespace rowtide {

struct ToyBatch {
  std::vector<int64_t> ids, offsets;
  std::vector<float> weights;
  uint64_t samples = 0;
  Batch view() const {
    return {.samples = samples, .ids = ids, .offsets = offsets, .weights = weights};
  }
};

struct ToyModel {
  RuntimeOptions options;
  bool weighted = false;

  // Five tables of three record sizes, six features; one table small enough to be resident.
  static ToyModel make(OptimizerKind optimizer = OptimizerKind::kRowwiseAdagrad,
                       Precision precision = Precision::kFp32);
  ToyBatch batch(uint64_t step, uint64_t seed = 1) const;
  uint64_t all_rows() const;
};

struct ToyRun {
  uint64_t first = 0, steps = 100;  // steps [first, first + steps)
  uint32_t ahead = 0;               // submitted ahead; 0: known_batches
  uint64_t evaluate_every = 0, commit_every = 0;
  double drop_share = 0;  // of steps that are dropped instead of applied
};

// Trains and returns the sum of all that was looked up, as a fingerprint beside the digest.
double train_toy(const ToyModel& model, Runtime& runtime, const ToyRun& run);

inline std::unique_ptr<Runtime> open_or_fail(const RuntimeOptions& options) {
  auto runtime = Runtime::open(options);
  EXPECT_TRUE(runtime.ok()) << runtime.status().to_string();
  return runtime.ok() ? std::move(*runtime) : nullptr;
}

inline std::string digest_of(Runtime& runtime) {
  auto digest = runtime.digest();
  EXPECT_TRUE(digest.ok()) << digest.status().to_string();
  return digest.ok() ? digest->to_string() : "none";
}

}  // namespace rowtide
