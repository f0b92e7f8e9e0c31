#include "kernels/dense_lanes.h"

#include <utility>

#include "kernels/lanes.h"

namespace rowtide::ROWTIDE_LANES {
namespace {

constexpr uint32_t kStrip = kVector;
using Strip = Floats<kStrip>;

inline Strip strip_at(const float* from) { return load<kStrip>(from); }
inline void put_strip(float* to, const Strip& strip) { store<kStrip>(to, strip); }
inline uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }
inline void copy(const float* from, uint32_t n, float* to) {
  __builtin_memcpy(to, from, n * sizeof(float));
}

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
    float* to = db + k * kStrip;
    put_strip(to, add ? strip_at(to) + sum[k] : sum[k]);
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

template <size_t... kLane>
void interleave(const Strip& a, const Strip& b, Strip& low, Strip& high,
                std::index_sequence<kLane...>) {
  low = __builtin_shufflevector(a, b, (kLane % 2 * kStrip + kLane / 2)...);
  high = __builtin_shufflevector(a, b, (kLane % 2 * kStrip + kLane / 2 + kStrip / 2)...);
}

// A square of kStrip rows: each round interleaves row r with row r + half.
void transpose(Strip (&square)[kStrip]) {
  for (uint32_t round = 1; round < kStrip; round *= 2) {
    Strip next[kStrip];
    for (uint32_t r = 0; r < kStrip / 2; ++r) {
      interleave(square[r], square[r + kStrip / 2], next[2 * r], next[2 * r + 1],
                 std::make_index_sequence<kStrip>());
    }
    for (uint32_t r = 0; r < kStrip; ++r) square[r] = next[r];
  }
}

// A sample's vectors, and the gradients of them.
template <typename Float>
struct Vectors {
  Float* first;
  Float* others;
  uint32_t dim;
  Float* operator[](uint32_t v) const { return v == 0 ? first : others + uint64_t{v - 1} * dim; }
};

// Element d of vector v goes to (v / kStrip * dim + d) * kStrip + v % kStrip: the dots of one
// vector with kStrip others are then dim multiply-adds of a strip.  Lanes past the last are zeros.
void transpose_sample(const Vectors<const float>& z, uint32_t vectors, float* to) {
  for (uint32_t v = 0; v < vectors; v += kStrip, to += uint64_t{z.dim} * kStrip) {
    const uint32_t rows = least(kStrip, vectors - v);
    uint32_t d = 0;
    for (; d + kStrip <= z.dim; d += kStrip) {
      Strip square[kStrip] = {};
      for (uint32_t r = 0; r < kStrip; ++r) {
        if (r < rows) square[r] = strip_at(z[v + r] + d);
      }
      transpose(square);
      for (uint32_t r = 0; r < kStrip; ++r) put_strip(to + (d + r) * kStrip, square[r]);
    }
    for (; d < z.dim; ++d) {
      for (uint32_t r = 0; r < kStrip; ++r) to[d * kStrip + r] = r < rows ? z[v + r][d] : 0;
    }
  }
}

// The dots of vectors [i, i + kRows) with the strip of vectors that `strip` holds transposed.
template <uint32_t kRows>
void dots_of_rows(const Vectors<const float>& z, uint32_t i, const float* strip, float* to,
                  uint32_t to_stride) {
  const float* rows[kRows];
  for (uint32_t r = 0; r < kRows; ++r) rows[r] = z[i + r];
  Strip sum[kRows] = {};
  for (uint32_t d = 0; d < z.dim; ++d) {
    const Strip others = strip_at(strip + d * kStrip);
    for (uint32_t r = 0; r < kRows; ++r) sum[r] += rows[r][d] * others;
  }
  for (uint32_t r = 0; r < kRows; ++r) put_strip(to + r * to_stride, sum[r]);
}

// Copies row i's first i values behind each other.  A strip may run into the next row, which is
// written later; none runs past the last.
void pack_triangle(const float* square, uint32_t vectors, uint32_t stride, float* out) {
  const uint64_t pairs = dot_interaction_pairs(vectors);
  for (uint32_t i = 1; i < vectors; ++i) {
    for (uint32_t j = 0; j < i; j += kStrip) {
      const uint64_t at = dot_interaction_pairs(i) + j;
      const float* from = square + uint64_t{i} * stride + j;
      if (at + kStrip <= pairs) {
        put_strip(out + at, strip_at(from));
      } else {
        copy(from, least(i - j, kStrip), out + at);
      }
    }
  }
}

void dot_interaction(const DotInteraction& op) {
  const uint32_t stride = (op.vectors + kStrip - 1) / kStrip * kStrip;
  float* const square = op.scratch + uint64_t{stride} * op.dim;
  for (uint64_t s = 0; s < op.samples; ++s) {
    const Vectors<const float> z = {op.first + s * op.first_stride,
                                    op.others + s * (op.vectors - 1) * op.dim, op.dim};
    transpose_sample(z, op.vectors, op.scratch);
    for (uint32_t j = 0; j + 1 < op.vectors; j += kStrip) {
      const float* strip = op.scratch + uint64_t{j} * op.dim;
      uint32_t i = j + 1;
      for (; i + 4 <= op.vectors; i += 4) {
        dots_of_rows<4>(z, i, strip, square + uint64_t{i} * stride + j, stride);
      }
      for (; i < op.vectors; ++i) {
        dots_of_rows<1>(z, i, strip, square + uint64_t{i} * stride + j, stride);
      }
    }
    float* out = op.out + s * op.out_stride;
    copy(z[0], op.dim, out);
    pack_triangle(square, op.vectors, stride, out + op.dim);
  }
}

// Rows [i, i + kRows) of pairs, in elements [d, d + kStrips * kStrip): dz_i = sum of g_ij * z_j
// over j < i, and dz_j += g_ij * z_i.  Two rows share the loads and stores of dz_j.
template <uint32_t kRows, uint32_t kStrips>
void gradient_of_strips(const float* g, uint32_t i, uint32_t d, const Vectors<const float>& z,
                        const Vectors<float>& dz) {
  static_assert(kRows <= 2);
  const float* const gs[] = {g, g + i};  // row i has i pairs
  Strip sum[kRows][kStrips] = {}, row[kRows][kStrips];
  for (uint32_t r = 0; r < kRows; ++r) {
    for (uint32_t k = 0; k < kStrips; ++k) row[r][k] = strip_at(z[i + r] + d + k * kStrip);
  }
  for (uint32_t j = 0; j < i; ++j) {
    for (uint32_t k = 0; k < kStrips; ++k) {
      float* to = dz[j] + d + k * kStrip;
      const Strip zj = strip_at(z[j] + d + k * kStrip);
      Strip dzj = strip_at(to);
      for (uint32_t r = 0; r < kRows; ++r) {
        sum[r][k] += gs[r][j] * zj;
        dzj += gs[r][j] * row[r][k];
      }
      put_strip(to, dzj);
    }
  }
  for (uint32_t k = 0; k < kStrips; ++k) {
    if (kRows == 2) {
      sum[0][k] += gs[1][i] * row[kRows - 1][k];
      sum[kRows - 1][k] += gs[1][i] * row[0][k];
    }
    for (uint32_t r = 0; r < kRows; ++r) put_strip(dz[i + r] + d + k * kStrip, sum[r][k]);
  }
}

template <uint32_t kRows>
void gradient_of_rows(const float* g, uint32_t i, const Vectors<const float>& z,
                      const Vectors<float>& dz) {
  uint32_t d = 0;
  for (; d + 2 * kStrip <= z.dim; d += 2 * kStrip) gradient_of_strips<kRows, 2>(g, i, d, z, dz);
  for (; d + kStrip <= z.dim; d += kStrip) gradient_of_strips<kRows, 1>(g, i, d, z, dz);
  for (; d < z.dim; ++d) {
    for (uint32_t r = i; r < i + kRows; ++r) {
      float sum = 0;
      for (uint32_t j = 0; j < r; ++j) {
        const float pair = g[dot_interaction_pairs(r) - dot_interaction_pairs(i) + j];
        sum += pair * z[j][d];
        dz[j][d] += pair * z[r][d];
      }
      dz[r][d] = sum;
    }
  }
}

void dot_interaction_gradient(const DotInteractionGradient& op) {
  for (uint64_t s = 0; s < op.samples; ++s) {
    const uint64_t others = s * (op.vectors - 1) * op.dim;
    const Vectors<const float> z = {op.first + s * op.first_stride, op.others + others, op.dim};
    const Vectors<float> dz = {op.first_gradient + s * op.first_gradient_stride,
                               op.others_gradient + others, op.dim};
    const float* g = op.gradient + s * op.gradient_stride;
    copy(g, op.dim, dz[0]);
    uint32_t i = 1;
    for (; i + 2 <= op.vectors; i += 2) {
      gradient_of_rows<2>(g + op.dim + dot_interaction_pairs(i), i, z, dz);
    }
    if (i < op.vectors) gradient_of_rows<1>(g + op.dim + dot_interaction_pairs(i), i, z, dz);
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
      return w - (lr * g) / (__builtin_sqrtf(s) + o.eps);
    });
  } else {
    float* __restrict ms = op.state, * __restrict vs = op.state2;
    const float one_beta1 = 1 - o.beta1, one_beta2 = 1 - o.beta2;
    for_each_weight(op, [=](float w, float g, uint64_t i) {
      const float m = o.beta1 * ms[i] + one_beta1 * g;
      const float v = o.beta2 * vs[i] + (one_beta2 * g) * g;
      ms[i] = m;
      vs[i] = v;
      return w - (lr * (m / o.correction1)) / (__builtin_sqrtf(v / o.correction2) + o.eps);
    });
  }
}

}  // namespace

const DenseLanes dense_lanes = {
    add_bias, relu_gradient, add_rows, dot_interaction, dot_interaction_gradient, dense_update};

}  // namespace rowtide::ROWTIDE_LANES
