#include "kernels/lanes.h"
#include "kernels/philox_lanes.h"
#include "kernels/update_rows.h"

namespace rowtide::ROWTIDE_LANES {
namespace {

constexpr uint32_t kMaxWidth = 4096;
constexpr uint32_t kBlock = 1024;  // occurrences summed before their sum is added to the row's
constexpr uint32_t kPanel = 8;     // vectors in registers at once

// How far ahead memory is asked for: occurrences for gradients, rows for weights and state.
constexpr uint32_t kGradientsAhead = 16;
constexpr uint32_t kRowsAhead = 8;
constexpr uint32_t kMostBytesAhead = 1024;  // of one row; the hardware prefetcher sees the rest

// Where the gradient of an occurrence lies.
struct Gradients {
  explicit Gradients(const UpdateRows& update) : op(update), feature(update.features) {}

  // To the feature of `occurrence`: nearly always the one it stands on.
  void to(uint32_t occurrence) {
    if (occurrence - feature->first < feature->end - feature->first) return;
    uint32_t low = 0, high = op.feature_count;
    while (high - low > 1) {
      const uint32_t middle = (low + high) / 2;
      (op.features[middle].first <= occurrence ? low : high) = middle;
    }
    feature = op.features + low;
  }
  uint64_t sample(uint32_t occurrence) const {
    const uint32_t position = occurrence - feature->first;
    return feature->sample ? feature->sample[position] : position;
  }
  const float* row(uint32_t occurrence, uint32_t part) const {
    const bool own = feature->pooling == Pooling::kNone;
    const uint64_t index = own ? occurrence - feature->first : sample(occurrence);
    return feature->parts[part] + index * feature->stride;
  }
  float length(uint32_t occurrence) const {
    const uint64_t s = sample(occurrence);
    return static_cast<float>(feature->offsets[s + 1] - feature->offsets[s]);
  }

  const UpdateRows& op;
  const GradientFeature* feature;
};

// Asks for memory that the rows after the current one will need.
struct Prefetch {
  Prefetch(const UpdateRows& update, uint64_t end)
      : op(update),
        gradients(update),
        end_row(end),
        end_occurrence(update.occurrence_begin[end]),
        bytes(update.format.width * 4 < kMostBytesAhead ? update.format.width * 4
                                                        : kMostBytesAhead) {}

  void gradient_after(uint32_t j) {
    if (j + kGradientsAhead >= end_occurrence) return;
    const uint32_t occurrence = op.occurrences[j + kGradientsAhead];
    gradients.to(occurrence);
    for (uint32_t part = 0; part < op.part_count; ++part) {
      prefetch_lines(gradients.row(occurrence, part), bytes);
    }
  }
  void row_after(uint64_t r) const {
    if (r + kRowsAhead >= end_row) return;
    const RowPlanes& planes = op.planes;
    const uint64_t slot = op.slots[r + kRowsAhead];
    const uint32_t w = planes.weight_stride, s = planes.state_stride;
    prefetch_lines(planes.weights + slot * w, w < kMostBytesAhead ? w : kMostBytesAhead);
    prefetch_lines(planes.state + slot * s, s < kMostBytesAhead ? s : kMostBytesAhead);
  }

