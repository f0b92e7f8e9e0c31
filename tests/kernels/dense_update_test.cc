#include "kernels/dense_update.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/reference/dense_update.h"
#include "tests/support/guarded.h"
#include "tests/support/numbers.h"

namespace rowtide {
namespace {

constexpr const char* kNames[] = {"sgd", "adagrad", "rowwise_adagrad", "adam"};

class DenseUpdateTest : public OnEachInstructionSet<OptimizerKind> {};

TEST_P(DenseUpdateTest, HasTheBitsOfTheReference) {
  struct Decay {
    float weight_decay;
    bool decoupled;
  };
  for (const auto& [weight_decay, decoupled] :
       {Decay{0, false}, Decay{0.1f, false}, Decay{0.1f, true}}) {
    for (uint64_t n : {0, 1, 15, 16, 17, 1000}) {
      Guarded<float> weight(random_floats(n, 1)), state(n), state2(n);
      std::vector<float> w = weight.vector(), s(n), s2(n);
      for (int t = 1; t <= 3; ++t) {
        const OptimizerStep step = {.learning_rate = 0.1f,
                                    .correction1 = static_cast<float>(1 - std::pow(0.9, t)),
                                    .correction2 = static_cast<float>(1 - std::pow(0.999, t)),
                                    .weight_decay = weight_decay,
                                    .decoupled = decoupled};
        const Guarded<float> gradient(random_floats(n, 10 + t));
        dense_update_cpu(
            {parameter(), step, weight.data(), gradient.data(), state.data(), state2.data(), n});
        for (uint64_t i = 0; i < n; ++i) {
          dense_update_reference(parameter(), step, w[i], gradient[i], s[i], s2[i]);
        }
      }
      EXPECT_EQ(first_difference(w, weight.vector()), "") << n << " weights";
      EXPECT_EQ(first_difference(s, state.vector()), "") << n << " states";
      EXPECT_EQ(first_difference(s2, state2.vector()), "") << n << " second states";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, DenseUpdateTest,
                         ::testing::Combine(each_instruction_set(),
                                            ::testing::Values(OptimizerKind::kSgd,
                                                              OptimizerKind::kAdagrad,
                                                              OptimizerKind::kAdam)),
                         [](const auto& info) {
                           return std::string(instruction_set_name(std::get<0>(info.param))) + "_" +
                                  kNames[static_cast<int>(std::get<1>(info.param))];
                         });

}  // namespace
}  // namespace rowtide
