#pragma once
// The rows of an arena element by element, and 16-bit rounding by search: plain, for comparison.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>

#include "kernels/rows.h"

namespace rowtide {

// The value of a 16-bit float by its definition.
inline float half_value_reference(Precision precision, uint16_t bits) {
  const int exponent_bits = precision == Precision::kFp16 ? 5 : 8;
  const int mantissa_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const float sign = bits >> 15 ? -1.0f : 1.0f;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa ? std::numeric_limits<float>::quiet_NaN()
                    : sign * std::numeric_limits<float>::infinity();
  }
  if (exponent == 0)
    return sign * std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits);
  return sign * std::ldexp(static_cast<float>((1 << mantissa_bits) + mantissa),
                           exponent - bias - mantissa_bits);
}

inline uint16_t largest_half(Precision precision) {
  return precision == Precision::kFp16 ? 0x7BFF : 0x7F7F;
}

// The greatest magnitude that is not above `magnitude`: 16-bit floats are ordered as integers.
// REQUIRES: magnitude <= the largest.
inline uint16_t half_below_reference(Precision precision, float magnitude) {
  uint16_t low = 0, high = largest_half(precision);
  while (low < high) {
    const uint16_t middle = static_cast<uint16_t>((low + high + 1) / 2);
    if (half_value_reference(precision, middle) <= magnitude) {
      low = middle;
    } else {
      high = static_cast<uint16_t>(middle - 1);
    }
  }
  return low;
}

inline uint16_t stochastic_reference(Precision precision, float x, uint32_t r) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const uint16_t largest = largest_half(precision);
  if (std::isnan(x)) return static_cast<uint16_t>(largest + 1) | 0x40 | 0x200;
  const float magnitude = std::fabs(x);
  if (magnitude >= half_value_reference(precision, largest)) return sign | largest;
  const uint16_t below = half_below_reference(precision, magnitude);
  const long double inner = half_value_reference(precision, below);
  if (inner == magnitude) return sign | below;
  const uint16_t above = static_cast<uint16_t>(below + 1);
  const long double outer = half_value_reference(precision, above);
  const long double lo = sign ? -outer : inner, hi = sign ? -inner : outer;
  // A double would round 1 - 2^-32 + 2^-56.
  const bool up = r * 0x1p-32L < (x - lo) / (hi - lo);
  return sign | (up == (sign == 0) ? above : below);
}

// Ties to even; beyond the largest by half a spacing and more: infinity.
inline uint16_t nearest_reference(Precision precision, float x) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const uint16_t largest = largest_half(precision);
  if (std::isnan(x)) return static_cast<uint16_t>(largest + 1) | 0x40 | 0x200;
  const double magnitude = std::fabs(static_cast<double>(x));
  const double top = half_value_reference(precision, largest);
  if (magnitude > top) {
    const double spacing =
        top - half_value_reference(precision, static_cast<uint16_t>(largest - 1));
    return static_cast<uint16_t>(sign | (magnitude - top < spacing / 2 ? largest : largest + 1));
  }
  const uint16_t below = half_below_reference(precision, std::fabs(x));
  const double inner = half_value_reference(precision, below);
  if (inner == magnitude) return sign | below;
  const uint16_t above = static_cast<uint16_t>(below + 1);
  const double outer = half_value_reference(precision, above);
  const double to_inner = magnitude - inner, to_outer = outer - magnitude;
  const bool up = to_outer < to_inner || (to_outer == to_inner && below % 2 == 1);
  return sign | (up ? above : below);
}

inline float weight_reference(const RowFormat& format, const RowPlanes& planes, Slot slot,
                              uint32_t d) {
  const std::byte* row = planes.weights + uint64_t{slot} * planes.weight_stride;
  float value;
  uint16_t half;
  if (format.precision == Precision::kFp32) {
    std::memcpy(&value, row + d * sizeof value, sizeof value);
    return value;
  }
  std::memcpy(&half, row + d * sizeof half, sizeof half);
  return half_value_reference(format.precision, half);
}

inline float* state_reference(const RowPlanes& planes, Slot slot) {
  return reinterpret_cast<float*>(planes.state + uint64_t{slot} * planes.state_stride);
}

// The sum of a row's products: lane d mod 32, then a tree.
inline float lane_sum_reference(const float* a, const float* b, uint32_t width) {
  float lane[32] = {};
  for (uint32_t d = 0; d < width; ++d) lane[d % 32] += a[d] * b[d];
  for (uint32_t half : {16, 8, 4, 2, 1}) {
    for (uint32_t l = 0; l < half; ++l) lane[l] += lane[l + half];
  }
  return lane[0];
}

}  // namespace rowtide
