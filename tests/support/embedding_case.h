#pragma once
// embedding_case — a small arena of random rows, and a batch that uses some of them.

#include <cstdint>
#include <numeric>
#include <vector>

#include "kernels/pooled_lookup.h"
#include "kernels/update_rows.h"
#include "tests/reference/rows.h"
#include "tests/support/guarded.h"
#include "tests/support/numbers.h"

namespace rowtide {

inline constexpr Precision kPrecisions[] = {Precision::kFp32, Precision::kFp16, Precision::kBf16};
inline constexpr Pooling kPoolings[] = {Pooling::kSum, Pooling::kMean, Pooling::kNone};
inline constexpr OptimizerKind kOptimizers[] = {OptimizerKind::kSgd, OptimizerKind::kAdagrad,
                                                OptimizerKind::kRowwiseAdagrad,
                                                OptimizerKind::kAdam};
// Just off, at and beyond every vector, panel and lane count.
inline constexpr uint32_t kWidths[] = {1,  2,  3,   5,   7,   13,   16,   31,   32,  33,
                                       64, 65, 100, 128, 200, 1024, 1025, 2048, 4096};

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

// `count` different slots of `of`, in no order.
inline std::vector<Slot> random_slots(uint32_t count, uint32_t of, uint64_t seed) {
  std::vector<Slot> slots(of);
  std::iota(slots.begin(), slots.end(), 0u);
  std::mt19937_64 random(seed);
  for (uint32_t i = of; i > 1; --i) std::swap(slots[i - 1], slots[random() % i]);
  slots.resize(count);
  return slots;
}

// The ids of one feature: bags of the given lengths over `rows` distinct rows, one in ten skipped.
// They begin at id `first` of the batch.
struct Bags {
  Bags(const std::vector<int64_t>& lengths, uint32_t rows, int64_t first, uint64_t seed)
      : offsets{first} {
    for (int64_t length : lengths) offsets.push_back(offsets.back() + length);
    std::mt19937_64 random(seed);
    unique.assign(static_cast<size_t>(first), kSkipped);
    while (static_cast<int64_t>(unique.size()) < offsets.back()) {
      unique.push_back(random() % 10 == 0 ? kSkipped : static_cast<uint32_t>(random() % rows));
    }
    weights = random_floats(unique.size(), seed + 1);
  }
  uint64_t bags() const { return offsets.size() - 1; }
  uint64_t ids() const { return static_cast<uint64_t>(offsets.back() - offsets.front()); }

  std::vector<int64_t> offsets;
  std::vector<uint32_t> unique;
  std::vector<float> weights;
};

}  // namespace rowtide
