#include "kernels/dense_interaction.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/reference/dense_interaction.h"
#include "tests/support/differences.h"
#include "tests/support/guarded.h"
#include "tests/support/numbers.h"

namespace rowtide {
namespace {

struct Shape {
  uint32_t vectors, dim;
};

class DotInteractionTest : public OnEachInstructionSet<Shape> {
 protected:
  static constexpr uint64_t kSamples = 3, kGap = 5;

  // The vectors of sample s, as the reference takes them.
  std::vector<float> sample(const Guarded<float>& first, const Guarded<float>& others,
                            uint64_t s) const {
    const auto [vectors, dim] = parameter();
    const float* f = first.data() + s * (dim + kGap);
    const float* o = others.data() + s * (vectors - 1) * dim;
    std::vector<float> z(f, f + dim);
    z.insert(z.end(), o, o + (vectors - 1) * dim);
    return z;
  }
};

TEST_P(DotInteractionTest, HasTheBitsOfTheReference) {
  const auto [vectors, dim] = parameter();
  const uint64_t width = dim + dot_interaction_pairs(vectors);
  const Guarded<float> first(random_floats(kSamples * (dim + kGap), 1));
  const Guarded<float> others(random_floats(kSamples * (vectors - 1) * dim, 2));
  Guarded<float> scratch(dot_interaction_scratch(vectors, dim), std::nanf(""));
  // Samples lie back to back, so that a write past one is seen in the next.
  Guarded<float> out(kSamples * width, std::nanf(""));
  dot_interaction_cpu({first.data(), dim + kGap, others.data(), out.data(), width, scratch.data(),
                       kSamples, vectors, dim});
  std::vector<float> expected(kSamples * width);
  for (uint64_t s = 0; s < kSamples; ++s) {
    dot_interaction_reference(sample(first, others, s).data(), &expected[s * width], vectors, dim);
  }
  EXPECT_EQ(first_difference(expected, out.vector()), "");
}

TEST_P(DotInteractionTest, GradientHasTheBitsOfTheReference) {
  const auto [vectors, dim] = parameter();
  const uint64_t width = dim + dot_interaction_pairs(vectors);
  const Guarded<float> first(random_floats(kSamples * (dim + kGap), 1));
  const Guarded<float> others(random_floats(kSamples * (vectors - 1) * dim, 2));
  const Guarded<float> gradient(random_floats(kSamples * width, 3));
  Guarded<float> first_gradient(first.size(), std::nanf(""));
  Guarded<float> others_gradient(others.size(), std::nanf(""));
  dot_interaction_gradient_cpu({first.data(), dim + kGap, others.data(), gradient.data(), width,
                                first_gradient.data(), dim + kGap, others_gradient.data(), kSamples,
                                vectors, dim});
  for (uint64_t s = 0; s < kSamples; ++s) {
    std::vector<float> expected(vectors * dim);
    dot_interaction_gradient_reference(sample(first, others, s).data(), gradient.data() + s * width,
                                       expected.data(), vectors, dim);
    EXPECT_EQ(first_difference(expected, sample(first_gradient, others_gradient, s)), "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, DotInteractionTest,
    ::testing::Combine(each_instruction_set(),
                       ::testing::Values(Shape{1, 4}, Shape{2, 1}, Shape{3, 3}, Shape{4, 8},
                                         Shape{5, 17}, Shape{16, 16}, Shape{17, 16}, Shape{18, 32},
                                         Shape{27, 16}, Shape{27, 128}, Shape{33, 64},
                                         Shape{40, 100})),
    [](const auto& info) {
      const Shape& s = std::get<1>(info.param);
      return std::string(instruction_set_name(std::get<0>(info.param))) + "_" +
             std::to_string(s.vectors) + "_" + std::to_string(s.dim);
    });

TEST(DotInteractionTest, GradientOfTheReferenceIsThatOfItsForward) {
  constexpr uint64_t kVectors = 4, kDim = 3, kWidth = kDim + 6;
  auto z = widened(random_floats(kVectors * kDim, 1));
  const auto c = widened(random_floats(kWidth, 2));
  std::vector<double> gradient(z.size()), out(kWidth);
  dot_interaction_gradient_reference(z.data(), c.data(), gradient.data(), kVectors, kDim);
  const auto differences = central_differences(z, [&] {
    dot_interaction_reference(z.data(), out.data(), kVectors, kDim);
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += c[i] * out[i];
    return sum;
  });
  for (size_t i = 0; i < z.size(); ++i) EXPECT_NEAR(gradient[i], differences[i], 1e-8) << i;
}

}  // namespace
}  // namespace rowtide
