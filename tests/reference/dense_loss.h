#pragma once

#include <algorithm>
#include <cmath>

namespace rowtide {

inline double bce_reference(double logit, double label) {
  return std::max(logit, 0.0) - logit * label + std::log1p(std::exp(-std::abs(logit)));
}
inline double bce_gradient_reference(double logit, double label) {
  return 1 / (1 + std::exp(-logit)) - label;
}

}  // namespace rowtide
