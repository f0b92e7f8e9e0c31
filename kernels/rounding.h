#pragma once
// rounding — between fp32 and the 16-bit types of rows.
//
// widen is exact.  nearest rounds to nearest, ties to even, beyond the largest to infinity.
// stochastic(x, r), with lo <= x <= hi the neighbours of x in the target type, gives hi if
// r * 2^-32 < (x - lo) / (hi - lo) in real numbers, else lo; a value of the type stays; anything
// beyond the largest finite value, infinity too, becomes that value.  NaN stays NaN everywhere.
//
// Integers and exact fp32 only, so the same bits everywhere.  Static for the reason in philox.h.

#include <cstdint>

namespace rowtide {

static constexpr uint32_t float_bits(float x) { return __builtin_bit_cast(uint32_t, x); }
static constexpr float bits_float(uint32_t bits) { return __builtin_bit_cast(float, bits); }

static constexpr float widen_bf16(uint16_t x) { return bits_float(uint32_t{x} << 16); }

// The product moves the exponent by 127 - 15 and makes subnormals normal; it is exact.
static constexpr float widen_fp16(uint16_t x) {
  const uint32_t magnitude = (x & 0x7FFFu) << 13;
  const uint32_t finite = float_bits(bits_float(magnitude) * 0x1p112f);
  const uint32_t other = magnitude | 0x7F800000u;  // infinity or NaN
  return bits_float((x & 0x8000u) << 16 | ((x & 0x7C00u) == 0x7C00u ? other : finite));
}

static constexpr uint16_t nearest_bf16(float x) {
  const uint32_t bits = float_bits(x);
  const uint32_t nan = bits >> 16 | 0x40u;
  const uint32_t rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
  return static_cast<uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded);
}

static constexpr uint16_t nearest_fp16(float x) {
  const uint32_t sign = float_bits(x) >> 16 & 0x8000u;
  const uint32_t a = float_bits(x) & 0x7FFFFFFFu;
  // Below 2^-14 the spacing is 2^-24, which is that of fp32 at 0.5: the sum rounds.
  const uint32_t small = float_bits(bits_float(a) + 0.5f) - float_bits(0.5f);
  const uint32_t normal = (a + 0xFFFu + (a >> 13 & 1u) - 0x38000000u) >> 13;
  const uint32_t large = a > 0x7F800000u ? 0x7E00u : 0x7C00u;
  return static_cast<uint16_t>(sign | (a < 0x38800000u ? small : a < 0x477FF000u ? normal : large));
}

// Both work on the magnitude: it goes up with `part` of 2^32, the real number floor(part) plus
// `more` in [0, 1).  Below zero "up" is down in magnitude: there it grows if 2^32 - 1 - r < part.
static constexpr uint16_t stochastic_bf16(float x, uint32_t r) {
  const uint32_t bits = float_bits(x);
  const uint32_t a = bits & 0x7FFFFFFFu;
  const uint32_t sign = bits >> 31;
  const uint32_t part = a << 16;
  const uint32_t grown = (a >> 16) + ((r ^ (0u - sign)) < part ? 1u : 0u);
  const uint32_t nan = a >> 16 | 0x40u;
  const uint32_t magnitude = a < 0x7F7F0000u ? grown : a > 0x7F800000u ? nan : 0x7F7Fu;
  return static_cast<uint16_t>(sign << 15 | magnitude);
}

static constexpr uint16_t stochastic_fp16(float x, uint32_t r) {
  const uint32_t bits = float_bits(x);
  const uint32_t a = bits & 0x7FFFFFFFu;
  const uint32_t sign = bits >> 31;
  // Below 2^-14 halves are the multiples of 2^-24.  A mask, for branches would not vectorise; where
  // it is not small, zero keeps the conversions to int in range.
  const uint32_t small = 0u - static_cast<uint32_t>(a < 0x38800000u);
  const float scaled = bits_float(a & small) * 0x1p24f;
  const int32_t whole = static_cast<int32_t>(scaled);
  const float high = (scaled - static_cast<float>(whole)) * 0x1p16f;
  const int32_t high_part = static_cast<int32_t>(high);
  const float low = (high - static_cast<float>(high_part)) * 0x1p16f;
  const int32_t low_part = static_cast<int32_t>(low);
  const bool exact = float_bits(low) == float_bits(static_cast<float>(low_part));
  const uint32_t more = exact ? 0u : 1u - sign;
  const uint32_t small_part =
      (static_cast<uint32_t>(high_part) << 16 | static_cast<uint32_t>(low_part)) + more;

  const uint32_t part = (small_part & small) | (a << 19 & ~small);
  const uint32_t down = static_cast<uint32_t>(whole) | ((a - 0x38000000u) >> 13 & ~small);
  const uint32_t grown = down + ((r ^ (0u - sign)) < part ? 1u : 0u);
  const uint32_t magnitude = a < 0x477FE000u ? grown : a > 0x7F800000u ? 0x7E00u : 0x7BFFu;
  return static_cast<uint16_t>(sign << 15 | magnitude);
}

}  // namespace rowtide
