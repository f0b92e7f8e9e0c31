#include "trainer/synth_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "runtime/base/key.h"

namespace rowtide {
namespace {

constexpr double kClickRate = 0.25, kCeiling = 0.80;
constexpr uint64_t kFrequentRows = 1000;   // in training: the first six sevenths
constexpr uint64_t kLargeColumn = 50'000;  // ids
constexpr double kLargeUnseen = 0.33, kMiddleUnseen = 0.08;
constexpr uint64_t kMiddleColumn = 1'000;
constexpr uint64_t kSampleRows = 1 << 15;  // to weigh the terms on
// Shares of the variance: integers, columns of up to 50,000 ids, larger ones, pairs.
constexpr double kGroupShares[] = {0.30, 0.35, 0.20, 0.15};

// An integer is floor(exp(mu + sigma * normal)) + offset; columns of one missing group are missing
// together.  Rates and sizes are near those of Criteo's rows.
struct DenseLaw {
  float mu, sigma;
  int32_t offset;
  float missing;
  uint32_t missing_group;
};
constexpr DenseLaw kDense[13] = {
    {1.0f, 1.3f, -1, 0.45f, 0}, {2.2f, 1.8f, -2, 0.00f, 1}, {2.1f, 1.5f, -1, 0.21f, 2},
    {1.7f, 0.9f, -1, 0.22f, 2}, {7.8f, 2.0f, -1, 0.03f, 3}, {3.5f, 1.5f, -1, 0.22f, 4},
    {1.5f, 1.5f, -1, 0.04f, 5}, {2.2f, 0.9f, -1, 0.00f, 1}, {3.7f, 1.4f, -1, 0.04f, 5},
    {0.5f, 0.5f, -1, 0.45f, 0}, {0.9f, 0.9f, -1, 0.04f, 5}, {0.3f, 1.0f, -1, 0.76f, 6},
    {1.6f, 1.1f, -1, 0.22f, 2},
};

struct IdLaw {
  uint64_t cardinality;
  float missing;
  uint32_t missing_group;
};
constexpr IdLaw kIds[26] = {
    {1460, 0, 1},         {583, 0, 1},        {10131227, 0.034f, 7},
    {2202608, 0.034f, 7}, {305, 0, 1},        {24, 0.12f, 8},
    {12517, 0, 1},        {633, 0, 1},        {3, 0, 1},
    {93145, 0, 1},        {5683, 0, 1},       {8351593, 0.034f, 7},
    {3194, 0, 1},         {27, 0, 1},         {14992, 0, 1},
    {5461306, 0.034f, 7}, {10, 0, 1},         {5652, 0, 1},
    {2173, 0.44f, 9},     {4, 0.44f, 9},      {7046547, 0.034f, 7},
    {18, 0.76f, 10},      {15, 0, 1},         {286181, 0.034f, 7},
    {105, 0.44f, 9},      {142572, 0.44f, 9},
};

// Columns whose hidden vectors meet; all of them small, so that many rows share a pair of ids.
constexpr uint32_t kPairColumns[PlantedModel::kPairs][2] = {{1, 5},   {4, 7},   {8, 13},
                                                            {16, 22}, {19, 24}, {0, 17}};

// Numbers of the words that a row draws.
enum Words : uint64_t { kLabelWord = 0, kMissingWords = 1, kDenseWords = 16, kIdWords = 32 };

double unit(uint64_t word) { return static_cast<double>(word >> 11) * 0x1p-53; }

// Nearly normal: the sum of four uniform numbers of 16 bits, of variance 1.
float normal(uint64_t word) {
  const uint64_t sum =
      (word & 0xffff) + (word >> 16 & 0xffff) + (word >> 32 & 0xffff) + (word >> 48);
  return (static_cast<float>(sum) * 0x1p-16f - 1.99997f) * 1.7320508f;
}

// A one-to-one mixing of 32 bits (the finaliser of MurmurHash3), so that ids of a column stay
// different as the 32-bit values that files hold.
uint32_t mix32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

// A salt with which few of a small column's ids share a row of a table of as many rows.
uint32_t choose_salt(uint64_t key, uint64_t cardinality) {
  constexpr uint64_t kSmall = 64, kTries = 2000;
  uint32_t best = static_cast<uint32_t>(key);
  int most = 0;
  for (uint64_t n = 0; cardinality < kSmall && n < kTries; ++n) {
    const auto salt = static_cast<uint32_t>(random_word(key, n));
    uint64_t rows = 0;
    for (uint32_t id = 0; id < cardinality; ++id) {
      rows |= uint64_t{1} << mix32(id ^ salt) % cardinality;
    }
    if (std::popcount(rows) > most) {
      most = std::popcount(rows);
      best = salt;
    }
  }
  return best;
}

struct Moments {
  double mean, deviation;
};

template <typename Value>
Moments moments_of(uint64_t count, Value&& value) {
  double sum = 0, square = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const double x = value(i);
    sum += x;
    square += x * x;
  }
  const double n = static_cast<double>(count), mean = sum / n;
  return {mean, std::sqrt(std::max(0.0, square / n - mean * mean))};
}

bool present(uint64_t key, float missing, uint32_t group) {
  return missing == 0 || unit(random_word(key, kMissingWords + group)) >= double{missing};
}

}  // namespace

