#pragma once
// learning_rate — the rate of a step: warm-up, then constant, then decay.
//
//     rate(step) = learning_rate * min(1, (step + 1) / warmup) * (1 - part)^p
//     part       = how much of [decay_start, decay_start + decay_steps) has passed; the last step's
//                  value stays for ever
//     p          = 0, 1 or 2 for decay = none, linear or quadratic

#include <algorithm>
#include <cstdint>

#include "trainer/config.h"

namespace rowtide {

inline float learning_rate_of(const OptimizerConfig& optimizer, uint64_t step) {
  double rate = optimizer.learning_rate;
  if (step + 1 < optimizer.warmup) rate *= double(step + 1) / double(optimizer.warmup);
  if (optimizer.decay != "none" && step > optimizer.decay_start) {
    const uint64_t passed = std::min(step - optimizer.decay_start, optimizer.decay_steps - 1);
    const double left = 1 - double(passed) / double(optimizer.decay_steps);
    rate *= optimizer.decay == "linear" ? left : left * left;
  }
  return static_cast<float>(rate);
}

}  // namespace rowtide
