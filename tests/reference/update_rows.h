#pragma once

#include <cmath>
#include <vector>

#include "kernels/philox.h"
#include "kernels/update_rows.h"
#include "tests/reference/rows.h"

namespace rowtide {

// What occurrence `o` of `feature` adds to element d.
inline float contribution_reference(const UpdateRows& op, const GradientFeature& feature,
                                    uint32_t part, uint32_t o, uint32_t d) {
  const uint32_t position = o - feature.first;
  const uint64_t sample = feature.sample ? feature.sample[position] : position;
  const uint64_t row = feature.pooling == Pooling::kNone ? position : sample;
  float g = feature.parts[part][row * feature.stride + d];
  if (feature.pooling == Pooling::kMean) {
    g /= static_cast<float>(feature.offsets[sample + 1] - feature.offsets[sample]);
  }
  return op.weights ? op.weights[o] * g : g;
}

inline float summed_gradient_reference(const UpdateRows& op, uint64_t r, uint32_t d) {
  float total = 0, block = 0;
  uint32_t in_block = 0;
  for (uint32_t part = 0; part < op.part_count; ++part) {
    for (uint32_t j = op.occurrence_begin[r]; j < op.occurrence_begin[r + 1]; ++j) {
      const uint32_t o = op.occurrences[j];
      const GradientFeature* feature = op.features;
      while (o < feature->first || o >= feature->end) ++feature;
      block += contribution_reference(op, *feature, part, o, d);
      if (++in_block < 1024) continue;
      total += block;
      block = 0, in_block = 0;
    }
  }
  return total + block;
}

// One step on one element: `g` is the summed gradient, `mean_square` that of the whole row.
inline float stepped_weight_reference(const UpdateRows& op, float w, float g, float mean_square,
                                      float* state, uint32_t d) {
  const OptimizerStep& step = op.step;
  const float lr = step.learning_rate;
  switch (op.format.optimizer) {
    case OptimizerKind::kSgd:
      return w - lr * g;
    case OptimizerKind::kAdagrad:
      state[d] += g * g;
      return w - (lr * g) / (std::sqrt(state[d]) + step.eps);
    case OptimizerKind::kRowwiseAdagrad:
      if (d == 0) state[0] += mean_square;
      return w - (lr / (std::sqrt(state[0]) + step.eps)) * g;
    case OptimizerKind::kAdam: {
      float& m = state[d];
      float& v = state[op.format.width + d];
      m = step.beta1 * m + (1 - step.beta1) * g;
      v = step.beta2 * v + ((1 - step.beta2) * g) * g;
      return w - (lr * (m / step.correction1)) / (std::sqrt(v / step.correction2) + step.eps);
    }
  }
  return w;
}

inline void store_weight_reference(const UpdateRows& op, uint64_t r, uint32_t d, float w) {
  const RowFormat& format = op.format;
  std::byte* row = op.planes.weights + uint64_t{op.slots[r]} * op.planes.weight_stride;
  if (format.precision == Precision::kFp32) {
    std::memcpy(row + d * sizeof w, &w, sizeof w);
    return;
  }
  const PhiloxBlock counter = rounding_counter(op.keys[r], op.step.step, d / 4);
  const uint32_t random = philox4x32_10(op.step.seed, counter).word[d % 4];
  const uint16_t half = stochastic_reference(format.precision, w, random);
  std::memcpy(row + d * sizeof half, &half, sizeof half);
}

inline void update_rows_reference(const UpdateRows& op, uint64_t begin, uint64_t end) {
  const uint32_t width = op.format.width;
  const OptimizerStep& step = op.step;
  std::vector<float> w(width), g(width);
  for (uint64_t r = begin; r < end; ++r) {
    for (uint32_t d = 0; d < width; ++d) {
      g[d] = summed_gradient_reference(op, r, d);
      w[d] = weight_reference(op.format, op.planes, op.slots[r], d);
      if (step.weight_decay == 0) continue;
      if (step.decoupled) {
        w[d] -= (step.learning_rate * step.weight_decay) * w[d];
      } else {
        g[d] += step.weight_decay * w[d];
      }
    }
    const float squares = lane_sum_reference(g.data(), g.data(), width);
    const float mean_square = squares / static_cast<float>(width);
    float* state = state_reference(op.planes, op.slots[r]);
    for (uint32_t d = 0; d < width; ++d) {
      store_weight_reference(op, r, d,
                             stepped_weight_reference(op, w[d], g[d], mean_square, state, d));
    }
  }
}

}  // namespace rowtide
