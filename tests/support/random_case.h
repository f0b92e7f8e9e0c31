#pragma once
// random_case — options and batches of one seeded case: tiny tiers, every choice a table is made
// of, and batches that are nasty on purpose.

#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

#include "runtime/rowtide.h"
#include "tests/support/toy_training.h"

namespace rowtide {

class Random {
 public:
  explicit Random(uint64_t seed) : random_(seed) {}
  uint64_t below(uint64_t n) { return random_() % n; }
  bool chance(int percent) { return below(100) < static_cast<uint64_t>(percent); }
  template <typename T>
  T pick(std::initializer_list<T> of) {
    return of.begin()[below(of.size())];
  }

 private:
  std::mt19937_64 random_;
};

// Sizes, tables and budgets of one case, for a store in "store".
RuntimeOptions draw_options(Random& random);

// Batches with shared rows, of one set, with doubles, ids out of range, empty ones.
class BatchMaker {
 public:
  BatchMaker(const RuntimeOptions& options, Random& random);
  ToyBatch make(uint64_t samples);
  ToyBatch next() { return make(random_.pick<uint64_t>({0, 1, o_.max_samples, o_.max_samples})); }

 private:
  int64_t id(uint32_t table);

  const RuntimeOptions& o_;
  Random& random_;
  uint64_t style_;
  std::vector<int64_t> few_;
};

}  // namespace rowtide
