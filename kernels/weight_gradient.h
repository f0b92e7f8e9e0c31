#pragma once
// weight_gradient — the gradient of per-sample weights.
//
//     out[i] = dot(g(i), row(i)),  g(i) as in update_rows without w;  0 for a skipped id
//
// The dot is summed as every sum over a row: 32 lanes from +0, then the tree 16, 8, 4, 2, 1.

#include "kernels/pooled_lookup.h"

namespace rowtide {

// `lookup` is the forward op (its out and weights are unused); `gradient` is (bags, width), or
// (ids, width) for kNone, rows `stride` floats apart; out is (ids), counted as `unique` is, and
// added to if `add` (second and later parts).  Works on bags [begin, end).
struct WeightGradient {
  PooledLookup lookup;
  const float* gradient = nullptr;
  uint64_t stride = 0;
  float* out = nullptr;
  bool add = false;
};

void weight_gradient_cpu(const WeightGradient& op, uint64_t begin, uint64_t end);

}  // namespace rowtide
