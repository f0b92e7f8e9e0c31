#include "kernels/rounding.h"

#include <gtest/gtest.h>

#include "tests/reference/rows.h"
#include "tests/support/numbers.h"

namespace rowtide {
namespace {

struct HalfType {
  Precision precision;
  float (*widen)(uint16_t);
  uint16_t (*nearest)(float);
  uint16_t (*stochastic)(float, uint32_t);
};
const HalfType kTypes[] = {{Precision::kFp16, widen_fp16, nearest_fp16, stochastic_fp16},
                           {Precision::kBf16, widen_bf16, nearest_bf16, stochastic_bf16}};

class RoundingTest : public ::testing::TestWithParam<HalfType> {
 protected:
  void expect_same_half(uint16_t expected, uint16_t actual, float x) {
    const float a = half_value_reference(GetParam().precision, expected);
    const float b = half_value_reference(GetParam().precision, actual);
    if (std::isnan(a) && std::isnan(b)) return;
    ASSERT_EQ(expected, actual) << std::hexfloat << x;
  }
  // Every exponent and sign, mantissas at and beside ties, and random ones.
  std::vector<float> probes() {
    std::mt19937_64 random(1);
    std::vector<float> values;
    for (uint32_t high = 0; high < 512; ++high) {
      for (uint32_t mantissa :
           {0u, 1u, 0xFFFu, 0x1000u, 0x1001u, 0x1FFFu, 0x2000u, 0x3000u, 0x7FFFu, 0x8000u, 0x8001u,
            0x18000u, 0x7FE000u, 0x7FEFFFu, 0x7FF000u, 0x7F0000u, 0x7F8000u, 0x7FFFFFu}) {
        values.push_back(bits_float(high << 23 | mantissa));
      }
      for (int i = 0; i < 8; ++i) values.push_back(bits_float(high << 23 | random() % 0x800000));
    }
    return values;
  }
};
INSTANTIATE_TEST_SUITE_P(Types, RoundingTest, ::testing::ValuesIn(kTypes), [](const auto& info) {
  return info.param.precision == Precision::kFp16 ? "fp16" : "bf16";
});

TEST_P(RoundingTest, WidensEveryValue) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const float expected = half_value_reference(GetParam().precision, static_cast<uint16_t>(h));
    const float actual = GetParam().widen(static_cast<uint16_t>(h));
    ASSERT_TRUE(std::isnan(expected) ? std::isnan(actual)
                                     : float_bits(expected) == float_bits(actual))
        << h;
  }
}

TEST_P(RoundingTest, NearestTakesTheNearestAndTiesToEven) {
  for (float x : probes()) {
    expect_same_half(nearest_reference(GetParam().precision, x), GetParam().nearest(x), x);
  }
}

TEST_P(RoundingTest, StochasticComparesWithTheExactFraction) {
  std::mt19937 random(2);
  for (float x : probes()) {
    for (uint32_t r : {0u, 1u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFEu, 0xFFFFFFFFu,
                       static_cast<uint32_t>(random())}) {
      expect_same_half(stochastic_reference(GetParam().precision, x, r),
                       GetParam().stochastic(x, r), x);
    }
  }
}

TEST_P(RoundingTest, ExactValuesStay) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const float x = GetParam().widen(static_cast<uint16_t>(h));
    if (!std::isfinite(x)) continue;
    for (uint32_t r : {0u, 0xFFFFFFFFu}) ASSERT_EQ(GetParam().stochastic(x, r), h);
  }
}

TEST_P(RoundingTest, StochasticClampsAtTheLargestFinite) {
  const float largest = GetParam().widen(largest_half(GetParam().precision));
  for (float x : {largest, std::nextafter(largest, INFINITY), 3.4e38f, INFINITY}) {
    for (uint32_t r : {0u, 0xFFFFFFFFu}) {
      EXPECT_EQ(GetParam().widen(GetParam().stochastic(x, r)), largest);
      EXPECT_EQ(GetParam().widen(GetParam().stochastic(-x, r)), -largest);
    }
  }
  EXPECT_TRUE(std::isnan(GetParam().widen(GetParam().stochastic(NAN, 0))));
}

TEST_P(RoundingTest, StochasticIsRightOnAverage) {
  std::mt19937 random(3);
  for (float x : {0.3f, -0.3f, 1.0001f, 3e-6f, -3e-6f, 1e-9f}) {
    const int n = 200000;
    double sum = 0, squares = 0;
    for (int i = 0; i < n; ++i) {
      const double y = GetParam().widen(GetParam().stochastic(x, random()));
      sum += y - x, squares += (y - x) * (y - x);
    }
    EXPECT_LE(std::fabs(sum / n), 4 * std::sqrt(squares / n / n)) << x;  // four standard errors
  }
}

}  // namespace
}  // namespace rowtide
