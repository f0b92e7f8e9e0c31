#include "trainer/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace rowtide {
namespace {

Quality quality_of(const std::vector<float>& logits, const std::vector<float>& labels) {
  QualityMeter meter;
  meter.add(logits, labels);
  return meter.quality();
}

TEST(QualityTest, AgreesWithFiguresWorkedByHand) {
  // Of the four pairs (positive, negative) three are in order: 2 > 1, 2 > -1, 0 > -1.
  const Quality q = quality_of({2, 0, 1, -1}, {1, 1, 0, 0});
  EXPECT_EQ(q.samples, 4u);
  EXPECT_EQ(q.positives, 2u);
  EXPECT_DOUBLE_EQ(q.auc, 0.75);
  const double loss = (std::log1p(std::exp(-2.0)) + std::log(2.0) + std::log1p(std::exp(1.0)) +
                       std::log1p(std::exp(-1.0))) /
                      4;
  EXPECT_NEAR(q.logloss, loss, 1e-12);
  EXPECT_NEAR(q.ne, loss / std::log(2.0), 1e-12);  // half are positive: entropy ln 2
  EXPECT_NEAR(q.calibration, (0.880797078 + 0.5 + 0.731058579 + 0.268941421) / 2, 1e-8);
}

TEST(QualityTest, TiesCountHalf) {
  EXPECT_DOUBLE_EQ(quality_of({3, 3, 3, 3, 3}, {1, 0, 0, 1, 0}).auc, 0.5);
  EXPECT_DOUBLE_EQ(quality_of({1, 0, 0}, {1, 1, 0}).auc, 0.75);
  EXPECT_DOUBLE_EQ(quality_of({-0.0f, 0.0f}, {1, 0}).auc, 0.5);  // one value
}

TEST(QualityTest, AucEqualsTheCountOfPairs) {
  std::mt19937 random(5);
  std::vector<float> logits, labels;
  for (int i = 0; i < 700; ++i) {
    logits.push_back(static_cast<float>(static_cast<int>(random() % 101) - 50) / 7);
    labels.push_back(static_cast<float>(random() % 3 == 0));
  }
  double won = 0, pairs = 0;
  for (size_t p = 0; p < logits.size(); ++p) {
    for (size_t n = 0; n < logits.size(); ++n) {
      if (labels[p] == 0 || labels[n] == 1) continue;
      won += logits[p] > logits[n] ? 1 : logits[p] == logits[n] ? 0.5 : 0;
      ++pairs;
    }
  }
  EXPECT_DOUBLE_EQ(quality_of(logits, labels).auc, won / pairs);
}

TEST(QualityTest, TheBaseRateItselfHasNeOneAndCalibrationOne) {
  const float base = std::log(0.2f / 0.8f);
  const Quality q = quality_of(std::vector<float>(10, base), {1, 0, 0, 0, 0, 1, 0, 0, 0, 0});
  EXPECT_NEAR(q.ne, 1, 1e-7);
  EXPECT_NEAR(q.calibration, 1, 1e-7);
}

TEST(QualityTest, LargeLogitsKeepTheirLoss) {
  EXPECT_DOUBLE_EQ(quality_of({1000, -1000}, {0, 1}).logloss, 1000);
  EXPECT_DOUBLE_EQ(quality_of({1000, -1000}, {1, 0}).logloss, 0);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_DOUBLE_EQ(quality_of({kInfinity, -kInfinity}, {1, 0}).logloss, 0);
}

TEST(QualityTest, WhatIsNotDefinedIsNaN) {
  const Quality none = QualityMeter().quality();
  EXPECT_EQ(none.samples, 0u);
  EXPECT_TRUE(std::isnan(none.logloss) && std::isnan(none.auc) && std::isnan(none.ne));
  EXPECT_TRUE(std::isnan(none.calibration));
  const Quality negatives = quality_of({1, 2}, {0, 0});
  EXPECT_TRUE(std::isnan(negatives.auc) && std::isnan(negatives.ne));
  EXPECT_TRUE(std::isnan(negatives.calibration));
  EXPECT_FALSE(std::isnan(negatives.logloss));
  const Quality positives = quality_of({1, 2}, {1, 1});
  EXPECT_TRUE(std::isnan(positives.auc) && std::isnan(positives.ne));
  EXPECT_FALSE(std::isnan(positives.calibration));
}

TEST(QualityTest, PartsAddUpAndClearForgets) {
  QualityMeter meter;
  meter.add(std::vector<float>{2, 0}, std::vector<float>{1, 1});
  meter.add(std::vector<float>{1, -1}, std::vector<float>{0, 0});
  EXPECT_DOUBLE_EQ(meter.quality().auc, 0.75);
  meter.clear();
  EXPECT_EQ(meter.quality().samples, 0u);
}

}  // namespace
}  // namespace rowtide
