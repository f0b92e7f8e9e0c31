#pragma once
// Directory — who stands in which slot of one tier of one group: a 32-way set-associative table.
//
// 32 16-bit tags fill one 64-byte line, probed by a warp or one SIMD compare.  The full key, the
// policy's word and the number of the last step that uses the slot lie beside.  It knows neither
// bytes nor time: whether a record is dirty, was ever written, or has arrived is not its business.
// All is plain memory in a view of pointers, so a kernel can take it by value.

#include <cstddef>
#include <cstdint>

#include "runtime/base/host_device.h"
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

  // What over() lays out, to the byte; a multiple of 64, so that views lie well one after another.
  static uint64_t bytes(uint32_t sets, uint32_t set_word_count);
  // Lays a zeroed memory of bytes() out.  REQUIRES: memory at a multiple of 64; sets < 2^27, so
  // that kNoSlot is no slot; set_word_count <= kMaxSetWords.
  static DirectoryView over(std::byte* memory, uint32_t sets, uint32_t set_word_count,
                            uint64_t salt);

  HOST_DEVICE uint64_t hash(Key key) const { return mix64(key ^ salt); }
  // Multiply-high keeps any number of sets, not only powers of two.
  HOST_DEVICE uint32_t set_of(Key key) const {
    return static_cast<uint32_t>(multiply_high(hash(key), sets));
  }
  // The set takes the upper bits of the hash, the tag the lower ones.
  HOST_DEVICE uint16_t tag_of(Key key) const {
    const uint16_t tag = static_cast<uint16_t>(hash(key));
    return tag == kFreeTag ? uint16_t{1} : tag;
  }
};

// The slot of `key`, or kNoSlot.  REQUIRES, here and below: key != kNoKey.  For many keys
// directory_probe_cpu() hides all misses.
Slot directory_find(const DirectoryView& view, Key key);

// Starts to load what it takes to choose a slot of the set: tags, words, last.
void directory_prefetch_set(const DirectoryView& view, uint32_t set);

// Bit w is set if way w of the set is free.
uint32_t directory_free(const DirectoryView& view, uint32_t set);
// Bit w is set if way w of the set is taken and was last used, if at all, before `step`.
uint32_t directory_before(const DirectoryView& view, uint32_t set, uint32_t step);

// The two halves of a put, for a caller who puts many: a slot of the set of `key`, free or with
// another key, becomes its slot at once, but has its name only after directory_name(), which
// returns the one before.  In between nobody may look for either.
void directory_claim(const DirectoryView& view, Slot slot, Key key, uint32_t word, uint32_t last);
Key directory_name(const DirectoryView& view, Slot slot, Key key);
// Puts a key that stands nowhere into a free slot of its set, or takes the key of a slot out; its
// key and word stay readable until the slot is put again.  The policy is told by the caller.
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
