#include "trainer/metrics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "runtime/base/status.h"

namespace rowtide {
namespace {

// ln(1 + e^x), for any x.
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

double sigmoid(double x) {
  const double e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}

// Sorts as the float does; both zeros are one value.
uint32_t sortable(float logit) {
  const uint32_t bits = std::bit_cast<uint32_t>(logit + 0.0f);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// The chance that a positive ranks above a negative, a tie counting half.  `keys` are sorted and
// hold the label in their lowest bit.
double area_under_curve(const std::vector<uint64_t>& keys, double positives, double negatives) {
  double pairs = 0, below = 0;  // pairs won; negatives seen so far
  for (size_t first = 0; first < keys.size();) {
    size_t last = first;
    double tied_positives = 0;
    for (; last < keys.size() && keys[last] >> 1 == keys[first] >> 1; ++last) {
      tied_positives += static_cast<double>(keys[last] & 1);
    }
    const double tied_negatives = static_cast<double>(last - first) - tied_positives;
    pairs += tied_positives * (below + tied_negatives / 2);
    below += tied_negatives;
    first = last;
  }
  return pairs / (positives * negatives);
}

}  // namespace

void QualityMeter::add(std::span<const float> logits, std::span<const float> labels) {
  ROWTIDE_CHECK(logits.size() == labels.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool clicked = labels[i] > 0.5f;
    positives_ += clicked;
    loss_ += softplus(clicked ? -double{logits[i]} : double{logits[i]});
    predicted_ += sigmoid(logits[i]);
    keys_.push_back(uint64_t{sortable(logits[i])} << 1 | clicked);
  }
}

Quality QualityMeter::quality() {
  constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
  Quality q{.samples = keys_.size(),
            .positives = positives_,
            .logloss = kUndefined,
            .ne = kUndefined,
            .auc = kUndefined,
            .calibration = kUndefined};
  if (q.samples == 0) return q;
  const double n = static_cast<double>(q.samples), positives = static_cast<double>(positives_);
  q.logloss = loss_ / n;
  if (positives_ > 0) q.calibration = predicted_ / positives;
  if (positives_ > 0 && positives_ < q.samples) {
    const double rate = positives / n;
    q.ne = q.logloss / -(rate * std::log(rate) + (1 - rate) * std::log1p(-rate));
    std::sort(keys_.begin(), keys_.end());
    q.auc = area_under_curve(keys_, positives, n - positives);
  }
  return q;
}

void QualityMeter::clear() { *this = {}; }

}  // namespace rowtide
