#include "kernels/dense_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/reference/dense_loss.h"
#include "tests/support/differences.h"
#include "tests/support/numbers.h"

namespace rowtide {
namespace {

struct Outcome {
  double loss;
  float gradient;
};
Outcome of(float logit, float label, uint64_t batch = 1) {
  Outcome outcome;
  outcome.loss = bce_with_logits_cpu({&logit, &label, &outcome.gradient, 1, batch});
  return outcome;
}

TEST(BceWithLogitsTest, EqualsTheReferenceAndItsDifferences) {
  for (float logit : {-8.0f, -1.5f, -0.0f, 0.0f, 0.25f, 3.0f, 12.0f}) {
    for (float label : {0.0f, 1.0f, 0.3f}) {
      const Outcome outcome = of(logit, label, /*batch=*/4);
      EXPECT_NEAR(outcome.loss, bce_reference(logit, label), 1e-14);
      std::vector<double> x = {logit};
      const auto slope = central_differences(x, [&] { return bce_reference(x[0], label); });
      EXPECT_NEAR(4 * outcome.gradient, slope[0], 1e-6) << logit << ", " << label;
      EXPECT_NEAR(4 * outcome.gradient, bce_gradient_reference(logit, label), 1e-7);
    }
  }
}

TEST(BceWithLogitsTest, IsFiniteForHugeLogits) {
  for (float logit : {-3e38f, -1e4f, -100.0f, 100.0f, 1e4f, 3e38f}) {
    for (float label : {0.0f, 1.0f}) {
      const Outcome outcome = of(logit, label);
      const bool right = (logit > 0) == (label > 0);
      EXPECT_TRUE(std::isfinite(outcome.loss)) << logit;
      EXPECT_NEAR(outcome.loss, right ? 0 : std::abs(double{logit}), 1e-40);
      EXPECT_NEAR(outcome.gradient, right ? 0 : logit > 0 ? 1 : -1, 1e-40);
    }
  }
}

TEST(BceWithLogitsTest, SaysNanForANan) {
  EXPECT_TRUE(std::isnan(of(std::numeric_limits<float>::quiet_NaN(), 1).loss));
}

TEST(BceWithLogitsTest, NoSamplesLoseNothing) {
  EXPECT_EQ(bce_with_logits_cpu({nullptr, nullptr, nullptr, 0, 0}), 0);
}

}  // namespace
}  // namespace rowtide
