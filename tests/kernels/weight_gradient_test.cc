#include "kernels/weight_gradient.h"

#include <gtest/gtest.h>

#include "tests/reference/weight_gradient.h"
#include "tests/support/embedding_case.h"

namespace rowtide {
namespace {

constexpr uint32_t kSlots = 64, kRows = 40;

class WeightGradientTest : public OnEachInstructionSet<uint32_t> {
 protected:
  PooledLookup lookup(Arena& arena, Pooling pooling) {
    return {.format = arena.format,
            .planes = arena.planes(),
            .slots = slots_.data(),
            .unique = bags_.unique.data(),
            .offsets = bags_.offsets.data(),
            .weights = bags_.weights.data(),
            .pooling = pooling,
            .out_stride = arena.format.width,
            .bags = bags_.bags()};
  }
  // Ids before those of the bags must stay untouched, like everything around the output.
  std::vector<float> run(void (*op)(const WeightGradient&, uint64_t, uint64_t), WeightGradient g) {
    Guarded<float> out(bags_.unique.size(), 0.25f);
    g.out = out.data();
    op(g, 0, 4);
    op(g, 4, bags_.bags());
    return out.vector();
  }

  const Bags bags_{{0, 1, 2, 0, 1, 17, 3}, kRows, /*first=*/5, /*seed=*/1};
  const std::vector<Slot> slots_ = random_slots(kRows, kSlots, /*seed=*/2);
};
INSTANTIATE_TEST_SUITE_P(Widths, WeightGradientTest,
                         ::testing::Combine(each_instruction_set(), ::testing::ValuesIn(kWidths)));

TEST_P(WeightGradientTest, EqualsTheReference) {
  const uint64_t stride = parameter() + 2;
  const auto gradient = random_floats(bags_.ids() * stride, /*seed=*/4);
  for (Precision precision : kPrecisions) {
    Arena arena({.width = parameter(), .precision = precision}, kSlots, /*seed=*/3);
    for (Pooling pooling : kPoolings) {
      for (bool add : {false, true}) {
        const WeightGradient op{.lookup = lookup(arena, pooling),
                                .gradient = gradient.data(),
                                .stride = stride,
                                .add = add};
        EXPECT_EQ(
            first_difference(run(weight_gradient_reference, op), run(weight_gradient_cpu, op)), "");
      }
    }
  }
}

// The pooled output is linear in the weights, so a difference quotient has rounding errors only.
TEST_P(WeightGradientTest, AgreesWithFiniteDifferences) {
  const uint32_t width = parameter();
  Arena arena({.width = width}, kSlots, /*seed=*/3);
  const auto gradient = random_floats(bags_.bags() * width, /*seed=*/4);
  for (Pooling pooling : {Pooling::kSum, Pooling::kMean}) {
    const auto loss = [&](const std::vector<float>& weights) {
      auto look = lookup(arena, pooling);
      std::vector<float> out(bags_.bags() * width);
      look.weights = weights.data(), look.out = out.data();
      pooled_lookup_cpu(look, 0, bags_.bags());
      double sum = 0;
      for (size_t i = 0; i < out.size(); ++i) sum += double{out[i]} * gradient[i];
      return sum;
    };
    const auto actual =
        run(weight_gradient_cpu,
            {.lookup = lookup(arena, pooling), .gradient = gradient.data(), .stride = width});
    for (size_t i = 5; i < bags_.unique.size(); ++i) {
      auto up = bags_.weights, down = bags_.weights;
      up[i] += 0.5f, down[i] -= 0.5f;
      EXPECT_NEAR(actual[i], loss(up) - loss(down), 1e-5 + 1e-6 * width) << "id " << i;
    }
  }
}

}  // namespace
}  // namespace rowtide
