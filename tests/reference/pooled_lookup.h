#pragma once

#include <algorithm>

#include "kernels/pooled_lookup.h"
#include "tests/reference/rows.h"

namespace rowtide {

inline void pooled_lookup_reference(const PooledLookup& op, uint64_t begin, uint64_t end) {
  for (uint64_t b = begin; b < end; ++b) {
    float* out = op.out + b * op.out_stride;
    const int64_t length = op.offsets[b + 1] - op.offsets[b];
    for (uint32_t d = 0; d < op.format.width; ++d) {
      float sum = 0;
      for (int64_t i = op.offsets[b]; i < op.offsets[b + 1]; ++i) {
        if (op.unique[i] == kSkipped) continue;
        const float x = weight_reference(op.format, op.planes, op.slots[op.unique[i]], d);
        sum += op.weights ? op.weights[i] * x : x;
      }
      out[d] = op.pooling == Pooling::kMean && length > 0 ? sum / static_cast<float>(length) : sum;
    }
  }
}

inline void sequence_lookup_reference(const PooledLookup& op, uint64_t begin, uint64_t end) {
  for (uint64_t n = begin; n < end; ++n) {
    const int64_t i = op.offsets[0] + static_cast<int64_t>(n);
    for (uint32_t d = 0; d < op.format.width; ++d) {
      float& out = op.out[n * op.out_stride + d];
      out = 0;
      if (op.unique[i] == kSkipped) continue;
      const float x = weight_reference(op.format, op.planes, op.slots[op.unique[i]], d);
      out = op.weights ? op.weights[i] * x : x;
    }
  }
}

}  // namespace rowtide
