#include "tests/support/toy_training.h"

namespace rowtide {

ToyModel ToyModel::make(OptimizerKind optimizer, Precision precision) {
  ToyModel model;
  const auto table = [&](const char* name, uint64_t rows, uint32_t width, OptimizerKind kind,
                         Placement placement) {
    TableOptions t;
    t.name = name;
    t.rows = rows;
    t.width = width;
    t.precision = precision;
    t.optimizer = kind;
    t.init_scale = 0.1f;
    t.placement = placement;
    model.options.tables.push_back(t);
  };
  table("small", 40, 8, optimizer, Placement::kResident);
  table("users", 3000, 8, optimizer, Placement::kCached);
  table("items", 20000, 8, optimizer, Placement::kCached);
  table("wide", 500, 33, optimizer, Placement::kCached);
  table("words", 2000, 5, OptimizerKind::kSgd, Placement::kCached);
  const auto feature = [&](const char* name, uint32_t t, Pooling pooling, uint32_t hot) {
    model.options.features.push_back(
        {.name = name, .table = t, .pooling = pooling, .max_ids_per_sample = hot});
  };
  feature("small", 0, Pooling::kSum, 1);
  feature("user", 1, Pooling::kSum, 1);
  feature("bought", 2, Pooling::kMean, 4);
  feature("seen", 2, Pooling::kSum, 3);
  feature("wide", 3, Pooling::kSum, 1);
  feature("words", 4, Pooling::kNone, 3);
  model.options.max_samples = 64;
  model.options.max_ids = 64 * 13;
  model.options.threads = 1;
  return model;
}

uint64_t ToyModel::all_rows() const {
  uint64_t rows = 0;
  for (const TableOptions& table : options.tables) rows += table.rows;
  return rows;
}

ToyBatch ToyModel::batch(uint64_t step, uint64_t seed) const {
  std::mt19937_64 random(seed * 1000003 + step);
  ToyBatch batch;
  batch.samples = step % 17 == 5 ? 0 : step % 7 == 3 ? 1 : options.max_samples;
  batch.offsets.push_back(0);
  for (const FeatureOptions& feature : options.features) {
    const uint64_t rows = options.tables[feature.table].rows;
    for (uint64_t s = 0; s < batch.samples; ++s) {
      const uint64_t hot = feature.max_ids_per_sample;
      const uint64_t ids = hot == 1 ? 1 : random() % (hot + 1);
      for (uint64_t i = 0; i < ids; ++i) {
        const double u = static_cast<double>(random() >> 11) * 0x1p-53;
        const uint64_t rank = static_cast<uint64_t>(u * u * u * static_cast<double>(rows));
        batch.ids.push_back(static_cast<int64_t>((rank + step * 3) * 7919 % rows));
        if (weighted) batch.weights.push_back(static_cast<float>(random() % 16) / 8 - 0.5f);
      }
      batch.offsets.push_back(static_cast<int64_t>(batch.ids.size()));
    }
  }
  return batch;
}

namespace {

// Room for one batch's outputs and gradients.
struct Arrays {
  std::vector<float> pooled, pooled_gradient, sequence, sequence_gradient, weights_gradient;
  float* sequences[1];
  const float* sequence_gradients[1];

  void resize(const ToyModel& model, const ToyBatch& batch) {
    uint64_t width = 0, sequence_floats = 0;
    for (size_t f = 0; f < model.options.features.size(); ++f) {
      const FeatureOptions& feature = model.options.features[f];
      const uint32_t w = model.options.tables[feature.table].width;
      if (feature.pooling != Pooling::kNone) {
        width += w;
      } else {
        sequence_floats = w * static_cast<uint64_t>(batch.offsets[(f + 1) * batch.samples] -
                                                    batch.offsets[f * batch.samples]);
      }
    }
    pooled.assign(batch.samples * width, -99);
    pooled_gradient.resize(pooled.size());
    sequence.assign(sequence_floats, -99);
    sequence_gradient.resize(sequence.size());
    weights_gradient.resize(batch.ids.size());
    sequences[0] = sequence.data();
    sequence_gradients[0] = sequence_gradient.data();
  }
  Values<float> out() { return {.pooled = pooled, .sequences = sequences}; }
  Values<const float> gradient() {
    return {.pooled = pooled_gradient, .sequences = sequence_gradients};
  }
  void make_gradient(uint64_t step, float factor) {
    const auto of = [&](const std::vector<float>& values, std::vector<float>& gradient) {
      for (size_t i = 0; i < values.size(); ++i) {
        gradient[i] = factor * (values[i] * 0.5f + static_cast<float>((i * 37 + step) % 11) - 5);
      }
    };
    of(pooled, pooled_gradient);
    of(sequence, sequence_gradient);
  }
  double sum() const {
    double sum = 0;
    for (float x : pooled) sum += x;
    for (float x : sequence) sum += x;
    return sum;
  }
};

void train_step(uint64_t n, bool weighted, bool drop, Step& step, Arrays& arrays) {
  const ApplyOptions options = {.learning_rate = 0.02f, .weight_decay = n % 3 == 0 ? 0.01f : 0};
  ASSERT_TRUE(step.forward(arrays.out()).ok());
  std::span<float> weights_gradient;
  if (weighted) weights_gradient = arrays.weights_gradient;
  if (drop) return step.drop();
  arrays.make_gradient(n, 0.1f);
  if (n % 4 == 1) {
    ASSERT_TRUE(step.backward(arrays.gradient(), weights_gradient).ok());
    arrays.make_gradient(n, 0.05f);
  }
  const Status status = step.backward_and_apply(arrays.gradient(), options, weights_gradient);
  ASSERT_TRUE(status.ok()) << status.to_string();
}

}  // namespace

double train_toy(const ToyModel& model, Runtime& runtime, const ToyRun& run) {
  struct Flight {
    Step step;
    ToyBatch batch;
  };
  std::deque<Flight> flights;
  Arrays arrays;
  double sum = 0;
  const uint64_t end = run.first + run.steps;
  const uint64_t ahead = run.ahead > 0 ? run.ahead : model.options.known_batches + 1;
  uint64_t next = run.first;
  for (uint64_t n = run.first; n < end; ++n) {
    for (; next < end && next < n + ahead; ++next) {
      ToyBatch batch = model.batch(next);
      auto step = runtime.submit(batch.view());
      EXPECT_TRUE(step.ok()) << step.status().to_string();
      if (!step.ok()) return 0;
      EXPECT_EQ(step->number(), next);
      flights.push_back({std::move(*step), std::move(batch)});
    }
    if (next == end) runtime.end_of_input();
    if (run.evaluate_every > 0 && n % run.evaluate_every == 0) {
      const ToyBatch batch = model.batch(n, /*seed=*/77);
      auto evaluation = runtime.evaluate(batch.view());
      EXPECT_TRUE(evaluation.ok()) << evaluation.status().to_string();
      arrays.resize(model, batch);
      EXPECT_TRUE(evaluation->forward(arrays.out()).ok());
    }
    const bool drop = static_cast<double>(n * 7919 % 1000) < run.drop_share * 1000;
    arrays.resize(model, flights.front().batch);
    train_step(n, model.weighted, drop, flights.front().step, arrays);
    sum += arrays.sum();
    flights.pop_front();
    if (run.commit_every > 0 && (n + 1) % run.commit_every == 0) {
      const Status status = runtime.commit({});
      EXPECT_TRUE(status.ok()) << status.to_string();
    }
  }
  return sum;
}

}  // namespace rowtide
