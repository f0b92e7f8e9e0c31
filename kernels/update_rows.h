#pragma once
// update_rows — the gradients of each distinct row summed, then one optimizer step on it.
//
// A row's occurrences are summed by part, feature, sample, position: within blocks of 1,024
// occurrences from +0, then the block sums in order from +0 (counted over all parts together).
// What an occurrence i of a bag of `length` ids adds, with g the bag's row of the part's gradient:
//     kSum   w * g        kMean   w * (g / length)        kNone   w * g of its own row
// where w * is left out if there are no weights, and the decay if weight_decay is 0.  Then, per
// element, each operation rounded alone:
//     L2          g += weight_decay * w        (decoupled: w -= (lr * weight_decay) * w, first)
//     SGD         w -= lr * g
//     AdaGrad     s += g * g;                  w -= (lr * g) / (sqrt(s) + eps)
//     row-wise    s += (sum of g * g) / width; w -= (lr / (sqrt(s) + eps)) * g
//     Adam        m = beta1 * m + (1 - beta1) * g; v = beta2 * v + ((1 - beta2) * g) * g
//                 w -= (lr * (m / c1)) / (sqrt(v / c2) + eps)
// The row-wise sum: element d in lane d mod 32, lanes from +0, then lane l adds l + 16, 8, 4, 2, 1.
// fp16 and bf16 weights are widened, updated in fp32 and rounded stochastically (rounding.h).

#include <cstdint>

#include "kernels/rows.h"

namespace rowtide {

// One feature's share of a batch: occurrences [first, end) of the batch, in feature-major order.
struct GradientFeature {
  uint32_t first = 0;
  uint32_t end = 0;
  Pooling pooling = Pooling::kSum;
  const int64_t* offsets = nullptr;     // (samples + 1) as in the batch
  const uint32_t* sample = nullptr;     // (end - first) the sample of each occurrence, or
                                        // null: occurrence i belongs to sample i - first
  const float* const* parts = nullptr;  // (part_count) the feature's first column in each part
  uint64_t stride = 0;                  // floats between the rows of a part
};

struct OptimizerStep {
  float learning_rate = 0;
  float eps = 1e-8f;
  float beta1 = 0.9f, beta2 = 0.999f;
  float correction1 = 1, correction2 = 1;  // Adam: 1 - beta^t, taken in double on the host
  float weight_decay = 0;
  bool decoupled = false;
  uint64_t seed = 0;  // of the stochastic rounding, with the row's key and `step`
  uint64_t step = 0;
};

struct UpdateRows {
  RowFormat format;
  RowPlanes planes;
  OptimizerStep step;
  const Slot* slots = nullptr;                 // (rows)
  const Key* keys = nullptr;                   // (rows)
  const uint32_t* occurrence_begin = nullptr;  // (rows + 1) into occurrences
  const uint32_t* occurrences = nullptr;       // batch-wide occurrence numbers, ascending in a row
  const GradientFeature* features = nullptr;   // (feature_count) of this table, ascending
  uint32_t feature_count = 0;
  uint32_t part_count = 1;
  const float* weights = nullptr;  // per-sample weights by occurrence number, or null
};

// Updates rows [begin, end).  Single-threaded: rows are disjoint, the caller splits them.
// Memory: needs no scratch beyond the stack (width <= 4096).
void update_rows_cpu(const UpdateRows& op, uint64_t begin, uint64_t end);

}  // namespace rowtide
