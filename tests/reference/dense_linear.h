#pragma once

#include <cstdint>

#include "kernels/dense_linear.h"

namespace rowtide {

// T is float to compare, double to differentiate.
template <typename T>
void linear_forward_reference(const T* x, const T* w, const T* b, T* y, uint64_t samples,
                              uint64_t in, uint64_t out, bool relu) {
  for (uint64_t s = 0; s < samples; ++s) {
    for (uint64_t o = 0; o < out; ++o) {
      T sum = 0;
      for (uint64_t i = 0; i < in; ++i) sum += x[s * in + i] * w[o * in + i];
      sum += b[o];
      y[s * out + o] = relu && sum < 0 ? 0 : sum;
    }
  }
}

template <typename T>
void linear_input_gradient_reference(const T* dy, const T* w, T* dx, uint64_t samples, uint64_t in,
                                     uint64_t out) {
  for (uint64_t s = 0; s < samples; ++s) {
    for (uint64_t i = 0; i < in; ++i) {
      T sum = 0;
      for (uint64_t o = 0; o < out; ++o) sum += dy[s * out + o] * w[o * in + i];
      dx[s * in + i] = sum;
    }
  }
}

template <typename T>
void linear_weight_gradient_reference(const T* dy, const T* x, T* dw, T* db, uint64_t samples,
                                      uint64_t in, uint64_t out) {
  for (uint64_t o = 0; o < out; ++o) {
    T sum = 0;
    for (uint64_t s = 0; s < samples; ++s) sum += dy[s * out + o];
    db[o] = sum;
    for (uint64_t i = 0; i < in; ++i) {
      sum = 0;
      for (uint64_t s = 0; s < samples; ++s) sum += dy[s * out + o] * x[s * in + i];
      dw[o * in + i] = sum;
    }
  }
}

// The order that the bias gradient has to the bit: block sums, added in order.
inline float summed_by_blocks_reference(const float* column, uint64_t stride, uint64_t samples) {
  float total = 0, block = 0;
  for (uint64_t s = 0; s < samples; ++s) {
    block += column[s * stride];
    if ((s + 1) % kDenseBlock != 0 && s + 1 != samples) continue;
    total = s < kDenseBlock ? block : total + block;
    block = 0;
  }
  return total;
}

}  // namespace rowtide
