#pragma once

#include <vector>

#include "kernels/weight_gradient.h"
#include "tests/reference/rows.h"

namespace rowtide {

inline void weight_gradient_reference(const WeightGradient& op, uint64_t begin, uint64_t end) {
  const PooledLookup& look = op.lookup;
  std::vector<float> g(look.format.width), row(look.format.width);
  for (uint64_t b = begin; b < end; ++b) {
    const float length = static_cast<float>(look.offsets[b + 1] - look.offsets[b]);
    for (int64_t i = look.offsets[b]; i < look.offsets[b + 1]; ++i) {
      float value = 0;
      if (look.unique[i] != kSkipped) {
        const bool own = look.pooling == Pooling::kNone;
        const uint64_t at = own ? static_cast<uint64_t>(i - look.offsets[0]) : b;
        for (uint32_t d = 0; d < look.format.width; ++d) {
          g[d] = op.gradient[at * op.stride + d];
          if (look.pooling == Pooling::kMean) g[d] /= length;
          row[d] = weight_reference(look.format, look.planes, look.slots[look.unique[i]], d);
        }
        value = lane_sum_reference(g.data(), row.data(), look.format.width);
      }
      op.out[i] = op.add ? op.out[i] + value : value;
    }
  }
}

}  // namespace rowtide
