#pragma once
// bags — the ids of one feature, and the slots of their rows.  Needs no gtest.

#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "kernels/rows.h"
#include "tests/support/values.h"

namespace rowtide {

inline constexpr Precision kPrecisions[] = {Precision::kFp32, Precision::kFp16, Precision::kBf16};

// Just off, at and beyond every vector, panel and lane count.
inline constexpr uint32_t kWidths[] = {1,  2,  3,   5,   7,   13,   16,   31,   32,  33,
                                       64, 65, 100, 128, 200, 1024, 1025, 2048, 4096};

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
