#include "kernels/lanes.h"
#include "kernels/weight_gradient.h"

namespace rowtide::ROWTIDE_LANES {
namespace {

// The 32 running lanes of a dot product.
struct Dot {
  static constexpr uint32_t kVectors = 32 / kVector;

  // Adds 32 columns; g is divided by `length` first if `mean`.
  template <typename Element>
  void add(const float* g, const typename Element::Stored* row, bool mean, float length) {
    for (uint32_t n = 0; n < kVectors; ++n) {
      Floats<kVector> x = load<kVector>(g + n * kVector);
      if (mean) x = x / length;
      sum[n] = sum[n] + x * Element::template load<kVector>(row + n * kVector);
    }
  }
  float value() const {
    float lane[32];
    for (uint32_t n = 0; n < kVectors; ++n) store<kVector>(lane + n * kVector, sum[n]);
    return sum_of_lanes(lane);
  }

  Floats<kVector> sum[kVectors] = {};
};

template <typename Element>
float dot(const float* g, const std::byte* weights, uint32_t width, bool mean, float length) {
  using Stored = typename Element::Stored;
  const auto* row = reinterpret_cast<const Stored*>(weights);
  Dot dot;
  uint32_t d = 0;
  for (; d + 32 <= width; d += 32) dot.add<Element>(g + d, row + d, mean, length);
  if (d < width) {
    // Zeros add nothing: a lane starts from +0 and is never -0.
    float g_end[32] = {};
    Stored row_end[32] = {};
    for (uint32_t n = 0; d + n < width; ++n) g_end[n] = g[d + n], row_end[n] = row[d + n];
    dot.add<Element>(g_end, row_end, mean, length);
  }
  return dot.value();
}

template <typename Element>
void gradient_of_bags(const WeightGradient& op, uint64_t begin, uint64_t end) {
  constexpr int64_t kAhead = 8;
  const PooledLookup& look = op.lookup;
  const RowPlanes& planes = look.planes;
  const int64_t end_id = look.offsets[end];
  const bool mean = look.pooling == Pooling::kMean;
  for (uint64_t bag = begin; bag < end; ++bag) {
    const float length = static_cast<float>(look.offsets[bag + 1] - look.offsets[bag]);
    for (int64_t i = look.offsets[bag]; i < look.offsets[bag + 1]; ++i) {
      if (i + kAhead < end_id && look.unique[i + kAhead] != kSkipped) {
        const uint64_t slot = look.slots[look.unique[i + kAhead]];
        prefetch_lines(planes.weights + slot * planes.weight_stride, planes.weight_stride);
      }
      float value = 0;
      if (look.unique[i] != kSkipped) {
        const bool own = look.pooling == Pooling::kNone;
        const uint64_t g = own ? static_cast<uint64_t>(i - look.offsets[0]) : bag;
        const uint64_t slot = look.slots[look.unique[i]];
        value =
            dot<Element>(op.gradient + g * op.stride, planes.weights + slot * planes.weight_stride,
                         look.format.width, mean, length);
      }
      op.out[i] = op.add ? op.out[i] + value : value;
    }
  }
}

}  // namespace

void weight_gradient(const WeightGradient& op, uint64_t begin, uint64_t end) {
  switch (op.lookup.format.precision) {
    case Precision::kFp32:
      return gradient_of_bags<Fp32>(op, begin, end);
    case Precision::kFp16:
      return gradient_of_bags<Fp16>(op, begin, end);
    case Precision::kBf16:
      return gradient_of_bags<Bf16>(op, begin, end);
  }
}

}  // namespace rowtide::ROWTIDE_LANES
