#pragma once

#include "kernels/initial_rows.h"
#include "kernels/philox.h"
#include "tests/reference/rows.h"

namespace rowtide {

inline void initial_row_reference(const InitialRow& op, Key key, std::byte* weights,
                                  std::byte* state) {
  for (uint32_t d = 0; d < op.format.width; ++d) {
    const uint32_t r = philox4x32_10(op.seed, initial_counter(key, d / 4)).word[d % 4];
    const float u = static_cast<float>(r >> 8) * 0x1p-24f;
    const float value = (2 * u - 1) * op.scale;
    if (op.format.precision == Precision::kFp32) {
      std::memcpy(weights + d * sizeof value, &value, sizeof value);
    } else {
      const uint16_t half = nearest_reference(op.format.precision, value);
      std::memcpy(weights + d * sizeof half, &half, sizeof half);
    }
  }
  for (uint32_t b = 0; b < op.format.state_bytes(); ++b) state[b] = std::byte{0};
}

}  // namespace rowtide
