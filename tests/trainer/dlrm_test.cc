#include "trainer/dlrm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/reference/dlrm.h"
#include "tests/support/differences.h"
#include "tests/support/numbers.h"

namespace rowtide {
namespace {

// dense -> 7 -> 4, four vectors, -> 5 -> 1
DlrmOptions small_model(DenseOptimizer optimizer = DenseOptimizer::kSgd) {
  return {.dense_features = 3,
          .embeddings = 3,
          .dim = 4,
          .bottom = {7, 4},
          .top = {5, 1},
          .max_samples = 700,
          .optimizer = optimizer,
          .seed = 7};
}

// One batch, and what a model says of it.
struct Batch {
  Batch(const DlrmOptions& options, uint64_t n, uint64_t seed)
      : samples(n),
        dense(random_floats(n * options.dense_features, seed)),
        pooled(random_floats(n * options.embeddings * options.dim, seed + 1)),
        labels(random_floats(n, seed + 2)),
        logits(n),
        pooled_gradient(pooled.size()) {
    for (float& label : labels) label = label > 0;
  }
  double step(Dlrm& dlrm, float learning_rate) {
    const double loss = gradient(dlrm);
    dlrm.update(learning_rate);
    return loss;
  }
  double gradient(Dlrm& dlrm) {
    dlrm.forward(samples, dense.data(), pooled.data(), logits.data());
    return dlrm.backward(labels.data(), pooled_gradient.data());
  }

  uint64_t samples;
  std::vector<float> dense, pooled, labels, logits, pooled_gradient;
};

constexpr const char* kNames[] = {"sgd", "adagrad", "adam"};

class DlrmTest : public ::testing::TestWithParam<DenseOptimizer> {
 protected:
  std::unique_ptr<Dlrm> make(const DlrmOptions& options) {
    auto dlrm = Dlrm::create(options, one_thread_);
    EXPECT_TRUE(dlrm.ok()) << dlrm.status().to_string();
    return std::move(dlrm).value();
  }
  std::string refusal(const DlrmOptions& options) {
    auto dlrm = Dlrm::create(options, one_thread_);
    return dlrm.ok() ? "" : dlrm.status().to_string();
  }
  Parallel one_thread_{1};
};

INSTANTIATE_TEST_SUITE_P(Optimizers, DlrmTest,
                         ::testing::Values(DenseOptimizer::kSgd, DenseOptimizer::kAdagrad,
                                           DenseOptimizer::kAdam),
                         [](const auto& info) { return kNames[static_cast<int>(info.param)]; });

std::vector<float> all_values(std::vector<DenseTensor> tensors) {
  std::vector<float> all;
  for (const auto& tensor : tensors)
    all.insert(all.end(), tensor.values.begin(), tensor.values.end());
  return all;
}

// Products of fp32 carry 2^-24 each; a few layers of at most 13 terms stay well inside this.
constexpr double kTolerance = 2e-6;

TEST_F(DlrmTest, GradientsEqualFiniteDifferencesOfTheReference) {
  const DlrmOptions options = small_model();
  auto dlrm = make(options);
  Batch batch(options, 6, /*seed=*/1);
  const double loss = batch.gradient(*dlrm);
  DlrmReference reference(options, *dlrm);
  const auto dense = widened(batch.dense), labels = widened(batch.labels);
  auto pooled = widened(batch.pooled);
  const auto reference_loss = [&] { return reference.loss(6, dense, pooled, labels); };
  EXPECT_NEAR(loss, reference_loss(), kTolerance);

  const auto gradients = dlrm->gradients();
  ASSERT_EQ(gradients.size(), reference.tensors.size());
  for (size_t t = 0; t < gradients.size(); ++t) {
    const auto expected = central_differences(reference.tensors[t].value, reference_loss);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(gradients[t].values[i], expected[i], kTolerance) << gradients[t].name << " " << i;
    }
  }
  const auto expected = central_differences(pooled, reference_loss);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(batch.pooled_gradient[i], expected[i], kTolerance) << "pooled " << i;
  }
}

