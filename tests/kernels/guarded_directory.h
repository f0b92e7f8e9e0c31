#pragma once
// GuardedDirectory — a directory whose memory lies between guard words, for tests.

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/directory.h"

namespace rowtide {

// The key with this hash, so that a test can choose set and tag: mix64() backwards.
inline Key key_of_hash(uint64_t hash, uint64_t salt) {
  const auto unshift = [](uint64_t x) { return x ^ x >> 33; };
  uint64_t x = unshift(hash) * 0x9cb4b2f8129337dbull;  // the inverses of mix64's factors mod 2^64
  x = unshift(x) * 0x4f74430c22a54005ull;
  return unshift(x) ^ salt;
}

class GuardedDirectory {
 public:
  explicit GuardedDirectory(uint32_t sets, uint32_t set_word_count = 0, uint64_t salt = 7)
      : bytes_(DirectoryView::bytes(sets, set_word_count)),
        memory_(bytes_ + 2 * kGuard + kLine, kGuardByte) {
    const auto at = reinterpret_cast<uintptr_t>(memory_.data()) + kGuard;
    begin_ = memory_.data() + kGuard + (kLine - at % kLine) % kLine;
    std::memset(begin_, 0, bytes_);
    view = DirectoryView::over(begin_, sets, set_word_count, salt);
  }

  // Puts the key into the lowest free way of its set.  Returns kNoSlot if there is none.
  Slot put(Key key, uint32_t last = kNoStep) {
    const uint32_t set = view.set_of(key), free = directory_free(view, set);
    if (free == 0) return kNoSlot;
    const Slot slot = set * kWays + static_cast<uint32_t>(__builtin_ctz(free));
    directory_put(view, slot, key, /*word=*/0, last);
    return slot;
  }

  bool guards_intact() const {
    const auto is_guard = [](std::byte b) { return b == kGuardByte; };
    return std::all_of(memory_.data(), static_cast<const std::byte*>(begin_), is_guard) &&
           std::all_of(static_cast<const std::byte*>(begin_) + bytes_,
                       memory_.data() + memory_.size(), is_guard);
  }

  DirectoryView view;

 private:
  static constexpr size_t kLine = 64, kGuard = 128;
  static constexpr std::byte kGuardByte{0xA5};

  uint64_t bytes_;
  std::vector<std::byte> memory_;
  std::byte* begin_;
};

}  // namespace rowtide
