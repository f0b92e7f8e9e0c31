#pragma once
// NextUses — when each cached row of the known window is used next.
//
// Batches enter the window in order, once, exactly when place may see them; so what it says is a
// pure function of the batches.  For each distinct row of a batch it links to the next batch that
// uses the row.  A row that no batch between the last placed one and this one uses is handed to
// `foresee`, since a slot may hold it.
//
// A hash from key to the last known use, without the keys: they lie in the known batches.

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
  NextUses(const Layout& layout, Carver& carver);

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
      if (u + kAhead < end) __builtin_prefetch(entries_ + home(keys[u + kAhead]));
      batch.next[u] = kNeverUsed;
      uint64_t& entry = entries_[find(keys[u], step, batch_of)];
      if (entry == kEmpty) {
        foreseen[count++] = keys[u];
      } else {
        batch_of(step_of(entry, step)).next[row_in(entry)] = step;
      }
      entry = pack(step, u, keys[u]);
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

 private:
  // 24 bits of the step, 8 of the key's hash, 32 of 1 + the row's index in its batch: fresh memory
  // is empty.
  static constexpr uint64_t kEmpty = 0;
  static constexpr uint32_t kAhead = 8;

  static uint64_t hash(Key key) { return mix64(key * 0x9E3779B97F4A7C15ull); }
  static uint64_t pack(uint32_t step, uint32_t row, Key key) {
    return uint64_t{step & 0xFFFFFF} << 40 | (hash(key) & 0xFF) << 32 | (row + 1);
  }
  static uint32_t row_in(uint64_t entry) { return static_cast<uint32_t>(entry) - 1; }
  // The window is far shorter than 2^23 steps, so the low bits tell which step near `near` it is.
  static uint32_t step_of(uint64_t entry, uint32_t near) {
    const uint32_t distance = (static_cast<uint32_t>(entry >> 40) - near) & 0xFFFFFF;
    return distance < 0x800000 ? near + distance : near - (0x1000000 - distance);
  }
  uint64_t home(Key key) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(hash(key)) * capacity_) >> 64);
  }
  uint64_t after(uint64_t at) const { return at + 1 == capacity_ ? 0 : at + 1; }

  // Where the key's entry is, or the empty place where it would be.
  template <typename BatchOf>
  uint64_t find(Key key, uint32_t near, BatchOf&& batch_of) const {
    uint64_t at = home(key);
    for (; entries_[at] != kEmpty; at = after(at)) {
      const uint64_t entry = entries_[at];
      if ((entry >> 32 & 0xFF) != (hash(key) & 0xFF)) continue;
      if (batch_of(step_of(entry, near)).rows.keys[row_in(entry)] == key) break;
    }
    return at;
  }

  // Linear probing without tombstones: later entries of the run move up into the hole.
  template <typename BatchOf>
  void erase(uint64_t hole, uint32_t near, BatchOf&& batch_of) {
    for (uint64_t at = after(hole); entries_[at] != kEmpty; at = after(at)) {
      const uint64_t entry = entries_[at];
      const uint64_t wanted = home(batch_of(step_of(entry, near)).rows.keys[row_in(entry)]);
      const bool stays = hole <= at ? hole < wanted && wanted <= at : hole < wanted || wanted <= at;
      if (stays) continue;
      entries_[hole] = entry;
      hole = at;
    }
    entries_[hole] = kEmpty;
  }

  uint64_t* entries_;
  uint64_t capacity_;
};

}  // namespace rowtide
