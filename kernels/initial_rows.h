#pragma once
// initial_rows — the value of a row that was never written (design.md, I4).
//
//     weight d = (2 * u - 1) * scale,  u = (r >> 8) * 2^-24,
//     r = Philox4x32-10(seed; key, d / 4)[d mod 4] (initial_counter in philox.h)
//
// rounded to nearest for fp16 and bf16; the state is 0.
//
// A pure function of (seed, key): any row reads the same at any time, in any order.

#include <cstdint>

#include "kernels/rows.h"

namespace rowtide {

struct InitialRow {
  RowFormat format;
  uint64_t seed = 0;
  float scale = 0;
};

// Writes weights (width, in the format's precision) and state of `key`.
void initial_row_cpu(const InitialRow& op, Key key, std::byte* weights, std::byte* state);

}  // namespace rowtide
