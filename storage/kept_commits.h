#pragma once
// KeptCommits — the few commits whose rows must not go, each with a bit of the liveness bytes.
//
// Two commits, the one being made, and up to four that readers pin: seven bits.  The liveness byte
// of a stored record is
//     newest      kNewest | the commits made before its epoch      they do not hold this record
//     superseded  the commits that still need it; 0: dead
// so that a new commit costs nothing (all records have its bit clear, and all were written before
// it), and only dropping one walks over bytes.

#include <array>
#include <cstdint>

namespace rowtide::storage {

class KeptCommits {
 public:
  static constexpr int kMost = 7;
  static constexpr uint8_t kNewest = 0x80;

  // A free bit, now of this epoch; -1: none.
  int add(uint32_t epoch) {
    for (int bit = 0; bit < kMost; ++bit) {
      if (used_[bit]) continue;
      used_[bit] = true;
      epochs_[bit] = epoch;
      return bit;
    }
    return -1;
  }
  void remove(int bit) { used_[bit] = false; }
  bool used(int bit) const { return used_[bit]; }
  uint32_t epoch(int bit) const { return epochs_[bit]; }
  int bit_of(uint32_t epoch) const {
    for (int bit = 0; bit < kMost; ++bit) {
      if (used_[bit] && epochs_[bit] == epoch) return bit;
    }
    return -1;
  }

  // The commits whose epoch is below this one.
  uint8_t before(uint32_t epoch) const {
    uint8_t mask = 0;
    for (int bit = 0; bit < kMost; ++bit) {
      if (used_[bit] && epochs_[bit] < epoch) mask |= static_cast<uint8_t>(1 << bit);
    }
    return mask;
  }
  // The greatest epoch in a mask, and the least of all commits above an epoch (0: none).
  uint32_t greatest(uint8_t mask) const {
    uint32_t greatest = 0;
    for (int bit = 0; bit < kMost; ++bit) {
      if ((mask >> bit & 1) != 0 && epochs_[bit] > greatest) greatest = epochs_[bit];
    }
    return greatest;
  }
  uint32_t next_above(uint32_t epoch) const {
    uint32_t least = 0;
    for (int bit = 0; bit < kMost; ++bit) {
      if (!used_[bit] || epochs_[bit] <= epoch) continue;
      if (least == 0 || epochs_[bit] < least) least = epochs_[bit];
    }
    return least;
  }

 private:
  std::array<bool, kMost> used_{};
  std::array<uint32_t, kMost> epochs_{};
};

}  // namespace rowtide::storage
