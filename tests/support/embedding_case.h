#pragma once
// embedding_case — a small arena of random rows, and a batch that uses some of them.

#include <cstdint>
#include <vector>

#include "kernels/pooled_lookup.h"
#include "kernels/update_rows.h"
#include "tests/reference/rows.h"
#include "tests/support/bags.h"
#include "tests/support/guarded.h"
#include "tests/support/numbers.h"

namespace rowtide {

inline constexpr Pooling kPoolings[] = {Pooling::kSum, Pooling::kMean, Pooling::kNone};
inline constexpr OptimizerKind kOptimizers[] = {OptimizerKind::kSgd, OptimizerKind::kAdagrad,
                                                OptimizerKind::kRowwiseAdagrad,
                                                OptimizerKind::kAdam};

struct Arena {
  Arena(RowFormat row_format, uint32_t slot_count, uint64_t seed)
      : format(row_format),
        weights(uint64_t{slot_count} * format.weight_bytes()),
        state(uint64_t{slot_count} * format.state_bytes()) {
    const auto values = random_floats(uint64_t{slot_count} * format.width, seed);
    for (size_t i = 0; i < values.size(); ++i) set(i, values[i]);
    const auto squares = random_floats(state.size() / 4, seed + 1);
    for (size_t i = 0; i < squares.size(); ++i) {
      reinterpret_cast<float*>(state.data())[i] = squares[i] * squares[i];
    }
  }

  // Element `i` of all rows back to back; rounded to nearest.
  void set(size_t i, float value) {
    if (format.precision == Precision::kFp32) {
      reinterpret_cast<float*>(weights.data())[i] = value;
    } else {
      reinterpret_cast<uint16_t*>(weights.data())[i] = nearest_reference(format.precision, value);
    }
  }
  RowPlanes planes() {
    return {weights.data(), state.data(), format.weight_bytes(), format.state_bytes()};
  }
  // All weights, widened, and then all state.
  std::vector<float> values() {
    std::vector<float> out;
    const auto slots = static_cast<Slot>(weights.size() / format.weight_bytes());
    for (Slot slot = 0; slot < slots; ++slot) {
      for (uint32_t d = 0; d < format.width; ++d) {
        out.push_back(weight_reference(format, planes(), slot, d));
      }
    }
    const auto* s = reinterpret_cast<const float*>(state.data());
    out.insert(out.end(), s, s + state.size() / sizeof(float));
    return out;
  }

  RowFormat format;
  Guarded<std::byte> weights, state;
};

}  // namespace rowtide