TEST_P(DlrmTest, TrainsLikeTheReference) {
  DlrmOptions options = small_model(GetParam());
  options.eps = 1e-3f;  // a gradient that is all but 0 must not become a whole step of either sign
  options.weight_decay = 0.01f;
  for (bool decoupled : {false, true}) {
    options.decoupled = decoupled;
    auto dlrm = make(options);
    DlrmReference reference(options, *dlrm);
    std::vector<double> pooled_gradient;
    for (int step = 0; step < 5; ++step) {
      Batch batch(options, 300, /*seed=*/10 + step);
      const double loss = batch.step(*dlrm, 0.05f);
      EXPECT_NEAR(loss,
                  reference.backward(300, widened(batch.dense), widened(batch.pooled),
                                     widened(batch.labels), pooled_gradient),
                  5e-6);
      reference.update(0.05f);
      for (size_t i = 0; i < pooled_gradient.size(); ++i) {
        ASSERT_NEAR(batch.pooled_gradient[i], pooled_gradient[i], kTolerance) << "step " << step;
      }
    }
  }
}

// Labels that a plane of the dense features and one dot product separate.
TEST_P(DlrmTest, LearnsASeparableProblem) {
  const DlrmOptions options = small_model(GetParam());
  auto dlrm = make(options);
  Batch batch(options, 500, /*seed=*/1);
  for (uint64_t s = 0; s < batch.samples; ++s) {
    batch.labels[s] = batch.dense[3 * s] + batch.pooled[12 * s] * batch.pooled[12 * s + 4] > 0;
  }
  const float learning_rate = GetParam() == DenseOptimizer::kAdam ? 0.02f : 0.3f;
  const double before = batch.step(*dlrm, learning_rate);
  for (int step = 0; step < 200; ++step) batch.step(*dlrm, learning_rate);
  EXPECT_LT(batch.gradient(*dlrm), before / 3);
}

TEST_P(DlrmTest, NoBitDependsOnTheNumberOfThreads) {
  DlrmOptions options = small_model(GetParam());
  options.bottom = {200, 4};  // two tiles, the second one short
  std::vector<float> expected;
  for (int threads : {1, 2, 3, 5}) {
    Parallel parallel(threads);
    auto dlrm = std::move(Dlrm::create(options, parallel)).value();
    std::vector<float> outcome;
    for (uint64_t samples : {700, 513, 1, 256}) {
      Batch batch(options, samples, /*seed=*/samples);
      outcome.push_back(static_cast<float>(batch.step(*dlrm, 0.1f)));
      outcome.insert(outcome.end(), batch.pooled_gradient.begin(), batch.pooled_gradient.end());
    }
    const auto values = all_values(dlrm->tensors());
    outcome.insert(outcome.end(), values.begin(), values.end());
    if (threads == 1) expected = outcome;
    EXPECT_EQ(first_difference(expected, outcome), "") << threads << " threads";
  }
}

TEST_F(DlrmTest, NoBitDependsOnEarlierBatches) {
  const DlrmOptions options = small_model();
  auto fresh = make(options), used = make(options);
  Batch big(options, 700, 1);
  big.gradient(*used);
  for (uint64_t samples : {0, 1, 255, 257}) {
    Batch a(options, samples, 2), b(options, samples, 2);
    EXPECT_EQ(a.gradient(*fresh), b.gradient(*used));
    EXPECT_EQ(first_difference(a.logits, b.logits), "");
    EXPECT_EQ(first_difference(a.pooled_gradient, b.pooled_gradient), "");
    EXPECT_EQ(first_difference(all_values(fresh->gradients()), all_values(used->gradients())), "");
  }
}

TEST_F(DlrmTest, ABatchOfNoSamplesHasNoLossAndNoGradient) {
  auto dlrm = make(small_model());
  dlrm->forward(0, nullptr, nullptr, nullptr);
  EXPECT_EQ(dlrm->backward(nullptr, nullptr), 0);
  for (float g : all_values(dlrm->gradients())) EXPECT_EQ(g, 0);
}

TEST_P(DlrmTest, GoesOnFromItsTensorsToTheBit) {
  DlrmOptions options = small_model(GetParam());
  auto dlrm = make(options);
  Batch first(options, 300, 1), second(options, 300, 2);
  first.step(*dlrm, 0.1f);
  std::vector<std::vector<float>> saved;
  for (const auto& tensor : dlrm->tensors())
    saved.emplace_back(tensor.values.begin(), tensor.values.end());

  options.seed = 99;  // all that it draws is overwritten
  auto resumed = make(options);
  auto tensors = resumed->tensors();
  for (size_t t = 0; t < saved.size(); ++t) std::ranges::copy(saved[t], tensors[t].values.begin());
  resumed->set_steps(dlrm->steps());
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(second.step(*dlrm, 0.1f), second.step(*resumed, 0.1f));
  }
  EXPECT_EQ(first_difference(all_values(dlrm->tensors()), all_values(resumed->tensors())), "");
}