  const UpdateRows& op;
  Gradients gradients;
  uint64_t end_row;
  uint32_t end_occurrence;
  uint32_t bytes;
};

template <uint32_t K, uint32_t N>
inline void add(const Gradients& at, uint32_t occurrence, uint32_t part, Panel<K, N> panel,
                Floats<K>* sum) {
  const float* row = at.row(occurrence, part);
  const bool mean = at.feature->pooling == Pooling::kMean;
  const float length = mean ? at.length(occurrence) : 1.0f;
  const float* weights = at.op.weights;
  for (uint32_t n = 0; n < N; ++n) {
    Floats<K> g = load<K>(row + panel.column(n));
    if (mean) g = g / length;
    if (weights) g = weights[occurrence] * g;
    sum[n] = sum[n] + g;
  }
}

// Adds a block's sum to the row's.  A sum from +0 is never -0, so the first needs no adding to +0.
// All is read before any is written: the last vector may overlap.
template <uint32_t K, uint32_t N>
inline void add_block(bool first, Panel<K, N> panel, Floats<K>* block, float* total) {
  if (!first) {
    for (uint32_t n = 0; n < N; ++n) block[n] = load<K>(total + panel.column(n)) + block[n];
  }
  for (uint32_t n = 0; n < N; ++n) store<K>(total + panel.column(n), block[n]);
}

// The gradient of row r in the panel's columns of `total`.
template <uint32_t K, uint32_t N>
inline void sum_panel(const UpdateRows& op, uint64_t r, Panel<K, N> panel, Prefetch& prefetch,
                      float* total) {
  const uint32_t begin = op.occurrence_begin[r], end = op.occurrence_begin[r + 1];
  Gradients at(op);
  Floats<K> block[N] = {};
  uint64_t seen = 0;
  for (uint32_t part = 0; part < op.part_count; ++part) {
    for (uint32_t j = begin; j < end; ++j) {
      if (part == 0 && panel.first == 0) prefetch.gradient_after(j);
      if (seen > 0 && seen % kBlock == 0) {
        add_block(seen == kBlock, panel, block, total);
        for (uint32_t n = 0; n < N; ++n) block[n] = Floats<K>{};
      }
      at.to(op.occurrences[j]);
      add(at, op.occurrences[j], part, panel, block);
      ++seen;
    }
  }
  add_block(seen <= kBlock, panel, block, total);
}

using SumRow = void (*)(const UpdateRows&, uint64_t, Prefetch&, float*);

template <uint32_t K, uint32_t N>
void sum_row(const UpdateRows& op, uint64_t r, Prefetch& prefetch, float* total) {
  sum_panel(op, r, Panel<K, N>::ending_at(0, op.format.width), prefetch, total);
}

// Rows wider than one panel.  The last one sums some columns again, into the same bits.
void sum_wide_row(const UpdateRows& op, uint64_t r, Prefetch& prefetch, float* total) {
  constexpr uint32_t kStep = kPanel * kVector;
  const uint32_t width = op.format.width;
  uint32_t column = 0;
  for (; column + kStep <= width; column += kStep) {
    const auto panel = Panel<kVector, kPanel>::ending_at(column, column + kStep);
    sum_panel(op, r, panel, prefetch, total);
  }
  if (column == width) return;
  const auto panel = Panel<kVector, kPanel>::ending_at(width - kStep, width);
  sum_panel(op, r, panel, prefetch, total);
}

SumRow sum_for(uint32_t width) {
  constexpr SumRow kByVectors[kPanel] = {
      sum_row<kVector, 1>, sum_row<kVector, 2>, sum_row<kVector, 3>, sum_row<kVector, 4>,
      sum_row<kVector, 5>, sum_row<kVector, 6>, sum_row<kVector, 7>, sum_row<kVector, 8>};
  if (width > kPanel * kVector) return sum_wide_row;
  if (width >= kVector) return kByVectors[(width - 1) / kVector];
  if (kVector > 8 && width >= 8) return sum_row<kUpTo8, 2>;
  if (kVector > 4 && width >= 4) return sum_row<4, 2>;
  return width == 3 ? sum_row<1, 3> : sum_row<1, 2>;
}

// REQUIRES: g has zeros up to the next multiple of 32.
float sum_of_squares(const float* g, uint32_t width) {
  constexpr uint32_t kVectors = 32 / kVector;
  Floats<kVector> sum[kVectors] = {};
  for (uint32_t d = 0; d < width; d += 32) {
    for (uint32_t n = 0; n < kVectors; ++n) {
      const Floats<kVector> x = load<kVector>(g + d + n * kVector);
      sum[n] = sum[n] + x * x;
    }
  }
  float lane[32];
  for (uint32_t n = 0; n < kVectors; ++n) store<kVector>(lane + n * kVector, sum[n]);
  return sum_of_lanes(lane);
}

// One optimizer's step on a row of fp32 weights.  kWidth is the width, or 0: any.
using StepRow = void (*)(const OptimizerStep&, uint32_t, float*, float*, float*);

template <uint32_t kWidth>
void decay(const OptimizerStep& step, uint32_t any, float* __restrict w, float* __restrict g) {
  const uint32_t width = kWidth ? kWidth : any;
  if (step.decoupled) {
    const float rate = step.learning_rate * step.weight_decay;
    for (uint32_t d = 0; d < width; ++d) w[d] = w[d] - rate * w[d];
  } else {
    for (uint32_t d = 0; d < width; ++d) g[d] = g[d] + step.weight_decay * w[d];
  }
}

template <OptimizerKind kKind, uint32_t kWidth>
void step_row(const OptimizerStep& step, uint32_t any, float* __restrict w, float* __restrict state,
              float* __restrict g) {
  const uint32_t width = kWidth ? kWidth : any;
  const float rate = step.learning_rate, eps = step.eps;
  if (step.weight_decay != 0) decay<kWidth>(step, width, w, g);
  if constexpr (kKind == OptimizerKind::kSgd) {
    for (uint32_t d = 0; d < width; ++d) w[d] = w[d] - rate * g[d];
  } else if constexpr (kKind == OptimizerKind::kAdagrad) {
    for (uint32_t d = 0; d < width; ++d) {
      state[d] = state[d] + g[d] * g[d];
      w[d] = w[d] - (rate * g[d]) / (__builtin_sqrtf(state[d]) + eps);
    }
  } else if constexpr (kKind == OptimizerKind::kRowwiseAdagrad) {
    for (uint32_t d = width; d % 32 != 0; ++d) g[d] = 0;
    state[0] = state[0] + sum_of_squares(g, width) / static_cast<float>(width);
    const float factor = rate / (__builtin_sqrtf(state[0]) + eps);
    for (uint32_t d = 0; d < width; ++d) w[d] = w[d] - factor * g[d];
  } else {
    const float rest1 = 1.0f - step.beta1, rest2 = 1.0f - step.beta2;
    float* __restrict m = state;
    float* __restrict v = state + width;
    for (uint32_t d = 0; d < width; ++d) {
      m[d] = step.beta1 * m[d] + rest1 * g[d];
      v[d] = step.beta2 * v[d] + (rest2 * g[d]) * g[d];
      w[d] = w[d] -
             (rate * (m[d] / step.correction1)) / (__builtin_sqrtf(v[d] / step.correction2) + eps);
    }
  }
}

template <OptimizerKind kKind>
StepRow step_for(uint32_t width) {
  switch (width) {
    case 16:
      return step_row<kKind, 16>;
    case 32:
      return step_row<kKind, 32>;
    case 64:
      return step_row<kKind, 64>;
    case 128:
      return step_row<kKind, 128>;
    default:
      return step_row<kKind, 0>;
  }
}

StepRow step_for(const RowFormat& format) {
  switch (format.optimizer) {
    case OptimizerKind::kSgd:
      return step_for<OptimizerKind::kSgd>(format.width);
    case OptimizerKind::kAdagrad:
      return step_for<OptimizerKind::kAdagrad>(format.width);
    case OptimizerKind::kRowwiseAdagrad:
      return step_for<OptimizerKind::kRowwiseAdagrad>(format.width);
    case OptimizerKind::kAdam:
      return step_for<OptimizerKind::kAdam>(format.width);
  }
  return nullptr;
}

template <typename Element>
void widen_row(const std::byte* from, uint32_t width, float* w) {
  const auto* stored = reinterpret_cast<const typename Element::Stored*>(from);
  uint32_t d = 0;
  for (; d + kVector <= width; d += kVector) {
    store<kVector>(w + d, Element::template load<kVector>(stored + d));
  }
  for (; d < width; ++d) w[d] = Element::template load<1>(stored + d);
}

template <typename Element>
void round_row(const OptimizerStep& step, Key key, uint32_t width, const float* w, std::byte* to) {
  for (uint32_t d = 0; d < width; d += kRandomWords) {
    const uint32_t count = width - d < kRandomWords ? width - d : kRandomWords;
    uint32_t random[kRandomWords];
    random_words<3>(step.seed, rounding_counter(key, step.step, d / 4), random);
    float x[kRandomWords] = {};
    typename Element::Stored rounded[kRandomWords];
    __builtin_memcpy(x, w + d, count * sizeof(float));
    for (uint32_t n = 0; n < kRandomWords; ++n) rounded[n] = Element::stochastic(x[n], random[n]);
    __builtin_memcpy(to + uint64_t{d} * Element::kBytes, rounded, count * Element::kBytes);
  }
}

template <typename Element>
void update(const UpdateRows& op, uint64_t begin, uint64_t end) {
  alignas(kCacheLine) float gradient[kMaxWidth];
  alignas(kCacheLine) float widened[kMaxWidth];
  const uint32_t width = op.format.width;
  const SumRow sum = sum_for(width);
  const StepRow step = step_for(op.format);
  Prefetch prefetch(op, end);
  for (uint64_t r = begin; r < end; ++r) {
    prefetch.row_after(r);
    sum(op, r, prefetch, gradient);
    const uint64_t slot = op.slots[r];
    std::byte* weights = op.planes.weights + slot * op.planes.weight_stride;
    auto* state = reinterpret_cast<float*>(op.planes.state + slot * op.planes.state_stride);
    if constexpr (Element::kBytes == 4) {
      step(op.step, width, reinterpret_cast<float*>(weights), state, gradient);
    } else {
      widen_row<Element>(weights, width, widened);
      step(op.step, width, widened, state, gradient);
      round_row<Element>(op.step, op.keys[r], width, widened, weights);
    }
  }
}

}  // namespace

void update_rows(const UpdateRows& op, uint64_t begin, uint64_t end) {
  switch (op.format.precision) {
    case Precision::kFp32:
      return update<Fp32>(op, begin, end);
    case Precision::kFp16:
      return update<Fp16>(op, begin, end);
    case Precision::kBf16:
      return update<Bf16>(op, begin, end);
  }
}

}  // namespace rowtide::ROWTIDE_LANES
