#include "trainer/synth_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "trainer/metrics.h"

namespace rowtide {
namespace {

constexpr uint64_t kRows = 210000;

// One model and its rows for all tests.
struct Sample {
  PlantedModel model{kRows, 1, 1.0};
  std::vector<SynthRow> rows;
  Sample() {
    for (uint64_t i = 0; i < kRows; ++i) rows.push_back(model.row(i));
  }
};
const Sample& sample() {
  static const Sample made;
  return made;
}

bool has_id(const SynthRow& row, size_t column) { return row.ids_present >> column & 1; }

TEST(PlantedModelTest, TheTruthHasTheIntendedCeilingAndClickRate) {
  std::vector<float> logits, labels;
  for (const SynthRow& row : sample().rows) {
    logits.push_back(row.logit);
    labels.push_back(row.clicked);
  }
  QualityMeter meter;
  meter.add(logits, labels);
  const Quality quality = meter.quality();
  EXPECT_NEAR(quality.auc, 0.80, 0.005);
  EXPECT_NEAR(quality.calibration, 1, 0.01);
  EXPECT_NEAR(static_cast<double>(quality.positives) / kRows, 0.25, 0.005);
}

TEST(PlantedModelTest, LargeColumnsCarryAFifthOfTheVariance) {
  std::array<double, 4> sum{}, square{};
  constexpr uint64_t kStep = 7;
  double count = 0, total = 0;
  for (uint64_t i = 3; i < kRows; i += kStep, ++count) {
    const auto parts = sample().model.logit_parts(i);
    for (size_t g = 0; g < 4; ++g) {
      sum[g] += double{parts[g]};
      square[g] += double{parts[g]} * double{parts[g]};
    }
  }
  std::array<double, 4> variance;
  for (size_t g = 0; g < 4; ++g) {
    variance[g] = square[g] / count - sum[g] / count * (sum[g] / count);
    total += variance[g];
  }
  const double expected[] = {0.30, 0.35, 0.20, 0.15};
  for (size_t g = 0; g < 4; ++g) EXPECT_NEAR(variance[g] / total, expected[g], 0.02) << g;
}

TEST(PlantedModelTest, SupportDriftsAsRealDataDoes) {
  int large = 0;
  for (size_t c = 0; c < 26; ++c) {
    if (sample().model.cardinality(c) <= 50000) continue;
    ++large;
    std::unordered_set<uint32_t> before, now;
    for (uint64_t seventh = 0; seventh < 7; ++seventh) {
      double unseen = 0, present = 0;
      for (uint64_t i = kRows / 7 * seventh; i < kRows / 7 * (seventh + 1); ++i) {
        const SynthRow& row = sample().rows[i];
        if (!has_id(row, c)) continue;
        ++present;
        unseen += !before.contains(row.ids[c]);
        now.insert(row.ids[c]);
      }
      if (seventh > 0) {
        // With missing values as accesses to one old id, and without.
        EXPECT_GE(unseen / (kRows / 7.0), 0.25) << "C" << c + 1;
        EXPECT_LE(unseen / present, 0.60) << "C" << c + 1;
      }
      before.swap(now);
      now.clear();
    }
  }
  EXPECT_EQ(large, 8);
}

TEST(PlantedModelTest, IdsStayWithinTheCardinalityAndMissingValuesAreUsual) {
  for (size_t c = 0; c < 26; ++c) {
    std::unordered_set<uint32_t> ids;
    double missing = 0;
    for (const SynthRow& row : sample().rows) {
      if (has_id(row, c)) ids.insert(row.ids[c]);
      missing += !has_id(row, c);
    }
    EXPECT_LE(ids.size(), sample().model.cardinality(c));
    if (c == 21) {
      EXPECT_NEAR(missing / kRows, 0.76, 0.01);
    }
    if (c == 8) {
      EXPECT_EQ(ids.size(), 3u);
      EXPECT_EQ(missing, 0);
    }
  }
  double negative = 0, missing = 0;
  for (const SynthRow& row : sample().rows) {
    negative += row.dense[1] < 0;
    missing += !(row.dense_present >> 11 & 1);
  }
  EXPECT_GT(negative / kRows, 0.01);  // I2, as in Criteo
  EXPECT_NEAR(missing / kRows, 0.76, 0.01);
}

// An id with an effect has it for ever and comes often enough to be learnt.
TEST(PlantedModelTest, OnlyFrequentIdsCarryEffects) {
  for (const uint64_t cardinality : {1000u, 100000u, 5000000u}) {
    const IdColumn column({.cardinality = cardinality,
                           .rows = kRows,
                           .frequent_rows = 1166,
                           .unseen = cardinality > 50000 ? 0.33 : 0.0});
    std::unordered_map<int32_t, uint64_t> counts;
    std::unordered_map<int32_t, uint64_t> ids;
    for (uint64_t i = 0; i < kRows * 6 / 7; ++i) {
      const auto draw = column.draw(random_word(5, 2 * i), random_word(5, 2 * i + 1),
                                    static_cast<double>(i) * 7 / kRows);
      EXPECT_LT(draw.id, cardinality);
      if (draw.effect < 0) continue;
      ++counts[draw.effect];
      EXPECT_EQ(ids.emplace(draw.effect, draw.id).first->second, draw.id);
    }
    EXPECT_GE(counts.size(), 3u);
    EXPECT_EQ(counts.size(), column.frequent_ids());
    for (const auto& [effect, count] : counts) EXPECT_GE(count, 850u);  // 1000, less the chance
  }
}

// Logistic regression over the same features, with a weight for every id and no collisions.
class LinearModel {
 public:
  double predict(const SynthRow& row) {
    double logit = bias_.value;
    for (size_t i = 0; i < 13; ++i) logit += dense_[i].value * input(row, i);
    for (size_t c = 0; c < 26; ++c) logit += ids_[c][has_id(row, c) ? row.ids[c] : 0].value;
    return logit;
  }
  void learn(const SynthRow& row) {
    const double gradient = 1 / (1 + std::exp(-predict(row))) - row.clicked;
    bias_.step(gradient);
    for (size_t i = 0; i < 13; ++i) dense_[i].step(gradient * input(row, i));
    for (size_t c = 0; c < 26; ++c) ids_[c][has_id(row, c) ? row.ids[c] : 0].step(gradient);
  }

