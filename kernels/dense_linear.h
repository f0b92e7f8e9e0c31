#pragma once
// dense_linear — a fully connected layer of a block of samples, forward and backward.
//
//     forward           y = x Wᵀ + b, then max(y, 0) if relu
//     input gradient    dx = dy W, then 0 where the activation x is <= 0, if given
//     weight gradient   dW = dyᵀ x,  db = sum of dy over the samples
//
// x is (samples, in), y (samples, out), W (out, in), b (out); dy is the gradient of x Wᵀ + b.
// Weight gradients are sums over blocks of kDenseBlock samples, added in block order, so a batch
// gives the same bits however its blocks and outputs are spread over threads.
// Tolerance: that of dense_product for the products; all else rounds each operation alone.

#include <cstdint>

namespace rowtide {

inline constexpr uint64_t kDenseBlock = 256;  // its widest activations stay in a 2 MiB L2

struct LinearForward {
  const float* x = nullptr;       // (samples, in)
  uint64_t x_stride = 0;          // floats between samples, as all strides
  const float* weight = nullptr;  // (out, in)
  const float* bias = nullptr;    // (out)
  float* y = nullptr;             // (samples, out)
  uint64_t y_stride = 0;
  uint64_t samples = 0;
  uint32_t in = 0, out = 0;
  bool relu = false;
};
void linear_forward_cpu(const LinearForward& op);

struct LinearInputGradient {
  const float* dy = nullptr;  // (samples, out)
  uint64_t dy_stride = 0;
  const float* weight = nullptr;      // (out, in)
  const float* activation = nullptr;  // (samples, in) x if it came out of a ReLU, else null
  uint64_t activation_stride = 0;
  float* dx = nullptr;  // (samples, in)
  uint64_t dx_stride = 0;
  uint64_t samples = 0;
  uint32_t in = 0, out = 0;
};
void linear_input_gradient_cpu(const LinearInputGradient& op);

struct LinearWeightGradient {
  const float* dy = nullptr;  // (samples, out); a tile of a layer's outputs is a layer of its own
  uint64_t dy_stride = 0;
  const float* x = nullptr;  // (samples, in)
  uint64_t x_stride = 0;
  float* dw = nullptr;   // (out, in)
  float* db = nullptr;   // (out)
  uint64_t samples = 0;  // of the whole batch; 0 gives zeros
  uint32_t in = 0, out = 0;
};
void linear_weight_gradient_cpu(const LinearWeightGradient& op);

// gradient = 0 where the activation is <= 0, in place.
struct ReluGradient {
  const float* activation = nullptr;  // (samples, width)
  uint64_t activation_stride = 0;
  float* gradient = nullptr;  // (samples, width)
  uint64_t gradient_stride = 0;
  uint64_t samples = 0;
  uint32_t width = 0;
};
void relu_gradient_cpu(const ReluGradient& op);

}  // namespace rowtide
