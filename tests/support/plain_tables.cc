#include "tests/support/plain_tables.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/reference/initial_rows.h"
#include "tests/reference/pooled_lookup.h"
#include "tests/reference/update_rows.h"
#include "tests/reference/weight_gradient.h"

namespace rowtide {

Values<float> PlainValues::out() {
  out_.clear();
  for (auto& sequence : sequences) out_.push_back(sequence.data());
  return {.pooled = pooled, .sequences = out_};
}

Values<const float> PlainValues::gradient() {
  in_.clear();
  for (auto& sequence : sequences) in_.push_back(sequence.data());
  return {.pooled = pooled, .sequences = in_};
}

RowPlanes PlainTables::Used::planes() {
  return {weights.data(), state.data(), format.weight_bytes(), format.state_bytes()};
}

RowFormat PlainTables::format_of(uint32_t table) const {
  const TableOptions& t = options_.tables[table];
  return {t.width, t.precision, t.optimizer};
}

PlainTables::Record PlainTables::record(Key key) const {
  if (const auto row = rows_.find(key); row != rows_.end()) return row->second;
  const uint32_t table = table_of(key);
  const RowFormat format = format_of(table);
  Record fresh{std::vector<std::byte>(format.weight_bytes()),
               std::vector<std::byte>(format.state_bytes())};
  initial_row_reference(
      {.format = format, .seed = options_.seed, .scale = options_.tables[table].init_scale}, key,
      fresh.weights.data(), fresh.state.data());
  return fresh;
}

// visit(f, feature, first bag's offset, column of the pooled output or kNone's index).
template <typename Visit>
void PlainTables::for_each_feature(const Batch& batch, Visit&& visit) const {
  uint64_t column = 0, sequence = 0;
  for (uint32_t f = 0; f < options_.features.size(); ++f) {
    const FeatureOptions& feature = options_.features[f];
    const bool pooled = feature.pooling != Pooling::kNone;
    visit(f, feature, batch.offsets.data() + f * batch.samples, pooled ? column : sequence);
    if (pooled) {
      column += options_.tables[feature.table].width;
    } else {
      ++sequence;
    }
  }
}

PlainValues PlainTables::shaped(const Batch& batch, float value) const {
  PlainValues values;
  uint64_t width = 0;
  for_each_feature(batch,
                   [&](uint32_t, const FeatureOptions& feature, const int64_t* offsets, uint64_t) {
                     const uint32_t w = options_.tables[feature.table].width;
                     if (feature.pooling != Pooling::kNone) {
                       width += w;
                     } else {
                       const auto ids = static_cast<uint64_t>(offsets[batch.samples] - offsets[0]);
                       values.sequences.emplace_back(ids * w, value);
                     }
                   });
  values.pooled.assign(batch.samples * width, value);
  return values;
}

PlainTables::Used PlainTables::used_by(const Batch& batch, uint32_t table) const {
  Used used;
  used.format = format_of(table);
  used.unique.assign(batch.ids.size(), kSkipped);
  std::map<Key, uint32_t> index;
  for_each_feature(
      batch, [&](uint32_t, const FeatureOptions& feature, const int64_t* offsets, uint64_t) {
        if (feature.table != table) return;
        for (int64_t i = offsets[0]; i < offsets[batch.samples]; ++i) {
          const auto row = static_cast<uint64_t>(batch.ids[i]);
          if (row >= options_.tables[table].rows) continue;
          const auto [at, is_new] =
              index.emplace(make_key(table, row), static_cast<uint32_t>(index.size()));
          used.unique[i] = at->second;
          if (!is_new) continue;
          const Record record = this->record(at->first);
          used.keys.push_back(at->first);
          used.slots.push_back(at->second);
          used.weights.insert(used.weights.end(), record.weights.begin(), record.weights.end());
          used.state.insert(used.state.end(), record.state.begin(), record.state.end());
        }
      });
  return used;
}

PlainValues PlainTables::forward(const Batch& batch) const {
  PlainValues out = shaped(batch, 0);
  const uint64_t width = batch.samples == 0 ? 0 : out.pooled.size() / batch.samples;
  for_each_feature(batch, [&](uint32_t, const FeatureOptions& feature, const int64_t* offsets,
                              uint64_t place) {
    Used used = used_by(batch, feature.table);
    const bool sequence = feature.pooling == Pooling::kNone;
    PooledLookup op = {.format = used.format,
                       .planes = used.planes(),
                       .slots = used.slots.data(),
                       .unique = used.unique.data(),
                       .offsets = offsets,
                       .weights = batch.weights.empty() ? nullptr : batch.weights.data(),
                       .pooling = feature.pooling,
                       .out = sequence ? out.sequences[place].data() : out.pooled.data() + place,
                       .out_stride = sequence ? used.format.width : width,
                       .bags = batch.samples};
    if (sequence) {
      sequence_lookup_reference(op, 0, out.sequences[place].size() / used.format.width);
    } else {
      pooled_lookup_reference(op, 0, batch.samples);
    }
  });
  return out;
}

std::vector<float> PlainTables::weights_gradient(const Batch& batch,
                                                 const std::vector<PlainValues>& parts) const {
  std::vector<float> out(batch.ids.size());
  for (size_t p = 0; p < parts.size(); ++p) {
    for_each_feature(batch, [&](uint32_t, const FeatureOptions& feature, const int64_t* offsets,
                                uint64_t place) {
      Used used = used_by(batch, feature.table);
      const bool sequence = feature.pooling == Pooling::kNone;
      WeightGradient op;
      op.lookup = {.format = used.format,
                   .planes = used.planes(),
                   .slots = used.slots.data(),
                   .unique = used.unique.data(),
                   .offsets = offsets,
                   .pooling = feature.pooling,
                   .bags = batch.samples};
      op.gradient = sequence ? parts[p].sequences[place].data() : parts[p].pooled.data() + place;
      op.stride = sequence ? used.format.width : parts[p].pooled.size() / batch.samples;
      op.out = out.data();
      op.add = p > 0;
      weight_gradient_reference(op, 0, batch.samples);
    });
  }
  return out;
}

void PlainTables::apply(const Batch& batch, std::vector<PlainValues> parts,
                        const ApplyOptions& options, uint64_t step) {
  if (parts.empty()) return;
  for (uint32_t table = 0; table < options_.tables.size(); ++table) {
    Used used = used_by(batch, table);
    if (used.keys.empty()) continue;
    std::vector<std::vector<uint32_t>> of_row(used.keys.size());
    for (uint32_t i = 0; i < used.unique.size(); ++i) {
      if (used.unique[i] != kSkipped) of_row[used.unique[i]].push_back(i);
    }
    std::vector<uint32_t> begin{0}, occurrences;
    for (const auto& row : of_row) {
      occurrences.insert(occurrences.end(), row.begin(), row.end());
      begin.push_back(static_cast<uint32_t>(occurrences.size()));
    }
    std::vector<GradientFeature> features;
    std::vector<std::vector<uint32_t>> sample(options_.features.size());
    std::vector<std::vector<const float*>> columns(options_.features.size());
    for_each_feature(batch, [&](uint32_t f, const FeatureOptions& feature, const int64_t* offsets,
                                uint64_t place) {
      if (feature.table != table) return;
      const bool sequence = feature.pooling == Pooling::kNone;
      for (uint64_t s = 0; s < batch.samples; ++s) {
        sample[f].insert(sample[f].end(), offsets[s + 1] - offsets[s], static_cast<uint32_t>(s));
      }
      for (PlainValues& part : parts) {
        columns[f].push_back(sequence ? part.sequences[place].data() : part.pooled.data() + place);
      }
      features.push_back(
          {.first = static_cast<uint32_t>(offsets[0]),
           .end = static_cast<uint32_t>(offsets[batch.samples]),
           .pooling = feature.pooling,
           .offsets = offsets,
           .sample = sample[f].data(),
           .parts = columns[f].data(),
           .stride = sequence ? used.format.width : parts[0].pooled.size() / batch.samples});
    });
    const double t = static_cast<double>(step + 1);
    UpdateRows op;
    op.format = used.format;
    op.planes = used.planes();
    op.step = {.learning_rate = options.learning_rate,
               .eps = options.eps,
               .beta1 = options.beta1,
               .beta2 = options.beta2,
               .correction1 = static_cast<float>(1 - std::pow(double{options.beta1}, t)),
               .correction2 = static_cast<float>(1 - std::pow(double{options.beta2}, t)),
               .weight_decay = options.weight_decay,
               .decoupled = options.decoupled,
               .seed = options_.seed,
               .step = step};
    op.slots = used.slots.data();
    op.keys = used.keys.data();
    op.occurrence_begin = begin.data();
    op.occurrences = occurrences.data();
    op.features = features.data();
    op.feature_count = static_cast<uint32_t>(features.size());
    op.part_count = static_cast<uint32_t>(parts.size());
    op.weights = batch.weights.empty() ? nullptr : batch.weights.data();
    update_rows_reference(op, 0, used.keys.size());
    const uint32_t weight_bytes = used.format.weight_bytes(),
                   state_bytes = used.format.state_bytes();
    for (size_t r = 0; r < used.keys.size(); ++r) {
      const auto weights = used.weights.begin() + static_cast<ptrdiff_t>(r * weight_bytes);
      const auto state = used.state.begin() + static_cast<ptrdiff_t>(r * state_bytes);
      rows_[used.keys[r]] = {{weights, weights + weight_bytes}, {state, state + state_bytes}};
    }
  }
}

std::vector<float> PlainTables::row(uint32_t table, int64_t row) const {
  Record record = this->record(make_key(table, static_cast<uint64_t>(row)));
  const RowFormat format = format_of(table);
  const RowPlanes planes = {record.weights.data(), record.state.data(), format.weight_bytes(),
                            format.state_bytes()};
  std::vector<float> values;
  for (uint32_t d = 0; d < format.width; ++d)
    values.push_back(weight_reference(format, planes, 0, d));
  for (uint32_t s = 0; s < format.state_bytes() / 4; ++s) {
    values.push_back(state_reference(planes, 0)[s]);
  }
  return values;
}

void PlainTables::write(uint32_t table, int64_t row, const std::vector<float>& weights,
                        const std::vector<float>& state) {
  const RowFormat format = format_of(table);
  Record& record = rows_[make_key(table, static_cast<uint64_t>(row))];
  record.weights.resize(format.weight_bytes());
  record.state.resize(format.state_bytes());
  for (uint32_t d = 0; d < format.width; ++d) {
    if (format.precision == Precision::kFp32) {
      std::memcpy(record.weights.data() + 4 * d, &weights[d], 4);
    } else {
      const uint16_t half = nearest_reference(format.precision, weights[d]);
      std::memcpy(record.weights.data() + 2 * d, &half, 2);
    }
  }
  std::fill(record.state.begin(), record.state.end(), std::byte{0});
  std::copy_n(reinterpret_cast<const std::byte*>(state.data()), state.size() * 4,
              record.state.begin());
}

std::string PlainTables::digest() const {
  Digest sum;
  for (const auto& [key, record] : rows_) {
    std::vector<std::byte> bytes(sizeof key);
    std::memcpy(bytes.data(), &key, sizeof key);
    bytes.insert(bytes.end(), record.weights.begin(), record.weights.end());
    bytes.insert(bytes.end(), record.state.begin(), record.state.end());
    const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
    sum.low += hash.low64;
    sum.high += hash.high64 + (sum.low < hash.low64 ? 1 : 0);
  }
  return sum.to_string();
}

}  // namespace rowtide
