#pragma once
// values — seeded random floats, and equality of bits.  Needs no gtest.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace rowtide {

// In [-1, 1), with all bits of the mantissa in use.
inline std::vector<float> random_floats(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(static_cast<int64_t>(random())) * 0x1p-63f;
  return values;
}

// Where two arrays first differ, or "": the same bits, where any NaN equals any NaN.
inline std::string first_difference(std::span<const float> expected,
                                    std::span<const float> actual) {
  if (expected.size() != actual.size()) return "sizes differ";
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool both_nan = std::isnan(expected[i]) && std::isnan(actual[i]);
    if (both_nan || std::memcmp(&expected[i], &actual[i], sizeof(float)) == 0) continue;
    return "at " + std::to_string(i) + ": expected " + std::to_string(expected[i]) + ", is " +
           std::to_string(actual[i]);
  }
  return "";
}

}  // namespace rowtide