PlantedModel::PlantedModel(uint64_t rows, uint64_t seed, double scale)
    : rows_(rows), seed_(mix64(seed + 0x526f7774696465ull)) {
  for (size_t i = 0; i < 26; ++i) columns_.push_back(make_column(i, scale));
  weigh_terms();
}

PlantedModel::Column PlantedModel::make_column(size_t i, double scale) const {
  const IdLaw& law = kIds[i];
  const uint64_t key = random_word(seed_, i);
  const uint64_t cardinality = std::max<uint64_t>(
      3, static_cast<uint64_t>(std::llround(static_cast<double>(law.cardinality) * scale)));
  IdColumnOptions options{.cardinality = cardinality,
                          .rows = rows_,
                          .frequent_rows = kFrequentRows * 7 / 6,
                          .present = 1.0 - law.missing,
                          .flat = i % 2 == 1};
  // Whether missing values count as accesses or not, the share stays within its bounds.
  if (cardinality > kLargeColumn) {
    options.unseen = kLargeUnseen / (1 - law.missing / 2);
  } else if (cardinality > kMiddleColumn) {
    options.unseen = kMiddleUnseen;
  }
  Column column{.cardinality = cardinality,
                .ids = IdColumn(options),
                .salt = choose_salt(key, cardinality),
                .effects = {},
                .vectors = {}};
  for (uint64_t n = 0; n <= column.ids.frequent_ids(); ++n) {
    column.effects.push_back(normal(random_word(key, 4 * n)));
    column.vectors.push_back(
        {normal(random_word(key, 4 * n + 1)), normal(random_word(key, 4 * n + 2))});
  }
  return column;
}

void PlantedModel::draw_values(uint64_t number, SynthRow& row, Terms& terms) const {
  const uint64_t key = mix64(seed_ ^ mix64(number + 1));
  const double time = static_cast<double>(number) * 7 / static_cast<double>(rows_);
  row.dense_present = row.ids_present = 0;
  size_t term = 0;
  for (size_t i = 0; i < 13; ++i, ++term) {
    const DenseLaw& law = kDense[i];
    const float value = std::exp(law.mu + law.sigma * normal(random_word(key, kDenseWords + i)));
    row.dense[i] = static_cast<int32_t>(value) + law.offset;
    const bool there = present(key, law.missing, law.missing_group);
    row.dense_present |= uint64_t{there} << i;
    terms[term] = there ? std::log1p(static_cast<float>(std::max(row.dense[i], 0))) : 0.0f;
  }
  constexpr std::array<float, kHidden> kNone{};
  std::array<const float*, 26> vectors;
  for (size_t i = 0; i < 26; ++i, ++term) {
    const Column& column = columns_[i];
    IdColumn::Draw draw{.id = 0, .effect = static_cast<int32_t>(column.ids.frequent_ids())};
    if (present(key, kIds[i].missing, kIds[i].missing_group)) {
      row.ids_present |= uint64_t{1} << i;
      draw = column.ids.draw(random_word(key, kIdWords + 2 * i),
                             random_word(key, kIdWords + 2 * i + 1), time);
    }
    row.ids[i] = mix32(static_cast<uint32_t>(draw.id) ^ column.salt);
    const bool counts = draw.effect >= 0;
    terms[term] = counts ? column.effects[static_cast<size_t>(draw.effect)] : 0.0f;
    vectors[i] = counts ? column.vectors[static_cast<size_t>(draw.effect)].data() : kNone.data();
  }
  for (const auto& [a, b] : kPairColumns) {
    float dot = 0;
    for (size_t h = 0; h < kHidden; ++h) dot += vectors[a][h] * vectors[b][h];
    terms[term++] = dot;
  }
}

