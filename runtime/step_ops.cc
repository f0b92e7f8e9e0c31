#include "runtime/step_ops.h"

#include <algorithm>
#include <cmath>

#include "kernels/weight_gradient.h"

namespace rowtide {
namespace {

// Units of work for one thread: enough to hide the cost of a task, few enough to balance.
constexpr uint64_t kBagBlock = 256;
constexpr uint64_t kRowBlock = 256;

}  // namespace

StepOps::StepOps(const Layout& layout, const RuntimeOptions& options, std::vector<GroupTier>& tiers,
                 Parallel& parallel)
    : layout_(layout), seed_(options.seed), tiers_(tiers), parallel_(parallel) {
  const size_t features = layout.features.size();
  const uint64_t units = layout.max_ids + layout.max_bags();
  tasks_.reserve(units / kRowBlock + 2 * features + 1);
  gradient_features_.resize(features);
  part_columns_.resize(features * (options.gradient_parts + 1));  // and that of the fused path
  uint32_t first = 0;
  for (const TableLayout& table : layout.tables) {
    first_of_table_.push_back(first);
    first += static_cast<uint32_t>(table.features.size());
  }
}

template <typename Float>
Status StepOps::check_shapes(const KnownBatch& known, const Values<Float>& values) const {
  const uint64_t pooled = known.samples * layout_.pooled_width;
  if (values.pooled.size() != pooled) {
    return {Code::kInvalid, "pooled has " + std::to_string(values.pooled.size()) +
                                " floats, expected " + std::to_string(pooled) + " (" +
                                std::to_string(known.samples) + " samples x " +
                                std::to_string(layout_.pooled_width) + ")"};
  }
  if (values.sequences.size() != layout_.sequence_count) {
    return {Code::kInvalid, std::to_string(values.sequences.size()) + " sequences, expected " +
                                std::to_string(layout_.sequence_count)};
  }
  return {};
}
template Status StepOps::check_shapes(const KnownBatch&, const Values<float>&) const;
template Status StepOps::check_shapes(const KnownBatch&, const Values<const float>&) const;

void StepOps::cut(uint32_t feature, uint64_t count, uint64_t block) {
  for (uint64_t begin = 0; begin < count; begin += block) {
    tasks_.push_back({feature, begin, std::min(begin + block, count)});
  }
}

PooledLookup StepOps::lookup_of(uint32_t f, const KnownBatch& known,
                                const PlacedBatch& placed) const {
  const FeatureLayout& feature = layout_.features[f];
  const TableLayout& table = layout_.tables[feature.table];
  PooledLookup op;
  op.format = table.format;
  op.planes = tiers_[table.group].hot;
  op.slots = placed.slots;
  op.unique = known.rows.unique;
  op.offsets = placed.offsets + f * known.samples;
  op.weights = known.weights;
  op.pooling = feature.pooling;
  op.bags = known.samples;
  return op;
}

void StepOps::forward(const KnownBatch& known, const PlacedBatch& placed,
                      const Values<float>& out) {
  tasks_.clear();
  for (uint32_t f = 0; f < layout_.features.size(); ++f) {
    const bool sequence = layout_.features[f].pooling == Pooling::kNone;
    const int64_t* offsets = placed.offsets + f * known.samples;
    cut(f, sequence ? offsets[known.samples] - offsets[0] : known.samples, kBagBlock);
  }
  parallel_.run(tasks_.size(), [&](size_t i) {
    const Task& task = tasks_[i];
    const FeatureLayout& feature = layout_.features[task.feature];
    PooledLookup op = lookup_of(task.feature, known, placed);
    if (feature.pooling == Pooling::kNone) {
      op.out = out.sequences[feature.sequence];
      op.out_stride = feature.width;
      sequence_lookup_cpu(op, task.begin, task.end);
    } else {
      op.out = out.pooled.data() + feature.column;
      op.out_stride = layout_.pooled_width;
      pooled_lookup_cpu(op, task.begin, task.end);
    }
  });
}

void StepOps::weights_gradient(const KnownBatch& known, const PlacedBatch& placed,
                               const Values<const float>& gradient, float* out, bool add) {
  tasks_.clear();
  for (uint32_t f = 0; f < layout_.features.size(); ++f) cut(f, known.samples, kBagBlock);
  parallel_.run(tasks_.size(), [&](size_t i) {
    const Task& task = tasks_[i];
    const FeatureLayout& feature = layout_.features[task.feature];
    const bool sequence = feature.pooling == Pooling::kNone;
    WeightGradient op;
    op.lookup = lookup_of(task.feature, known, placed);
    op.gradient =
        sequence ? gradient.sequences[feature.sequence] : gradient.pooled.data() + feature.column;
    op.stride = sequence ? feature.width : layout_.pooled_width;
    op.out = out;
    op.add = add;
    weight_gradient_cpu(op, task.begin, task.end);
  });
}

void StepOps::fill_features(const KnownBatch& known, const PlacedBatch& placed,
                            std::span<const Values<const float>> parts) {
  for (uint32_t t = 0; t < layout_.tables.size(); ++t) {
    GradientFeature* next = gradient_features_.data() + first_of_table_[t];
    for (uint32_t f : layout_.tables[t].features) {
      const FeatureLayout& feature = layout_.features[f];
      const bool sequence = feature.pooling == Pooling::kNone;
      const float** columns = part_columns_.data() + f * parts.size();
      for (size_t p = 0; p < parts.size(); ++p) {
        columns[p] = sequence ? parts[p].sequences[feature.sequence]
                              : parts[p].pooled.data() + feature.column;
      }
      GradientFeature& out = *next++;
      out.first = known.offsets[f * known.samples];
      out.end = known.offsets[(f + 1) * known.samples];
      out.pooling = feature.pooling;
      out.offsets = placed.offsets + f * known.samples;
      out.sample = known.one_hot[f] != 0 ? nullptr : placed.sample + out.first;
      out.parts = columns;
      out.stride = sequence ? feature.width : layout_.pooled_width;
    }
  }
}

void StepOps::apply(const KnownBatch& known, const PlacedBatch& placed,
                    std::span<const Values<const float>> parts, const ApplyOptions& options,
                    uint64_t global_step) {
  if (parts.empty()) return;
  fill_features(known, placed, parts);
  const double t = static_cast<double>(global_step + 1);
  OptimizerStep step;
  step.learning_rate = options.learning_rate;
  step.eps = options.eps;
  step.beta1 = options.beta1;
  step.beta2 = options.beta2;
  step.correction1 = static_cast<float>(1 - std::pow(double{options.beta1}, t));
  step.correction2 = static_cast<float>(1 - std::pow(double{options.beta2}, t));
  step.weight_decay = options.weight_decay;
  step.decoupled = options.decoupled;
  step.seed = seed_;
  step.step = global_step;

  tasks_.clear();
  for (uint32_t f = 0; f < layout_.features.size(); ++f) {
    cut(f, known.rows.feature_rows[f + 1] - known.rows.feature_rows[f], kRowBlock);
  }
  parallel_.run(tasks_.size(), [&](size_t i) {
    const Task& task = tasks_[i];
    const uint32_t t = layout_.features[task.feature].table;
    const TableLayout& table = layout_.tables[t];
    const GroupTier& tier = tiers_[table.group];
    const uint32_t first = known.rows.feature_rows[task.feature];
    UpdateRows op;
    op.format = table.format;
    op.planes = tier.hot;
    op.step = step;
    op.slots = placed.slots + first;
    op.keys = known.rows.keys + first;
    op.occurrence_begin = placed.occurrence_begin + first;
    op.occurrences = placed.occurrences;
    op.features = gradient_features_.data() + first_of_table_[t];
    op.feature_count = static_cast<uint32_t>(table.features.size());
    op.part_count = static_cast<uint32_t>(parts.size());
    op.weights = known.weights;
    update_rows_cpu(op, task.begin, task.end);
    for (uint64_t u = task.begin; u < task.end; ++u) {
      tier.set_flags(op.slots[u], tier.flags(op.slots[u]) | kDirty);
    }
  });
}

}  // namespace rowtide
