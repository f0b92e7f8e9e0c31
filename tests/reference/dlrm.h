#pragma once
// DlrmReference — the dense part in double, a sample at a time, as the papers write it.

#include <cmath>
#include <string>
#include <vector>

#include "tests/reference/dense_interaction.h"
#include "tests/reference/dense_linear.h"
#include "tests/reference/dense_loss.h"
#include "tests/reference/dense_update.h"
#include "trainer/dlrm.h"

namespace rowtide {

class DlrmReference {
 public:
  struct Tensor {
    std::vector<double> value, gradient, state, state2;
  };
  // Weight, bias of bottom.0, of bottom.1, ..., of top.0, ...
  std::vector<Tensor> tensors;

  // Starts at the weights of `dlrm`, with empty states.
  DlrmReference(const DlrmOptions& options, Dlrm& dlrm) : options_(options) {
    for (const DenseTensor& tensor : dlrm.tensors()) {
      if (!tensor.name.ends_with(".weight") && !tensor.name.ends_with(".bias")) continue;
      const size_t n = tensor.values.size();
      tensors.push_back({{tensor.values.begin(), tensor.values.end()},
                         std::vector<double>(n),
                         std::vector<double>(n),
                         std::vector<double>(n)});
    }
  }

  double logit(const double* dense, const double* pooled) {
    forward(dense, pooled);
    return activations_.back()[0];
  }

  double loss(uint64_t samples, const std::vector<double>& dense, const std::vector<double>& pooled,
              const std::vector<double>& labels) {
    double sum = 0;
    for (uint64_t s = 0; s < samples; ++s) {
      sum += bce_reference(
          logit(&dense[s * options_.dense_features], pooled.data() + s * pooled_width()),
          labels[s]);
    }
    return sum / static_cast<double>(samples);
  }

  // Fills the gradients of all tensors and of `pooled`; returns the loss.
  double backward(uint64_t samples, const std::vector<double>& dense,
                  const std::vector<double>& pooled, const std::vector<double>& labels,
                  std::vector<double>& pooled_gradient) {
    for (Tensor& tensor : tensors) tensor.gradient.assign(tensor.value.size(), 0);
    pooled_gradient.resize(pooled.size());
    for (uint64_t s = 0; s < samples; ++s) {
      const double x =
          logit(&dense[s * options_.dense_features], pooled.data() + s * pooled_width());
      backward_sample(bce_gradient_reference(x, labels[s]) / static_cast<double>(samples),
                      pooled_gradient.data() + s * pooled_width());
    }
    return loss(samples, dense, pooled, labels);
  }

  void update(double learning_rate) {
    ++steps_;
    OptimizerStep step{.learning_rate = static_cast<float>(learning_rate),
                       .eps = options_.eps,
                       .beta1 = options_.beta1,
                       .beta2 = options_.beta2,
                       .weight_decay = options_.weight_decay,
                       .decoupled = options_.decoupled};
    step.correction1 = static_cast<float>(1 - std::pow(options_.beta1, steps_));
    step.correction2 = static_cast<float>(1 - std::pow(options_.beta2, steps_));
    const OptimizerKind kind = options_.optimizer == DenseOptimizer::kSgd ? OptimizerKind::kSgd
                               : options_.optimizer == DenseOptimizer::kAdagrad
                                   ? OptimizerKind::kAdagrad
                                   : OptimizerKind::kAdam;
    for (Tensor& t : tensors) {
      for (size_t i = 0; i < t.value.size(); ++i) {
        dense_update_reference(kind, step, t.value[i], t.gradient[i], t.state[i], t.state2[i]);
      }
    }
  }

 private:
  uint64_t pooled_width() const { return uint64_t{options_.embeddings} * options_.dim; }

  void forward(const double* dense, const double* pooled) {
    activations_ = {{dense, dense + options_.dense_features}};
    size_t tensor = 0;
    run_mlp(options_.bottom, true, tensor);
    z_ = activations_.back();
    z_.insert(z_.end(), pooled, pooled + pooled_width());
    const uint64_t vectors = options_.embeddings + 1;
    std::vector<double> features(options_.dim + vectors * (vectors - 1) / 2);
    dot_interaction_reference(z_.data(), features.data(), vectors, options_.dim);
    activations_.push_back(features);
    run_mlp(options_.top, false, tensor);
  }

  void run_mlp(const std::vector<uint32_t>& widths, bool relu_last, size_t& tensor) {
    for (size_t i = 0; i < widths.size(); ++i, tensor += 2) {
      const std::vector<double> x = activations_.back();
      std::vector<double> y(widths[i]);
      linear_forward_reference(x.data(), tensors[tensor].value.data(),
                               tensors[tensor + 1].value.data(), y.data(), 1, x.size(), widths[i],
                               relu_last || i + 1 < widths.size());
      activations_.push_back(y);
    }
  }

  void backward_sample(double logit_gradient, double* pooled_gradient) {
    size_t tensor = tensors.size(), at = activations_.size() - 1;
    std::vector<double> d = {logit_gradient};
    back_through(options_.top.size(), d, at, tensor);
    std::vector<double> dz(z_.size());
    dot_interaction_gradient_reference(z_.data(), d.data(), dz.data(), options_.embeddings + 1,
                                       options_.dim);
    std::copy(dz.begin() + options_.dim, dz.end(), pooled_gradient);
    d.assign(dz.begin(), dz.begin() + options_.dim);
    --at;  // the features are no layer's output
    mask(d, activations_[at]);
    back_through(options_.bottom.size(), d, at, tensor);
  }

  // From d, the gradient before the ReLU of activation `at`, to that of the MLP's input.
  void back_through(size_t layers, std::vector<double>& d, size_t& at, size_t& tensor) {
    for (size_t i = 0; i < layers; ++i) {
      tensor -= 2;
      const std::vector<double>& x = activations_[--at];
      std::vector<double> dw(x.size() * d.size()), db(d.size()), dx(x.size());
      linear_weight_gradient_reference(d.data(), x.data(), dw.data(), db.data(), 1, x.size(),
                                       d.size());
      linear_input_gradient_reference(d.data(), tensors[tensor].value.data(), dx.data(), 1,
                                      x.size(), d.size());
      for (size_t k = 0; k < dw.size(); ++k) tensors[tensor].gradient[k] += dw[k];
      for (size_t k = 0; k < db.size(); ++k) tensors[tensor + 1].gradient[k] += db[k];
      if (i + 1 < layers) mask(dx, x);
      d = dx;
    }
  }

  static void mask(std::vector<double>& gradient, const std::vector<double>& activation) {
    for (size_t i = 0; i < gradient.size(); ++i) {
      if (activation[i] <= 0) gradient[i] = 0;
    }
  }

  DlrmOptions options_;
  std::vector<std::vector<double>> activations_;  // dense, each layer's output, features between
  std::vector<double> z_;
  double steps_ = 0;
};

}  // namespace rowtide
