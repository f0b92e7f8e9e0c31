#pragma once
// Transit — slots that belong to no set: for rows whose set is full or that admission refuses.
//
// A row stays in its slot until the last step that uses it is over; all steps that use it share the
// slot.  Found through a small hash.  The policy's words lie in a DirectoryView without sets of
// meaning, so that a row's word keeps being told of its uses.

#include <bit>
#include <cstdint>

#include "kernels/directory.h"
#include "runtime/base/carver.h"
#include "runtime/base/status.h"

namespace rowtide {

class Transit {
 public:
  // `salt` decides which keys collide in the hash, and nothing that shows.
  Transit(uint32_t slots, uint32_t set_words, uint64_t salt, Carver& carver);

  uint32_t find(Key key) const;  // kNoSlot: not in transit
  // REQUIRES: used() < slots.  Takes the lowest free slot.
  uint32_t put(Key key, uint32_t word, uint32_t last);
  void take(uint32_t slot);

  uint32_t slots() const { return slots_; }
  uint32_t used() const { return used_; }
  DirectoryView& view() { return view_; }  // keys, words and last of each slot
  const DirectoryView& view() const { return view_; }

  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (uint32_t word = 0; word * 64 < slots_; ++word) {
      for (uint64_t bits = taken_[word]; bits != 0; bits &= bits - 1) {
        const uint32_t slot = word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
        visit(view_.keys[slot], slot);
      }
    }
  }

 private:
  uint32_t home(Key key) const { return static_cast<uint32_t>(mix64(key ^ salt_)) & mask_; }

  DirectoryView view_;
  uint64_t* taken_;  // (slots / 64) bits
  uint32_t* table_;  // (mask + 1) slot + 1, or 0
  uint32_t mask_;
  uint64_t salt_;
  uint32_t slots_, used_ = 0;
  uint32_t first_free_ = 0;  // no word of taken_ below it has a free slot
};

}  // namespace rowtide