TEST_P(DlrmTest, NamesItsTensors) {
  std::string names;
  for (const auto& tensor : make(small_model(GetParam()))->tensors()) {
    if (tensor.name.find("top.0") == std::string::npos) continue;
    names += tensor.name;
    for (uint64_t n : tensor.shape) names += " " + std::to_string(n);
    names += "; ";
  }
  const char* expected[] = {
      "dense/top.0.weight 5 10; dense/top.0.bias 5; ",
      "dense/top.0.weight 5 10; dense/top.0.weight.adagrad 5 10; "
      "dense/top.0.bias 5; dense/top.0.bias.adagrad 5; ",
      "dense/top.0.weight 5 10; dense/top.0.weight.adam_m 5 10; dense/top.0.weight.adam_v 5 10; "
      "dense/top.0.bias 5; dense/top.0.bias.adam_m 5; dense/top.0.bias.adam_v 5; "};
  EXPECT_EQ(names, expected[static_cast<int>(GetParam())]);
}

TEST_F(DlrmTest, FirstValuesAreNormalWithTheVariancesOfTheLayer) {
  DlrmOptions options = small_model();
  options.bottom = {400, 4};
  options.dense_features = 100;
  auto dlrm = make(options);
  const auto deviation = [](std::span<const float> values) {
    double sum = 0, squares = 0;
    for (double v : values) sum += v, squares += v * v;
    EXPECT_LT(std::abs(sum / values.size()), 4 * std::sqrt(squares) / values.size());
    return std::sqrt(squares / values.size());
  };
  const auto tensors = dlrm->tensors();
  EXPECT_NEAR(deviation(tensors[0].values), std::sqrt(2.0 / 500), 0.001);  // 40,000 values
  EXPECT_NEAR(deviation(tensors[1].values), std::sqrt(1.0 / 400), 0.006);  // 400
  options.seed = 8;
  EXPECT_NE(first_difference(all_values(dlrm->tensors()), all_values(make(options)->tensors())),
            "");
}

TEST_F(DlrmTest, RefusesWidthsThatCannotBeAndNamesThem) {
  const auto refused = [&](auto change) {
    DlrmOptions options = small_model();
    change(options);
    return refusal(options);
  };
  EXPECT_EQ(refused([](auto& o) {
              o.bottom = {7, 5};
            }),
            "invalid: bottom ends in width 5, it must end in dim 4");
  EXPECT_EQ(refused([](auto& o) {
              o.top = {5, 2};
            }),
            "invalid: top ends in width 2, it must end in width 1");
  EXPECT_EQ(refused([](auto& o) { o.top = {}; }), "invalid: top has no layer");
  EXPECT_EQ(refused([](auto& o) {
              o.bottom = {0, 4};
            }),
            "invalid: bottom: the width of layer 0 is 0");
  EXPECT_EQ(refused([](auto& o) { o.dim = 0; }), "invalid: dim is 0");
  EXPECT_EQ(refused([](auto& o) { o.dense_features = 0; }), "invalid: dense_features is 0");
  EXPECT_EQ(refused([](auto& o) { o.max_samples = 0; }), "invalid: max_samples is 0");
  EXPECT_NE(refused([](auto& o) { o.embeddings = 1 << 20; }).find("embeddings 1048576"),
            std::string::npos);
}

TEST_F(DlrmTest, MemoryThatCannotBeHadIsAnErrorNamingIt) {
  DlrmOptions options = small_model();
  options.max_samples = uint64_t{1} << 40;
  EXPECT_NE(refusal(options).find("no space: the dense part needs"), std::string::npos);
}

// What lies beyond the samples of a short batch, or was never written, reaches nothing: debug
// builds fill it with NaN.
TEST_P(DlrmTest, NoFreshMemoryReachesAResult) {
  const DlrmOptions options = small_model(GetParam());
  auto dlrm = make(options);
  for (uint64_t samples : {1, 257, 700}) {
    Batch batch(options, samples, 1);
    EXPECT_TRUE(std::isfinite(batch.step(*dlrm, 0.1f)));
    for (float g : batch.pooled_gradient) ASSERT_TRUE(std::isfinite(g));
    for (float v : all_values(dlrm->tensors())) ASSERT_TRUE(std::isfinite(v));
  }
}

TEST_F(DlrmTest, TheLossOfHugeInputsIsFinite) {
  const DlrmOptions options = small_model();
  auto dlrm = make(options);
  Batch batch(options, 10, 1);
  for (float& v : batch.pooled) v *= 1e9f;
  EXPECT_TRUE(std::isfinite(batch.gradient(*dlrm)));
}

}  // namespace
}  // namespace rowtide
