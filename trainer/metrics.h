#pragma once
// metrics — how good the predictions of an evaluation are.

#include <cstdint>
#include <span>
#include <vector>

namespace rowtide {

// What is not defined is NaN, which JSON writers turn into null: everything without samples, NE and
// AUC where all labels are equal, calibration without positives.
struct Quality {
  uint64_t samples = 0, positives = 0;
  double logloss = 0;      // mean, natural logarithm
  double ne = 0;           // normalised entropy: logloss / entropy of these rows' base rate
  double auc = 0;          // exact: ties count half
  double calibration = 0;  // sum of predictions / positives
};

// Collects (prediction, label) pairs, 8 bytes each, and gives exact figures.  Threads: one at a
// time.
class QualityMeter {
 public:
  void add(std::span<const float> logits, std::span<const float> labels);
  Quality quality();  // of all so far; sorts them
  void clear();

 private:
  std::vector<uint64_t> keys_;       // logit << 1 | label, sorting as the logits do
  double loss_ = 0, predicted_ = 0;  // sums, in the order that they came
  uint64_t positives_ = 0;
};

}  // namespace rowtide
