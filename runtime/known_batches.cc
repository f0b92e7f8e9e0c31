#include "runtime/known_batches.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/salt.h"

namespace rowtide {
namespace {

std::string feature_name(const RuntimeOptions& options, size_t f) {
  return "feature " + std::to_string(f) + " (" + options.features[f].name + ")";
}

Status check_offsets(const RuntimeOptions& options, const Batch& batch) {
  const size_t features = options.features.size();
  if (batch.offsets.size() != features * batch.samples + 1) {
    return {Code::kInvalid, "offsets: " + std::to_string(batch.offsets.size()) + " given, " +
                                std::to_string(features * batch.samples + 1) + " expected for " +
                                std::to_string(features) + " features and " +
                                std::to_string(batch.samples) + " samples"};
  }
  if (batch.offsets[0] != 0) return {Code::kInvalid, "offsets must begin with 0"};
  bool any_falls = false;  // as in check_ids
  for (size_t bag = 0; bag + 1 < batch.offsets.size(); ++bag) {
    any_falls |= batch.offsets[bag + 1] < batch.offsets[bag];
  }
  for (size_t bag = 0; any_falls; ++bag) {
    if (batch.offsets[bag + 1] >= batch.offsets[bag]) continue;
    return {Code::kInvalid, feature_name(options, bag / batch.samples) + ", sample " +
                                std::to_string(bag % batch.samples) + ": offsets fall from " +
                                std::to_string(batch.offsets[bag]) + " to " +
                                std::to_string(batch.offsets[bag + 1])};
  }
  const int64_t last = batch.offsets.back();
  if (static_cast<uint64_t>(last) != batch.ids.size()) {
    return {Code::kInvalid, "the lengths sum to " + std::to_string(last) + ", but there are " +
                                std::to_string(batch.ids.size()) + " ids; the last feature is " +
                                (features == 0 ? "none" : feature_name(options, features - 1))};
  }
  return {};
}

// Names the feature's first id out of range.
Status bad_id(const Layout& layout, const Batch& batch, size_t f) {
  const TableLayout& table = layout.tables[layout.features[f].table];
  const auto bags = batch.offsets.subspan(f * batch.samples, batch.samples + 1);
  int64_t i = bags[0];
  while (static_cast<uint64_t>(batch.ids[i]) < table.rows) ++i;
  const auto sample = std::upper_bound(bags.begin(), bags.end(), i) - bags.begin() - 1;
  return {Code::kInvalid, "table " + table.name + ", sample " + std::to_string(sample) + ": id " +
                              std::to_string(batch.ids[i]) + " is not in [0, " +
                              std::to_string(table.rows) + ")"};
}

Status check_ids(const Layout& layout, const RuntimeOptions& options, const Batch& batch) {
  for (size_t f = 0; f < layout.features.size(); ++f) {
    const uint64_t begin = batch.offsets[f * batch.samples];
    const uint64_t end = batch.offsets[(f + 1) * batch.samples];
    if (end - begin > layout.features[f].most_ids) {
      return {Code::kInvalid, feature_name(options, f) + " has " + std::to_string(end - begin) +
                                  " ids, at most " + std::to_string(layout.features[f].most_ids) +
                                  " were announced"};
    }
    const uint64_t rows = layout.tables[layout.features[f].table].rows;
    bool any_bad = false;  // without a way out, so that the loop is one of vectors
    for (uint64_t i = begin; i < end; ++i) any_bad |= static_cast<uint64_t>(batch.ids[i]) >= rows;
    if (any_bad && !options.skip_bad_ids) return bad_id(layout, batch, f);
  }
  return {};
}

}  // namespace

Status check_batch(const Layout& layout, const RuntimeOptions& options, const Batch& batch) {
  if (batch.samples > layout.max_samples) {
    return {Code::kInvalid, "a batch of " + std::to_string(batch.samples) +
                                " samples, max_samples is " + std::to_string(layout.max_samples)};
  }
  if (batch.ids.size() > layout.max_ids) {
    return {Code::kInvalid, "a batch of " + std::to_string(batch.ids.size()) + " ids, max_ids is " +
                                std::to_string(layout.max_ids)};
  }
  ROWTIDE_TRY(check_offsets(options, batch));
  if (!batch.weights.empty() && batch.weights.size() != batch.ids.size()) {
    return {Code::kInvalid, std::to_string(batch.weights.size()) + " weights for " +
                                std::to_string(batch.ids.size()) + " ids"};
  }
  if (!batch.weights.empty() && !options.weighted) {
    return {Code::kInvalid, "the batch has weights, but the runtime was opened without `weighted`"};
  }
  return check_ids(layout, options, batch);
}

KnownBatch carve_known_batch(const Layout& layout, bool weighted, Carver& carver) {
  KnownBatch batch;
  batch.rows.keys = carver.take<Key>(layout.max_ids);
  batch.rows.unique = carver.take<uint32_t>(layout.max_ids);
  batch.rows.feature_rows = carver.take<uint32_t>(layout.features.size() + 1);
  if (layout.policy->foresees) batch.next = carver.take<uint32_t>(layout.max_ids);
  batch.offsets = carver.take<uint32_t>(layout.max_bags() + 1);
  if (weighted) batch.weight_store = carver.take<float>(layout.max_ids);
  batch.one_hot = carver.take<uint8_t>(layout.features.size());
  return batch;
}

BatchCopier::BatchCopier(const Layout& layout, bool skip_bad_ids, Carver& carver)
    : layout_(layout),
      valid_ids_(skip_bad_ids ? carver.take<int64_t>(layout.max_ids) : nullptr),
      feature_begin_(carver.take<uint64_t>(layout.features.size() + 1)),
      deduplicator_(carver.take<std::byte>(Deduplicator::scratch_bytes(
                        layout.max_ids, static_cast<uint32_t>(layout.tables.size()))),
                    layout.max_ids, static_cast<uint32_t>(layout.tables.size()), process_salt()) {
  for (const FeatureLayout& feature : layout.features) {
    table_id_.push_back(layout.tables[feature.table].id);
    table_rows_.push_back(layout.tables[feature.table].rows);
  }
}

void BatchCopier::measure(const Layout& layout, bool skip_bad_ids, Carver& carver) {
  if (skip_bad_ids) carver.take<int64_t>(layout.max_ids);
  carver.take<uint64_t>(layout.features.size() + 1);
  carver.take<std::byte>(
      Deduplicator::scratch_bytes(layout.max_ids, static_cast<uint32_t>(layout.tables.size())));
}

// The ids with those out of range replaced.
const int64_t* BatchCopier::skip_bad_ids(const Batch& batch, KnownBatch& into) {
  for (size_t f = 0; f < layout_.features.size(); ++f) {
    const uint64_t rows = table_rows_[f], end = feature_begin_[f + 1];
    uint64_t skipped = 0;
    for (uint64_t i = feature_begin_[f]; i < end; ++i) {
      const bool bad = static_cast<uint64_t>(batch.ids[i]) >= rows;
      valid_ids_[i] = bad ? kSkippedId : batch.ids[i];
      skipped += bad;
    }
    into.skipped += skipped;
  }
  return valid_ids_;
}

void BatchCopier::copy(const Batch& batch, KnownBatch& into) {
  const size_t features = layout_.features.size();
  into.samples = batch.samples;
  into.ids = batch.ids.size();
  into.skipped = 0;
  for (size_t bag = 0; bag < batch.offsets.size(); ++bag) {
    into.offsets[bag] = static_cast<uint32_t>(batch.offsets[bag]);
  }
  for (size_t f = 0; f <= features; ++f) feature_begin_[f] = into.offsets[f * batch.samples];
  for (size_t f = 0; f < features; ++f) {
    const uint32_t* bags = into.offsets + f * batch.samples;
    uint32_t unlike_one = 0;
    for (uint64_t s = 0; s < batch.samples; ++s) unlike_one |= (bags[s + 1] - bags[s]) ^ 1;
    into.one_hot[f] = unlike_one == 0;
  }
  into.weights = batch.weights.empty() ? nullptr : into.weight_store;
  if (into.weights != nullptr) {
    std::memcpy(into.weights, batch.weights.data(), batch.weights.size_bytes());
  }
  deduplicator_.run({.ids = valid_ids_ == nullptr ? batch.ids.data() : skip_bad_ids(batch, into),
                     .feature_begin = feature_begin_,
                     .table = table_id_.data(),
                     .features = static_cast<uint32_t>(features)},
                    into.rows);
}

}  // namespace rowtide
