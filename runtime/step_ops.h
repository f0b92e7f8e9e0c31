#pragma once
// StepOps — look-up and update of whole batches: the ops of kernels/ over features and threads.
//
// It knows where rows are (slots) and who uses them; nothing of why.

#include <span>
#include <vector>

#include "kernels/pooled_lookup.h"
#include "kernels/update_rows.h"
#include "runtime/base/parallel.h"
#include "runtime/layout.h"
#include "runtime/placed_batch.h"
#include "runtime/tiers.h"

namespace rowtide {

class StepOps {
 public:
  StepOps(const Layout& layout, const RuntimeOptions& options, std::vector<GroupTier>& tiers,
          Parallel& parallel);

  // Errors: kInvalid, naming the shape.
  template <typename Float>
  Status check_shapes(const KnownBatch& known, const Values<Float>& values) const;

  void forward(const KnownBatch& known, const PlacedBatch& placed, const Values<float>& out);

  // Adds to `out` (ids), or writes it.
  void weights_gradient(const KnownBatch& known, const PlacedBatch& placed,
                        const Values<const float>& gradient, float* out, bool add);

  // Updates each row once with the sum over all parts, and marks it dirty.
  void apply(const KnownBatch& known, const PlacedBatch& placed,
             std::span<const Values<const float>> parts, const ApplyOptions& options,
             uint64_t global_step);

 private:
  // A piece of work for one thread: units [begin, end) of feature f.
  struct Task {
    uint32_t feature;
    uint64_t begin, end;
  };

  void cut(uint32_t feature, uint64_t count, uint64_t block);
  PooledLookup lookup_of(uint32_t f, const KnownBatch& known, const PlacedBatch& placed) const;
  void fill_features(const KnownBatch& known, const PlacedBatch& placed,
                     std::span<const Values<const float>> parts);

  const Layout& layout_;
  uint64_t seed_;
  std::vector<GroupTier>& tiers_;
  Parallel& parallel_;
  std::vector<Task> tasks_;
  std::vector<GradientFeature> gradient_features_;  // by table, ascending; first_of_table_ indexes
  std::vector<uint32_t> first_of_table_;
  std::vector<const float*> part_columns_;  // (features, parts)
};

}  // namespace rowtide
