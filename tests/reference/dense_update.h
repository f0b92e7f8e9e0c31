#pragma once

#include <cmath>

#include "kernels/dense_update.h"

namespace rowtide {

// T is float for the same bits, double for a trajectory to compare with.
template <typename T>
void dense_update_reference(OptimizerKind optimizer, const OptimizerStep& step, T& w, T g, T& state,
                            T& state2) {
  const T lr = step.learning_rate, wd = step.weight_decay, eps = step.eps;
  const T beta1 = step.beta1, beta2 = step.beta2;
  if (wd != 0 && step.decoupled) w -= (lr * wd) * w;
  if (wd != 0 && !step.decoupled) g += wd * w;
  if (optimizer == OptimizerKind::kSgd) {
    w -= lr * g;
  } else if (optimizer == OptimizerKind::kAdagrad) {
    state += g * g;
    w -= (lr * g) / (std::sqrt(state) + eps);
  } else {
    state = beta1 * state + (1 - beta1) * g;
    state2 = beta2 * state2 + ((1 - beta2) * g) * g;
    const T c1 = step.correction1, c2 = step.correction2;
    w -= (lr * (state / c1)) / (std::sqrt(state2 / c2) + eps);
  }
}

}  // namespace rowtide
