#include "kernels/dense_lanes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace rowtide::ROWTIDE_LANES {
namespace {

// 16 floats: one AVX-512 register, two of AVX2, four of SSE; the compiler splits it.
constexpr uint32_t kStrip = 16;
typedef float Strip __attribute__((vector_size(4 * kStrip), aligned(4), may_alias));

const Strip& strip_at(const float* p) { return *reinterpret_cast<const Strip*>(p); }
Strip& strip_at(float* p) { return *reinterpret_cast<Strip*>(p); }

// A NaN stays one: a model that diverged must not hide behind its ReLUs.
void add_bias(const LinearForward& op) {
  for (uint64_t s = 0; s < op.samples; ++s) {
    float* __restrict y = op.y + s * op.y_stride;
    const float* __restrict bias = op.bias;
    if (op.relu) {
      for (uint32_t j = 0; j < op.out; ++j) {
        const float v = y[j] + bias[j];
        y[j] = v < 0 ? 0 : v;
      }
    } else {
      for (uint32_t j = 0; j < op.out; ++j) y[j] += bias[j];
    }
  }
}

void relu_gradient(const ReluGradient& op) {
  for (uint64_t s = 0; s < op.samples; ++s) {
    const float* __restrict activation = op.activation + s * op.activation_stride;
    float* __restrict gradient = op.gradient + s * op.gradient_stride;
    for (uint32_t j = 0; j < op.width; ++j) {
      gradient[j] = activation[j] <= 0 ? 0 : gradient[j];
    }
  }
}

// Sums `kStrips` strips of columns at once, so that they stay in registers.
template <uint32_t kStrips>
void add_rows_of(const float* dy, uint64_t dy_stride, uint64_t samples, float* db, bool add) {
  Strip sum[kStrips] = {};
  for (uint64_t s = 0; s < samples; ++s) {
    for (uint32_t k = 0; k < kStrips; ++k) sum[k] += strip_at(dy + s * dy_stride + k * kStrip);
  }
  for (uint32_t k = 0; k < kStrips; ++k) {
    Strip& to = strip_at(db + k * kStrip);
    to = add ? to + sum[k] : sum[k];
  }
}

void add_rows(const float* dy, uint64_t dy_stride, uint64_t samples, uint32_t out, float* db,
              bool add) {
  uint32_t j = 0;
  for (; j + 4 * kStrip <= out; j += 4 * kStrip) {
    add_rows_of<4>(dy + j, dy_stride, samples, db + j, add);
  }
  for (; j + kStrip <= out; j += kStrip) add_rows_of<1>(dy + j, dy_stride, samples, db + j, add);
  for (; j < out; ++j) {
    float sum = 0;
    for (uint64_t s = 0; s < samples; ++s) sum += dy[s * dy_stride + j];
    db[j] = add ? db[j] + sum : sum;
  }
}

// Element d of vector v lies at (v / 16 * dim + d) * 16 + v % 16: the dots of one vector with 16
// others are then dim multiply-adds of a strip.
void transpose(const float* row, uint32_t v, uint32_t dim, float* scratch) {
  float* to = scratch + uint64_t{v / kStrip} * dim * kStrip + v % kStrip;
  for (uint32_t d = 0; d < dim; ++d) to[d * kStrip] = row[d];
}

// kDim is op.dim, or 0 for any.
template <uint32_t kDim>
void dots_of_samples(const DotInteraction& op) {
  const uint32_t dim = kDim != 0 ? kDim : op.dim;
  const uint64_t pairs = dot_interaction_pairs(op.vectors);
  std::fill_n(op.scratch, dot_interaction_scratch(op.vectors, dim), 0.0f);
  for (uint64_t s = 0; s < op.samples; ++s) {
    const float* first = op.first + s * op.first_stride;
    const float* others = op.others + s * (op.vectors - 1) * dim;
    float* out = op.out + s * op.out_stride;
    std::memcpy(out, first, dim * sizeof(float));
    out += dim;
    transpose(first, 0, dim, op.scratch);
    for (uint32_t i = 1; i < op.vectors; ++i) {
      const float* row = others + uint64_t{i - 1} * dim;
      transpose(row, i, dim, op.scratch);
      for (uint32_t j = 0; j < i; j += kStrip) {
        const float* strip = op.scratch + uint64_t{j} * dim;
        Strip sum = {};
        for (uint32_t d = 0; d < dim; ++d) sum += row[d] * strip_at(strip + d * kStrip);
        // A strip may run into the next row, which is written later; never past the last.
        const uint64_t at = dot_interaction_pairs(i) + j;
        if (at + kStrip <= pairs) {
          strip_at(out + at) = sum;
        } else {
          std::memcpy(out + at, &sum, std::min(i - j, kStrip) * sizeof(float));
        }
      }
    }
  }
}

void dot_interaction(const DotInteraction& op) {
  switch (op.dim) {
    case 16:
      return dots_of_samples<16>(op);
    case 32:
      return dots_of_samples<32>(op);
    case 64:
      return dots_of_samples<64>(op);
    case 128:
      return dots_of_samples<128>(op);
    default:
      return dots_of_samples<0>(op);
  }
}

// One row of pairs: to_i = sum of g[j] * z_j, to_j += g[j] * z_i.
template <uint32_t kDim>
void gradient_of_row(const float* __restrict g, uint32_t i, uint32_t dim,
                     const float* __restrict first, const float* __restrict others,
                     float* __restrict to_first, float* __restrict to_others) {
  const float* zi = others + uint64_t{i - 1} * dim;
  float* to_i = to_others + uint64_t{i - 1} * dim;
  if constexpr (kDim != 0) {
    constexpr uint32_t kStrips = kDim / kStrip;
    Strip sum[kStrips] = {};
    for (uint32_t j = 0; j < i; ++j) {
      const float* zj = j == 0 ? first : others + uint64_t{j - 1} * dim;
      float* to_j = j == 0 ? to_first : to_others + uint64_t{j - 1} * dim;
      for (uint32_t k = 0; k < kStrips; ++k) {
        sum[k] += g[j] * strip_at(zj + k * kStrip);
        strip_at(to_j + k * kStrip) += g[j] * strip_at(zi + k * kStrip);
      }
    }
    for (uint32_t k = 0; k < kStrips; ++k) strip_at(to_i + k * kStrip) = sum[k];
  } else {
    std::fill_n(to_i, dim, 0.0f);
    for (uint32_t j = 0; j < i; ++j) {
      const float* zj = j == 0 ? first : others + uint64_t{j - 1} * dim;
      float* to_j = j == 0 ? to_first : to_others + uint64_t{j - 1} * dim;
      for (uint32_t d = 0; d < dim; ++d) to_i[d] += g[j] * zj[d];
      for (uint32_t d = 0; d < dim; ++d) to_j[d] += g[j] * zi[d];
    }
  }
}

template <uint32_t kDim>
void gradient_of_samples(const DotInteractionGradient& op) {
  const uint32_t dim = kDim != 0 ? kDim : op.dim;
  for (uint64_t s = 0; s < op.samples; ++s) {
    const float* gradient = op.gradient + s * op.gradient_stride;
    const uint64_t at = s * (op.vectors - 1) * dim;
    float* to_first = op.first_gradient + s * op.first_gradient_stride;
    std::memcpy(to_first, gradient, dim * sizeof(float));
    for (uint32_t i = 1; i < op.vectors; ++i) {
      gradient_of_row<kDim>(gradient + dim + dot_interaction_pairs(i), i, dim,
                            op.first + s * op.first_stride, op.others + at, to_first,
                            op.others_gradient + at);
    }
  }
}

void dot_interaction_gradient(const DotInteractionGradient& op) {
  switch (op.dim) {
    case 16:
      return gradient_of_samples<16>(op);
    case 32:
      return gradient_of_samples<32>(op);
    case 64:
      return gradient_of_samples<64>(op);
    case 128:
      return gradient_of_samples<128>(op);
    default:
      return gradient_of_samples<0>(op);
  }
}

// Weight decay, then `step`(w, g, i): one pass over weights, gradients and states.
template <typename Step>
void for_each_weight(const DenseUpdate& op, Step step) {
  float* __restrict weight = op.weight;
  const float* __restrict gradient = op.gradient;
  const float l2 = op.step.decoupled ? 0 : op.step.weight_decay;
  const float decay = op.step.decoupled ? op.step.learning_rate * op.step.weight_decay : 0;
  if (l2 != 0) {
    for (uint64_t i = 0; i < op.n; ++i) {
      weight[i] = step(weight[i], gradient[i] + l2 * weight[i], i);
    }
  } else if (decay != 0) {
    for (uint64_t i = 0; i < op.n; ++i) {
      weight[i] = step(weight[i] - decay * weight[i], gradient[i], i);
    }
  } else {
    for (uint64_t i = 0; i < op.n; ++i) weight[i] = step(weight[i], gradient[i], i);
  }
}

void dense_update(const DenseUpdate& op) {
  const OptimizerStep o = op.step;
  const float lr = o.learning_rate;
  if (op.optimizer == OptimizerKind::kSgd) {
    for_each_weight(op, [=](float w, float g, uint64_t) { return w - lr * g; });
  } else if (op.optimizer == OptimizerKind::kAdagrad) {
    float* __restrict state = op.state;
    for_each_weight(op, [=](float w, float g, uint64_t i) {
      const float s = state[i] + g * g;
      state[i] = s;
      return w - (lr * g) / (std::sqrt(s) + o.eps);
    });
  } else {
    float* __restrict ms = op.state, * __restrict vs = op.state2;
    const float one_beta1 = 1 - o.beta1, one_beta2 = 1 - o.beta2;
    for_each_weight(op, [=](float w, float g, uint64_t i) {
      const float m = o.beta1 * ms[i] + one_beta1 * g;
      const float v = o.beta2 * vs[i] + (one_beta2 * g) * g;
      ms[i] = m;
      vs[i] = v;
      return w - (lr * (m / o.correction1)) / (std::sqrt(v / o.correction2) + o.eps);
    });
  }
}

}  // namespace

const DenseLanes dense_lanes = {
    add_bias, relu_gradient, add_rows, dot_interaction, dot_interaction_gradient, dense_update};

}  // namespace rowtide::ROWTIDE_LANES
