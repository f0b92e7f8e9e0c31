#pragma once
// NextUses — when each cached row of the known window is used next.
//
// Batches enter the window in order, once, exactly when place may see them; so what it says is a
// pure function of the batches.  For each distinct row of a batch it links to the next batch that
// uses the row.  A row that no batch between the last placed one and this one uses is handed to
// `foresee`, since a slot may hold it.
//
// A hash from key to the last known use, without the keys: they lie in the known batches.

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/policies/policy.h"
#include "runtime/base/carver.h"
#include "runtime/known_batches.h"
#include "runtime/place.h"

namespace rowtide {

class NextUses {
 public:
  // Room for every cached row of every batch of the window, at a load of three quarters.
  NextUses(const Layout& layout, Carver& carver, uint64_t salt);

  // Rows [begin, end) of `batch` enter.  batch_of(step) is the known batch of that step;
  // foresee(keys) is called with at most kTogether of them at once.
  static constexpr uint32_t kTogether = GroupDirectory::kForeseen;
  template <typename BatchOf, typename Foresee>
  void enter(KnownBatch& batch, uint32_t begin, uint32_t end, BatchOf&& batch_of,
             Foresee&& foresee) {
    const uint32_t step = static_cast<uint32_t>(batch.step);
    const Key* keys = batch.rows.keys;
    Key foreseen[kTogether];
    uint32_t count = 0;
    for (uint32_t u = begin; u < end; ++u) {
      if (u + 2 * kAhead < end) __builtin_prefetch(entries_ + home(keys[u + 2 * kAhead]));
      if (u + kAhead < end) prefetch_use(keys[u + kAhead], step, batch_of);
      batch.next[u] = kNeverUsed;
      const uint64_t at = find(keys[u], step, batch_of);
      uint64_t& entry = entries_[at];
      if (entry == kEmpty) {
        foreseen[count++] = keys[u];
      } else {
        batch_of(step_of(entry, step)).next[row_in(entry)] = step;
      }
      entry = pack(step, u, keys[u], distance(home(keys[u]), at));
      if (count < kTogether) continue;
      foresee(std::span<const Key>(foreseen, count));
      count = 0;
    }
    if (count > 0) foresee(std::span<const Key>(foreseen, count));
  }

  // Rows [begin, end) of `batch` are about to be placed: a use that is the last known one goes.
  template <typename BatchOf>
  void leave(const KnownBatch& batch, uint32_t begin, uint32_t end, BatchOf&& batch_of) {
    const uint32_t step = static_cast<uint32_t>(batch.step);
    const Key* keys = batch.rows.keys;
    for (uint32_t u = begin; u < end; ++u) {
      if (u + kAhead < end) __builtin_prefetch(entries_ + home(keys[u + kAhead]));
      if (batch.next[u] == kNeverUsed) erase(find(keys[u], step, batch_of), step, batch_of);
    }
  }

  uint64_t hash(Key key) const { return mix64(key ^ salt_); }

 private:
  // 18 bits of the step, 6 of how far the entry lies behind its home, 8 of the key's hash, 32 of
  // 1 + the row's index in its batch: fresh memory is empty.
  static constexpr uint64_t kEmpty = 0;
  static constexpr uint32_t kAhead = 8;
  static constexpr uint32_t kSteps = 1 << 18;  // above twice the longest window
  static constexpr uint64_t kFar = 63;         // as far or farther: its key tells

  uint64_t pack(uint32_t step, uint32_t row, Key key, uint64_t behind) const {
    return (uint64_t{step % kSteps} << 6 | std::min(behind, kFar)) << 40 |
           (hash(key) & 0xFF) << 32 | (row + 1);
  }
  static uint32_t row_in(uint64_t entry) { return static_cast<uint32_t>(entry) - 1; }
  // The low bits tell which step near `near` it is.
  static uint32_t step_of(uint64_t entry, uint32_t near) {
    const uint32_t ahead = (static_cast<uint32_t>(entry >> 46) - near) % kSteps;
    return ahead < kSteps / 2 ? near + ahead : near - (kSteps - ahead);
  }
  bool may_be(uint64_t entry, Key key) const { return (entry >> 32 & 0xFF) == (hash(key) & 0xFF); }
  template <typename BatchOf>
  static Key key_of(uint64_t entry, uint32_t near, BatchOf&& batch_of) {
    return batch_of(step_of(entry, near)).rows.keys[row_in(entry)];
  }
  uint64_t home(Key key) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(hash(key)) * capacity_) >> 64);
  }
  uint64_t after(uint64_t at) const { return at + 1 == capacity_ ? 0 : at + 1; }
  uint64_t distance(uint64_t from, uint64_t to) const {
    return to >= from ? to - from : to + capacity_ - from;
  }

  // Where the key's entry is, or the empty place where it would be.
  template <typename BatchOf>
  uint64_t find(Key key, uint32_t near, BatchOf&& batch_of) const {
    uint64_t at = home(key);
    for (; entries_[at] != kEmpty; at = after(at)) {
      const uint64_t entry = entries_[at];
      if (may_be(entry, key) && key_of(entry, near, batch_of) == key) break;
    }
    return at;
  }

  // Starts to load what the first entry that may be the key's stands for.
  template <typename BatchOf>
  void prefetch_use(Key key, uint32_t near, BatchOf&& batch_of) const {
    uint64_t at = home(key);
    while (entries_[at] != kEmpty && !may_be(entries_[at], key)) at = after(at);
    if (entries_[at] == kEmpty) return;
    const KnownBatch& batch = batch_of(step_of(entries_[at], near));
    __builtin_prefetch(batch.rows.keys + row_in(entries_[at]));
    __builtin_prefetch(batch.next + row_in(entries_[at]), 1);
  }

  // Linear probing without tombstones: later entries of the run move up into the hole.
  template <typename BatchOf>
  void erase(uint64_t hole, uint32_t near, BatchOf&& batch_of) {
    for (uint64_t at = after(hole); entries_[at] != kEmpty; at = after(at)) {
      const uint64_t entry = entries_[at], gap = distance(hole, at);
      uint64_t behind = entry >> 40 & kFar;
      if (behind < gap && behind < kFar) continue;
      const Key key = key_of(entry, near, batch_of);
      if (behind == kFar) behind = distance(home(key), at);
      if (behind < gap) continue;
      entries_[hole] = pack(step_of(entry, near), row_in(entry), key, behind - gap);
      hole = at;
    }
    entries_[hole] = kEmpty;
  }

  uint64_t* entries_;
  uint64_t capacity_;
  uint64_t salt_;
};

}  // namespace rowtide