float PlantedModel::raw_logit(const Terms& terms) const {
  float sum = 0;
  for (size_t t = 0; t < kTerms; ++t) sum += weights_[t] * (terms[t] - means_[t]);
  return sum;
}

SynthRow PlantedModel::row(uint64_t number) const {
  SynthRow row;
  Terms terms;
  draw_values(number, row, terms);
  row.logit = bias_ + scale_ * raw_logit(terms);
  const uint64_t key = mix64(seed_ ^ mix64(number + 1));
  row.clicked = unit(random_word(key, kLabelWord)) < 1 / (1 + std::exp(-double{row.logit}));
  return row;
}

std::array<float, 4> PlantedModel::logit_parts(uint64_t number) const {
  SynthRow row;
  Terms terms;
  draw_values(number, row, terms);
  std::array<float, 4> parts;
  for (size_t g = 0; g < parts.size(); ++g) parts[g] = scale_ * raw_part(terms, g);
  return parts;
}

float PlantedModel::raw_part(const Terms& terms, size_t group) const {
  float sum = 0;
  for (size_t t = 0; t < kTerms; ++t) {
    if (group_of(t) == group) sum += weights_[t] * (terms[t] - means_[t]);
  }
  return sum;
}

size_t PlantedModel::group_of(size_t term) const {
  if (term < 13) return 0;
  if (term >= 13 + 26) return 3;
  return columns_[term - 13].cardinality > kLargeColumn ? 2 : 1;
}

// Gives the terms of a group equal parts of the variance, and each group its share of it.
void PlantedModel::weigh_terms() {
  const uint64_t count = std::min(rows_, kSampleRows);
  std::vector<Terms> sample(count);
  SynthRow row;
  for (uint64_t i = 0; i < count; ++i) draw_values(i * rows_ / count, row, sample[i]);
  for (size_t t = 0; t < kTerms; ++t) {
    const Moments moments = moments_of(count, [&](uint64_t i) { return sample[i][t]; });
    means_[t] = static_cast<float>(moments.mean);
    const bool falling = random_word(seed_, 100 + t) & 1;
    if (moments.deviation > 1e-6) {
      weights_[t] = static_cast<float>((falling ? -1 : 1) / moments.deviation);
    }
  }
  for (size_t group = 0; group < std::size(kGroupShares); ++group) {
    const double deviation =
        moments_of(count, [&](uint64_t i) { return raw_part(sample[i], group); }).deviation;
    for (size_t t = 0; t < kTerms && deviation > 0; ++t) {
      if (group_of(t) == group) {
        weights_[t] *= static_cast<float>(std::sqrt(kGroupShares[group]) / deviation);
      }
    }
  }
  std::vector<float> raw(count);
  for (uint64_t i = 0; i < count; ++i) raw[i] = raw_logit(sample[i]);
  fit_bias_and_scale(std::move(raw));
}

void PlantedModel::fit_bias_and_scale(std::vector<float> raw) {
  std::sort(raw.begin(), raw.end());
  const double n = static_cast<double>(raw.size());
  const auto chance = [&](float logit, double bias, double scale) {
    return 1 / (1 + std::exp(-(bias + scale * double{logit})));
  };
  double bias = 0, low = 0.05, high = 8;  // scales
  for (int round = 0; round < 24; ++round) {
    const double scale = (low + high) / 2;
    for (double least = -40, most = 40; most - least > 1e-4;) {
      bias = (least + most) / 2;
      double clicks = 0;
      for (float logit : raw) clicks += chance(logit, bias, scale);
      (clicks < kClickRate * n ? least : most) = bias;
    }
    // The expected area under the curve, over all pairs of different rows.
    double won = 0, passed_over = 0, clicks = 0;
    for (float logit : raw) {
      const double p = chance(logit, bias, scale);
      won += p * passed_over;
      passed_over += 1 - p;
      clicks += p;
    }
    (won / (clicks * (n - clicks)) < kCeiling ? low : high) = scale;
  }
  scale_ = static_cast<float>((low + high) / 2);
  bias_ = static_cast<float>(bias);
}

}  // namespace rowtide
