#pragma once
// clock — a second chance for whatever was used.
//
//     insert:  the slot starts unused
//     hit:     mark the slot used
//     evict:   sweep the hand; a used slot loses its mark, the first unused goes
//
// The word is the mark; each set has one hand.  A slot that may not go is passed over and keeps
// its mark.  The mark travels: a row that was used in HBM has a second chance in DDR.

#include "kernels/policies/evict.h"

namespace rowtide {

struct Clock : PolicyFile {
  static constexpr uint32_t kSetWords = 1;  // the hand: the way that is asked first

  HOST_DEVICE static void insert(uint32_t& word, uint32_t*, const Touch&) { word = 0; }
  HOST_DEVICE static void hit(uint32_t& word, uint32_t*, const Touch&) { word = 1; }
  // The distance from the hand.
  HOST_DEVICE static uint32_t rank(const Candidate& slot, const uint32_t* set) {
    return (slot.way - set[0]) % kWays;
  }
  HOST_DEVICE static bool spare(uint32_t& word, uint32_t*) {
    const bool used = word != 0;
    word = 0;
    return used;
  }
  HOST_DEVICE static void evicted(uint32_t way, uint32_t* set) { set[0] = (way + 1) % kWays; }
};

}  // namespace rowtide
