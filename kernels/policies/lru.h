#pragma once
// lru — what was not used for longest goes first.
//
//     insert, hit:  remember the tick of the use
//     evict:        the smallest tick goes
//
// The word is the tick, so it means the same in every set and tier.  A newcomer is the most
// recent of all.  age() lowers the ticks before they could wrap.

#include "kernels/policies/evict.h"

namespace rowtide {

struct Lru : PolicyFile {
  HOST_DEVICE static void insert(uint32_t& word, uint32_t*, const Touch& use) { word = use.tick; }
  HOST_DEVICE static void hit(uint32_t& word, uint32_t*, const Touch& use) { word = use.tick; }
  HOST_DEVICE static uint32_t rank(const Candidate& slot, const uint32_t*) { return slot.word; }
  HOST_DEVICE static bool has_tick(uint32_t) { return true; }
};

}  // namespace rowtide
