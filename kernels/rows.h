#pragma once
// rows — how the records of one group lie in an arena, and what they are made of.
//
// A record is a row's weights and its optimizer state.  An arena keeps them in two planes with one
// slot number; on disk and in moves a record is its weights, then its state, back to back.

#include <cstddef>
#include <cstdint>

#include "runtime/base/key.h"
#include "runtime/base/row_types.h"

namespace rowtide {

// What a row of a table is.  The state is always fp32: AdaGrad keeps s (width), row-wise AdaGrad
// one s, Adam m (width) and then v (width), SGD nothing.
struct RowFormat {
  uint32_t width = 0;
  Precision precision = Precision::kFp32;
  OptimizerKind optimizer = OptimizerKind::kSgd;

  constexpr uint32_t weight_bytes() const {
    return width * (precision == Precision::kFp32 ? 4 : 2);
  }
  constexpr uint32_t state_bytes() const {
    switch (optimizer) {
      case OptimizerKind::kSgd:
        return 0;
      case OptimizerKind::kAdagrad:
        return width * 4;
      case OptimizerKind::kRowwiseAdagrad:
        return 4;
      case OptimizerKind::kAdam:
        return width * 8;
    }
    return 0;
  }
  constexpr uint32_t record_bytes() const { return weight_bytes() + state_bytes(); }
};

// Where the records of one group lie: slot s has its weights at weights + s * weight_stride and its
// state at state + s * state_stride.  Strides are exact record sizes: no padding.  Both planes
// begin at multiples of 64 bytes.
struct RowPlanes {
  std::byte* weights = nullptr;
  std::byte* state = nullptr;
  uint32_t weight_stride = 0;
  uint32_t state_stride = 0;
};

// An occurrence whose id was skipped has this instead of a unique index: it adds nothing.
inline constexpr uint32_t kSkipped = 0xFFFFFFFFu;

}  // namespace rowtide
