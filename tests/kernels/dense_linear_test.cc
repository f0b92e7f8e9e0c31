#include "kernels/dense_linear.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/reference/dense_linear.h"
#include "tests/support/differences.h"
#include "tests/support/guarded.h"
#include "tests/support/numbers.h"

namespace rowtide {
namespace {

struct Shape {
  uint64_t samples;
  uint32_t in, out;
};

// Each layer lies in wider rows than it needs.
class DenseLinearTest : public OnEachInstructionSet<Shape> {
 protected:
  static constexpr uint64_t kGap = 3;

  Guarded<float> with_gaps(const std::vector<float>& values, uint64_t width) const {
    Guarded<float> rows(parameter().samples * (width + kGap), std::nanf(""));
    for (size_t i = 0; i < values.size(); ++i)
      rows[i / width * (width + kGap) + i % width] = values[i];
    return rows;
  }
  static std::vector<float> without_gaps(const Guarded<float>& rows, uint64_t width) {
    std::vector<float> values(rows.size() / (width + kGap) * width);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = rows[i / width * (width + kGap) + i % width];
    return values;
  }
  // Sums of n products of values below 1: the bound of dense_product.h.
  static double tolerance(uint64_t n) { return static_cast<double>(n * n) * 0x1p-23; }
  static void expect_near(const std::vector<double>& expected, const std::vector<float>& actual,
                          double tolerance) {
    ASSERT_EQ(expected.size(), actual.size());
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(expected[i], actual[i], tolerance) << i;
  }
};

TEST_P(DenseLinearTest, ForwardEqualsTheReference) {
  const auto [samples, in, out] = parameter();
  const auto x = random_floats(samples * in, 1), w = random_floats(out * in, 2);
  const auto b = random_floats(out, 3);
  const Guarded<float> x_rows = with_gaps(x, in);
  for (bool relu : {false, true}) {
    std::vector<double> expected(samples * out);
    linear_forward_reference(widened(x).data(), widened(w).data(), widened(b).data(),
                             expected.data(), samples, in, out, relu);
    Guarded<float> y(samples * (out + kGap), std::nanf(""));
    linear_forward_cpu({x_rows.data(), in + kGap, w.data(), b.data(), y.data(), out + kGap, samples,
                        in, out, relu});
    expect_near(expected, without_gaps(y, out), tolerance(in + 1));
  }
}

TEST_P(DenseLinearTest, InputGradientEqualsTheReferenceBehindTheReluMask) {
  const auto [samples, in, out] = parameter();
  const auto dy = random_floats(samples * out, 1), w = random_floats(out * in, 2);
  const auto activation = random_floats(samples * in, 3);
  const Guarded<float> dy_rows = with_gaps(dy, out), activation_rows = with_gaps(activation, in);
  std::vector<double> expected(samples * in);
  linear_input_gradient_reference(widened(dy).data(), widened(w).data(), expected.data(), samples,
                                  in, out);
  for (bool relu : {false, true}) {
    Guarded<float> dx(samples * (in + kGap), std::nanf(""));
    linear_input_gradient_cpu({dy_rows.data(), out + kGap, w.data(),
                               relu ? activation_rows.data() : nullptr, in + kGap, dx.data(),
                               in + kGap, samples, in, out});
    for (size_t i = 0; relu && i < expected.size(); ++i) {
      if (activation[i] <= 0) expected[i] = 0;
    }
    expect_near(expected, without_gaps(dx, in), tolerance(out));
  }
}

TEST_P(DenseLinearTest, WeightAndBiasGradientsEqualTheReference) {
  const auto [samples, in, out] = parameter();
  const auto dy = random_floats(samples * out, 1), x = random_floats(samples * in, 2);
  const Guarded<float> dy_rows = with_gaps(dy, out), x_rows = with_gaps(x, in);
  std::vector<double> expected_dw(out * in), expected_db(out);
  linear_weight_gradient_reference(widened(dy).data(), widened(x).data(), expected_dw.data(),
                                   expected_db.data(), samples, in, out);
  Guarded<float> dw(out * in, std::nanf("")), db(out, std::nanf(""));
  linear_weight_gradient_cpu({dy_rows.data(), out + kGap, x_rows.data(), in + kGap, dw.data(),
                              db.data(), samples, in, out});
  expect_near(expected_dw, dw.vector(), tolerance(samples));
  for (uint32_t o = 0; o < out; ++o) {
    EXPECT_EQ(db[o], summed_by_blocks_reference(dy.data() + o, out, samples)) << o;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, DenseLinearTest,
    ::testing::Combine(each_instruction_set(),
                       ::testing::Values(Shape{0, 3, 5}, Shape{1, 1, 1}, Shape{2, 13, 16},
                                         Shape{33, 17, 63}, Shape{255, 5, 65}, Shape{256, 8, 33},
                                         Shape{257, 31, 2}, Shape{700, 9, 80})),
    [](const auto& info) {
      const Shape& s = std::get<1>(info.param);
      return std::string(instruction_set_name(std::get<0>(info.param))) + "_" +
             std::to_string(s.samples) + "_" + std::to_string(s.in) + "_" + std::to_string(s.out);
    });

// The references themselves, against finite differences of sum(c * relu(x W' + b)).
TEST(DenseLinearTest, GradientsOfTheReferenceAreThoseOfItsForward) {
  constexpr uint64_t kSamples = 4, kIn = 3, kOut = 5;
  auto x = widened(random_floats(kSamples * kIn, 1)), w = widened(random_floats(kOut * kIn, 2));
  auto b = widened(random_floats(kOut, 3));
  const auto c = widened(random_floats(kSamples * kOut, 4));
  std::vector<double> y(c.size());
  const auto loss = [&] {
    linear_forward_reference(x.data(), w.data(), b.data(), y.data(), kSamples, kIn, kOut, true);
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += c[i] * y[i];
    return sum;
  };
  loss();
  auto dy = c;
  for (size_t i = 0; i < y.size(); ++i) dy[i] = y[i] > 0 ? c[i] : 0;
  std::vector<double> dx(x.size()), dw(w.size()), db(b.size());
  linear_input_gradient_reference(dy.data(), w.data(), dx.data(), kSamples, kIn, kOut);
  linear_weight_gradient_reference(dy.data(), x.data(), dw.data(), db.data(), kSamples, kIn, kOut);
  const auto expect_gradient = [&](const std::vector<double>& gradient, std::vector<double>& of) {
    const auto differences = central_differences(of, loss);
    for (size_t i = 0; i < of.size(); ++i) EXPECT_NEAR(gradient[i], differences[i], 1e-8) << i;
  };
  expect_gradient(dx, x);
  expect_gradient(dw, w);
  expect_gradient(db, b);
}

// A model that diverged must say so.
TEST(DenseLinearTest, ANanGoesThroughARelu) {
  const float x[] = {std::nanf(""), 1}, w[] = {1}, b[] = {-2};
  float y[2];
  linear_forward_cpu({x, 1, w, b, y, 1, 2, 1, 1, true});
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 0);
}

}  // namespace
}  // namespace rowtide
