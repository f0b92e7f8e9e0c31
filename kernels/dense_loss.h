#pragma once
// dense_loss — binary cross-entropy of logits, and its gradient.
//
//     loss = max(x, 0) - x * label + log1p(exp(-|x|)), gradient = (sigmoid(x) - label) / batch
//
// Computed in double: finite for every finite logit.  The returned sum is in sample order.

#include <cstdint>

namespace rowtide {

struct BceWithLogits {
  const float* logits = nullptr;  // (samples)
  const float* labels = nullptr;  // (samples)
  float* gradient = nullptr;      // (samples)
  uint64_t samples = 0;           // of this block
  uint64_t batch = 0;             // of all blocks: what the mean divides by
};

// Returns the sum of the samples' losses.
double bce_with_logits_cpu(const BceWithLogits& op);

}  // namespace rowtide
