#pragma once
// Directory — who stands in which slot of one tier of one group: a 32-way set-associative table.
//
// 32 16-bit tags fill one 64-byte line, probed by a warp or one SIMD compare.  The full key, the
// policy's word and the number of the last step that uses the slot lie beside.  It knows neither
// bytes nor time: whether a record is dirty, was ever written, or has arrived is not its business.
// All is plain memory in a view of pointers, so a kernel can take it by value.

#include <cstddef>
#include <cstdint>

#include "runtime/base/key.h"

namespace rowtide {

inline constexpr uint32_t kWays = 32;
inline constexpr uint16_t kFreeTag = 0;  // real tags are never 0
inline constexpr uint32_t kNoStep = 0;   // step numbers in `last` are step + 1, so 0 is "none yet"
inline constexpr uint32_t kMaxSetWords = 4;

// Slot s belongs to set s / 32.  Arrays begin at multiples of 64 bytes.
struct DirectoryView {
  uint16_t* tags = nullptr;       // (sets, 32) kFreeTag: the slot is free
  Key* keys = nullptr;            // (sets, 32)
  uint32_t* words = nullptr;      // (sets, 32) the policy's
  uint32_t* last = nullptr;       // (sets, 32) 1 + the last step that uses the slot
  uint32_t* set_words = nullptr;  // (sets, set_word_count) the policy's
  uint32_t set_word_count = 0;
  uint32_t sets = 0;  // 0: an empty tier, find() finds nothing
  uint64_t salt = 0;

  static uint64_t bytes(uint32_t sets, uint32_t set_word_count);
  // Lays a zeroed memory of bytes() out.
  static DirectoryView over(std::byte* memory, uint32_t sets, uint32_t set_word_count,
                            uint64_t salt);

  uint64_t hash(Key key) const { return mix64(key ^ salt); }
  // Multiply-high keeps any number of sets, not only powers of two.
  uint32_t set_of(Key key) const {
    return static_cast<uint32_t>((static_cast<unsigned __int128>(hash(key)) * sets) >> 64);
  }
  uint16_t tag_of(Key key) const {
    const uint16_t tag = static_cast<uint16_t>(hash(key));
    return tag == kFreeTag ? uint16_t{1} : tag;
  }
};

// The slot of `key`, or kNoSlot.
Slot directory_find(const DirectoryView& view, Key key);
void directory_prefetch(const DirectoryView& view, Key key);

// Bit w is set if way w of the set ...
uint32_t directory_free(const DirectoryView& view, uint32_t set);  // ... is free
uint32_t directory_before(const DirectoryView& view, uint32_t set,
                          uint32_t step);  // ... is taken,
                                           // and its `last` is below step + 1

// Puts a key into a free slot of its set, or takes it out.  The policy is told by the caller.
void directory_put(const DirectoryView& view, Slot slot, Key key, uint32_t word, uint32_t last);
void directory_take(const DirectoryView& view, Slot slot);

// The op that a GPU also has: slots[i] = find(keys[i]) for i in [0, n).
struct DirectoryProbe {
  DirectoryView view;
  const Key* keys = nullptr;  // (n)
  Slot* slots = nullptr;      // (n)
  uint64_t n = 0;
};
void directory_probe_cpu(const DirectoryProbe& op);

}  // namespace rowtide
