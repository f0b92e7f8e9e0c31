#pragma once
// dense_product — one matrix product on the calling thread; the only door to oneDNN.
//
//     c[i, j] = (add ? c[i, j] : 0) + sum over k of a[i, k] * b[k, j]
//
// Row-major; a transposed operand is read as its transpose.  oneDNN keeps to the calling thread, so
// the bits depend on the shapes and the machine alone: neither on `threads` nor on earlier calls.
//
// Tolerance: inner * 2^-23 * (sum over k of |a * b| (+ |c| if add)) for each element, because
// oneDNN orders and contracts the sum as its blocking of this shape and this processor wants.

#include <cstdint>

namespace rowtide {

struct DenseProduct {
  const float* a = nullptr;  // (rows, inner), or (inner, rows) if transposed
  uint64_t a_stride = 0;     // floats between its stored rows, as all strides
  bool a_transposed = false;
  const float* b = nullptr;  // (inner, columns), or (columns, inner) if transposed
  uint64_t b_stride = 0;
  bool b_transposed = false;
  float* c = nullptr;  // (rows, columns); not read unless add
  uint64_t c_stride = 0;
  uint64_t rows = 0, columns = 0, inner = 0;
  bool add = false;
};

// REQUIRES: inner > 0; c overlaps neither a nor b.
void dense_product_cpu(const DenseProduct& op);

}  // namespace rowtide