 private:
  struct Weight {  // AdaGrad
    double value = 0, sum = 0.01;
    void step(double gradient) {
      sum += gradient * gradient;
      value -= 0.05 * gradient / std::sqrt(sum);
    }
  };
  static double input(const SynthRow& row, size_t i) {
    return row.dense_present >> i & 1 ? std::log1p(std::max(row.dense[i], 0)) : 0.0;
  }

  Weight bias_;
  std::array<Weight, 13> dense_;
  std::array<std::unordered_map<uint32_t, Weight>, 26> ids_;
};

TEST(PlantedModelTest, SlowALinearModelStaysBelowTheCeiling) {
  constexpr uint64_t kAll = 1'000'000, kTraining = kAll / 7 * 6;
  const PlantedModel model(kAll, 1, 1.0);
  LinearModel linear;
  for (uint64_t i = 0; i < kTraining; ++i) linear.learn(model.row(i));
  std::vector<float> truth, predicted, labels;
  for (uint64_t i = kTraining; i < kAll; ++i) {
    const SynthRow row = model.row(i);
    truth.push_back(row.logit);
    predicted.push_back(static_cast<float>(linear.predict(row)));
    labels.push_back(row.clicked);
  }
  QualityMeter ceiling, reached;
  ceiling.add(truth, labels);
  reached.add(predicted, labels);
  const double gap = ceiling.quality().auc - reached.quality().auc;
  EXPECT_GE(gap, 0.01);
  EXPECT_LE(gap, 0.03);  // the rest is worth learning
  RecordProperty("gap", std::to_string(gap));
}

}  // namespace
}  // namespace rowtide
