#pragma once
// dense_update — one optimizer step on a run of dense weights.
//
// The formulas, and the order of every rounding, are those of update_rows.h for one row of n
// elements.  The same bits from every implementation.

#include <cstdint>

#include "kernels/update_rows.h"

namespace rowtide {

struct DenseUpdate {
  OptimizerKind optimizer = OptimizerKind::kSgd;  // any but row-wise AdaGrad
  OptimizerStep step;                             // its seed and step are unused: fp32 only
  float* weight = nullptr;                        // (n)
  const float* gradient = nullptr;                // (n)
  float* state = nullptr;                         // (n) AdaGrad's s, Adam's m
  float* state2 = nullptr;                        // (n) Adam's v
  uint64_t n = 0;
};
void dense_update_cpu(const DenseUpdate& op);

}  // namespace rowtide
