#pragma once
// PlantedModel — the hidden truth behind synthetic Criteo rows.
//
//     logit = bias + scale * sum over terms t of weight[t] * (value[t] - mean[t])
//
// Terms are: the logarithm of each integer; an effect of each frequent id of each column; and dot
// products between the hidden vectors of ids of two columns, which no linear model can learn.  The
// groups of terms have fixed shares of the variance; bias and scale give a click rate of 25 % and
// an AUC of the truth itself of 0.80.
//
// Every row is a pure function of (seed, row).

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/synth_ids.h"

namespace rowtide {

struct SynthRow {
  std::array<int32_t, 13> dense;
  std::array<uint32_t, 26> ids;
  uint64_t dense_present, ids_present;  // bit i: column i has a value
  float logit;
  bool clicked;
};

class PlantedModel {
 public:
  PlantedModel(uint64_t rows, uint64_t seed, double scale);

  // Row `number` of the rows that the model was made for.  Threads: any.
  SynthRow row(uint64_t number) const;

  static constexpr size_t kPairs = 6;
  static constexpr size_t kTerms = 13 + 26 + kPairs;
  const IdColumn& column(size_t i) const { return columns_[i].ids; }
  uint64_t cardinality(size_t i) const { return columns_[i].cardinality; }

  // The parts that make up a row's logit, without the bias: integers, columns of up to 50,000 ids,
  // larger columns, pairs.
  std::array<float, 4> logit_parts(uint64_t number) const;

 private:
  static constexpr size_t kHidden = 2;  // width of the hidden vectors

  struct Column {
    uint64_t cardinality;
    IdColumn ids;
    uint32_t salt;                                    // of its 32-bit values
    std::vector<float> effects;                       // (frequent ids + 1); the last is "missing"
    std::vector<std::array<float, kHidden>> vectors;  // likewise
  };
  using Terms = std::array<float, kTerms>;

  Column make_column(size_t i, double scale) const;
  void draw_values(uint64_t number, SynthRow& row, Terms& terms) const;
  void weigh_terms();
  void fit_bias_and_scale(std::vector<float> raw);
  size_t group_of(size_t term) const;
  float raw_logit(const Terms& terms) const;
  float raw_part(const Terms& terms, size_t group) const;

  uint64_t rows_, seed_;
  std::vector<Column> columns_;
  Terms weights_{}, means_{};
  float bias_ = 0, scale_ = 1;
};

}  // namespace rowtide
