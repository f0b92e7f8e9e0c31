#pragma once
// lfu — what was used least goes first; old fame fades.
//
//     insert, hit:  count the uses; remember the step
//     full:         when a count reaches 255, all counts of the set are halved
//     evict:        the smallest count goes; of equal ones the least recent step,
//                   of equal steps the lowest way
//
// The word is the count (8 bits) over the step's lower 24 bits.  Recency is the distance from the
// step that needs the room, modulo 2^24, so it neither wraps nor ages: only a row left alone for
// more than 16 million steps looks more recent than it is, and only to rows of the same count.
// The word travels, so a row that comes back from DDR keeps its count; from the SSD it starts at 0.

#include "kernels/policies/evict.h"

namespace rowtide {

struct Lfu : PolicyFile {
  static constexpr uint32_t kStepBits = 24;
  static constexpr uint32_t kStepMask = (1u << kStepBits) - 1;
  static constexpr uint32_t kMostUses = 255;

  HOST_DEVICE static void hit(uint32_t& word, uint32_t*, const Touch& use) {
    const uint32_t room = kMostUses - (word >> kStepBits);
    const uint32_t uses = kMostUses - room + (use.count < room ? use.count : room);
    word = uses << kStepBits | (use.step & kStepMask);
  }
  HOST_DEVICE static void insert(uint32_t& word, uint32_t* set, const Touch& use) {
    hit(word, set, use);
  }
  HOST_DEVICE static uint32_t rank(const Candidate& slot, const uint32_t*) {
    const uint32_t idle_steps = (slot.step - slot.word) & kStepMask;
    return (slot.word & ~kStepMask) | (kStepMask - idle_steps);
  }
  // The counts stay; all were used just now.
  HOST_DEVICE static uint32_t resumed(uint32_t word, uint32_t) { return word & ~kStepMask; }
  HOST_DEVICE static bool full(uint32_t word) { return word >> kStepBits == kMostUses; }
  HOST_DEVICE static uint32_t halved(uint32_t word) {
    return (word >> (kStepBits + 1)) << kStepBits | (word & kStepMask);
  }
};

}  // namespace rowtide
