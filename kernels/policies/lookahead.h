#pragma once
// lookahead — what the known batches do not use goes first, then what they use last.
//
//     insert, hit:  remember the next use if it is known, else the tick
//     foresee:      remember the next use, which has just become known
//     evict:        a slot without known next use goes, the smallest tick first;
//                   if there is none, the one of farthest next use, of equal ones the lowest way
//
// The word is a tick below 2^31, or, with the top bit set, a step modulo 2^31.  Steps are compared
// by their distance from the step that needs the room, so they may wrap; the known window is
// far shorter than 2^31 steps.  A use that has passed unseen, because its step could not be placed,
// looks farthest.  Within the window this is Belady's choice, beyond it lru.

#include "kernels/policies/evict.h"

namespace rowtide {

struct Lookahead : PolicyFile {
  static constexpr bool kForesees = true;
  static constexpr uint32_t kKnown = 1u << 31;

  HOST_DEVICE static void hit(uint32_t& word, uint32_t*, const Touch& use) {
    word = use.next_use == kNeverUsed ? use.tick : use.next_use | kKnown;
  }
  HOST_DEVICE static void insert(uint32_t& word, uint32_t* set, const Touch& use) {
    hit(word, set, use);
  }
  HOST_DEVICE static void foresee(uint32_t& word, uint32_t step) {
    if (has_tick(word)) word = step | kKnown;
  }
  HOST_DEVICE static uint32_t rank(const Candidate& slot, const uint32_t*) {
    if (has_tick(slot.word)) return slot.word;
    const uint32_t distance = (slot.word - slot.step) & ~kKnown;
    return ~distance;  // above every tick, and the smaller the farther
  }
  HOST_DEVICE static bool has_tick(uint32_t word) { return (word & kKnown) == 0; }
  // What is known will be foreseen again.
  HOST_DEVICE static uint32_t resumed(uint32_t word, uint32_t tick) {
    return has_tick(word) ? word : tick;
  }
};

}  // namespace rowtide
