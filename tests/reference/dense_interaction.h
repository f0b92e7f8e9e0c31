#pragma once

#include <cstdint>

namespace rowtide {

// z is one sample's (vectors, dim); out its (dim + pairs).
template <typename T>
void dot_interaction_reference(const T* z, T* out, uint64_t vectors, uint64_t dim) {
  for (uint64_t d = 0; d < dim; ++d) *out++ = z[d];
  for (uint64_t i = 1; i < vectors; ++i) {
    for (uint64_t j = 0; j < i; ++j) {
      T sum = 0;
      for (uint64_t d = 0; d < dim; ++d) sum += z[i * dim + d] * z[j * dim + d];
      *out++ = sum;
    }
  }
}

template <typename T>
void dot_interaction_gradient_reference(const T* z, const T* gradient, T* dz, uint64_t vectors,
                                        uint64_t dim) {
  const auto of_pair = [&](uint64_t i, uint64_t j) {
    return i > j ? gradient[dim + i * (i - 1) / 2 + j] : gradient[dim + j * (j - 1) / 2 + i];
  };
  for (uint64_t i = 0; i < vectors; ++i) {
    for (uint64_t d = 0; d < dim; ++d) {
      T sum = i == 0 ? gradient[d] : 0;
      for (uint64_t j = 0; j < vectors; ++j) {
        if (j != i) sum += of_pair(i, j) * z[j * dim + d];
      }
      dz[i * dim + d] = sum;
    }
  }
}

}  // namespace rowtide
