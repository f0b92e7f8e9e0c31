#include <algorithm>
#include <cmath>

#include "kernels/dense_interaction.h"
#include "kernels/dense_lanes.h"
#include "kernels/dense_linear.h"
#include "kernels/dense_loss.h"
#include "kernels/dense_product.h"
#include "kernels/dense_update.h"
#include "runtime/base/status.h"

namespace rowtide {

void linear_forward_cpu(const LinearForward& op) {
  dense_product_cpu({.a = op.x,
                     .a_stride = op.x_stride,
                     .b = op.weight,
                     .b_stride = op.in,
                     .b_transposed = true,
                     .c = op.y,
                     .c_stride = op.y_stride,
                     .rows = op.samples,
                     .columns = op.out,
                     .inner = op.in});
  dense_lanes_here().add_bias(op);  // while the block is in the cache
}

void linear_input_gradient_cpu(const LinearInputGradient& op) {
  dense_product_cpu({.a = op.dy,
                     .a_stride = op.dy_stride,
                     .b = op.weight,
                     .b_stride = op.in,
                     .c = op.dx,
                     .c_stride = op.dx_stride,
                     .rows = op.samples,
                     .columns = op.in,
                     .inner = op.out});
  if (op.activation == nullptr) return;
  relu_gradient_cpu({op.activation, op.activation_stride, op.dx, op.dx_stride, op.samples, op.in});
}

void linear_weight_gradient_cpu(const LinearWeightGradient& op) {
  if (op.samples == 0) {
    std::fill_n(op.dw, uint64_t{op.out} * op.in, 0.0f);
    std::fill_n(op.db, op.out, 0.0f);
  }
  for (uint64_t s = 0; s < op.samples; s += kDenseBlock) {
    const uint64_t samples = std::min(kDenseBlock, op.samples - s);
    const float* dy = op.dy + s * op.dy_stride;
    dense_product_cpu({.a = dy,
                       .a_stride = op.dy_stride,
                       .a_transposed = true,
                       .b = op.x + s * op.x_stride,
                       .b_stride = op.x_stride,
                       .c = op.dw,
                       .c_stride = op.in,
                       .rows = op.out,
                       .columns = op.in,
                       .inner = samples,
                       .add = s > 0});
    dense_lanes_here().add_rows(dy, op.dy_stride, samples, op.out, op.db, s > 0);
  }
}

void relu_gradient_cpu(const ReluGradient& op) { dense_lanes_here().relu_gradient(op); }

void dot_interaction_cpu(const DotInteraction& op) { dense_lanes_here().dot_interaction(op); }

void dot_interaction_gradient_cpu(const DotInteractionGradient& op) {
  dense_lanes_here().dot_interaction_gradient(op);
}

double bce_with_logits_cpu(const BceWithLogits& op) {
  double sum = 0;
  for (uint64_t s = 0; s < op.samples; ++s) {
    const double x = op.logits[s], label = op.labels[s];
    const double e = std::exp(-std::abs(x));  // never overflows
    const double sigmoid = (x < 0 ? e : 1.0) / (1.0 + e);
    sum += std::max(x, 0.0) - x * label + std::log1p(e);
    op.gradient[s] = static_cast<float>((sigmoid - label) / static_cast<double>(op.batch));
  }
  return sum;
}

void dense_update_cpu(const DenseUpdate& op) {
  ROWTIDE_CHECK(op.optimizer != OptimizerKind::kRowwiseAdagrad);
  dense_lanes_here().dense_update(op);
}

}  // namespace rowtide
