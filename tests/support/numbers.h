#pragma once
// numbers — seeded random values, and equality of bits.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/instruction_set.h"

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

// A fixture whose tests run once on each instruction set of this machine.
template <typename Parameter>
class OnEachInstructionSet
    : public ::testing::TestWithParam<std::tuple<InstructionSet, Parameter>> {
 protected:
  void SetUp() override { force_instruction_set(std::get<0>(this->GetParam())); }
  void TearDown() override { force_instruction_set(before_); }
  const Parameter& parameter() const { return std::get<1>(this->GetParam()); }

 private:
  InstructionSet before_ = instruction_set();
};

inline auto each_instruction_set() { return ::testing::ValuesIn(instruction_sets()); }

}  // namespace rowtide
