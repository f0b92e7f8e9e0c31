#pragma once
// evict — what a policy file may say, and the loops over a set that are the same for all policies.
//
//     evict:  ask the slots that may go, in order of rank, the smallest first, then the lowest way;
//             one that the policy spares is asked again after all others
//     age:    lower the words that hold a tick; equal stays equal, and smaller stays smaller
//
// A slot that may not go is neither asked nor changed.

#include "kernels/policies/policy.h"
#include "runtime/base/host_device.h"

namespace rowtide {

// A slot that is asked whether it goes.
struct Candidate {
  uint32_t way = 0;
  uint32_t word = 0;
  uint32_t set = 0;   // number of the set
  uint32_t step = 0;  // the step that needs the room
};

// What a policy does unless its file says otherwise.  A file must say insert, hit and rank.
// `word` is the slot's; `set` are the kSetWords words of its set, zeroed at first.
struct PolicyFile {
  static constexpr uint32_t kSetWords = 0;
  static constexpr bool kForesees = false;  // true: wants foresee() and Touch::next_use

  // static void insert(uint32_t& word, uint32_t* set, const Touch&);
  // static void hit(uint32_t& word, uint32_t* set, const Touch&);
  // static uint32_t rank(const Candidate&, const uint32_t* set);

  // True keeps the slot for now; in the end it must say false.
  HOST_DEVICE static bool spare(uint32_t& /*word*/, uint32_t* /*set*/) { return false; }
  HOST_DEVICE static void evicted(uint32_t /*way*/, uint32_t* /*set*/) {}
  HOST_DEVICE static void foresee(uint32_t& /*word*/, uint32_t /*step*/) {}
  // After a touch: if the touched word is full, every word of the set becomes halved(word).
  HOST_DEVICE static bool full(uint32_t /*word*/) { return false; }
  HOST_DEVICE static uint32_t halved(uint32_t word) { return word; }
  // Whether the word is a tick, which age() must lower.  Words that are none are above all ticks.
  HOST_DEVICE static bool has_tick(uint32_t /*word*/) { return false; }
  // What the word is once steps count from 0 again; `tick` is the last tick that was given.
  HOST_DEVICE static uint32_t resumed(uint32_t word, uint32_t /*tick*/) { return word; }
};

// The words of the set, and those of its slots.
HOST_DEVICE inline uint32_t* set_words(const DirectoryView& view, uint32_t set) {
  return view.set_words + uint64_t{set} * view.set_word_count;
}
HOST_DEVICE inline uint32_t* slot_words(const DirectoryView& view, uint32_t set) {
  return view.words + uint64_t{set} * kWays;
}

// Tells the policy of a touch, by P::insert or P::hit.
template <typename P>
HOST_DEVICE void touch(const DirectoryView& view, Slot slot, const Touch& use,
                       void (*tell)(uint32_t&, uint32_t*, const Touch&)) {
  const uint32_t set = slot / kWays;
  tell(view.words[slot], set_words(view, set), use);
  if (!P::full(view.words[slot])) return;
  uint32_t* words = slot_words(view, set);
  for (uint32_t way = 0; way < kWays; ++way) words[way] = P::halved(words[way]);
}

// The way of smallest rank among `ways`, which are not none.
template <typename P>
HOST_DEVICE uint32_t first_to_go(const DirectoryView& view, uint32_t set, uint32_t ways,
                                 uint32_t step) {
  const uint32_t* words = slot_words(view, set);
  constexpr uint32_t kLast = ~0u;
  uint32_t ranks[kWays], least = kLast, first = kWays;
  for (uint32_t way = 0; way < kWays; ++way) {
    ranks[way] = P::rank({way, words[way], set, step}, set_words(view, set));
  }
  for (uint32_t no = ~ways; no != 0; no &= no - 1) ranks[lowest_bit(no)] = kLast;
  for (uint32_t way = 0; way < kWays; ++way) least = ranks[way] < least ? ranks[way] : least;
  if (least == kLast) return lowest_bit(ways);
  for (uint32_t way = 0; way < kWays; ++way) {
    const uint32_t candidate = ranks[way] == least ? way : kWays;
    first = candidate < first ? candidate : first;
  }
  return first;
}

template <typename P>
HOST_DEVICE Slot evict(const DirectoryView& view, uint32_t set, uint32_t may_go, uint32_t step) {
  for (uint32_t asked = 0;;) {
    const uint32_t way = first_to_go<P>(view, set, may_go & ~asked, step);
    const Slot slot = set * kWays + way;
    if (!P::spare(view.words[slot], set_words(view, set))) {
      P::evicted(way, set_words(view, set));
      return slot;
    }
    asked |= uint32_t{1} << way;
    if (asked == may_go) asked = 0;
  }
}

// Ticks at least kWays above `by` are lowered by it; the older ones become their order in the set,
// which is less than kWays.  So the order is kept, and none is above a tick of the future.
template <typename P>
HOST_DEVICE void age_set(const DirectoryView& view, uint32_t set, uint32_t by) {
  uint32_t* words = slot_words(view, set);
  uint32_t aged[kWays];
  for (uint32_t way = 0; way < kWays; ++way) {
    aged[way] = words[way];
    if (!P::has_tick(words[way])) continue;
    if (words[way] >= by && words[way] - by >= kWays) {
      aged[way] -= by;
      continue;
    }
    aged[way] = 0;
    for (uint32_t other = 0; other < kWays; ++other) aged[way] += words[other] < words[way];
  }
  for (uint32_t way = 0; way < kWays; ++way) words[way] = aged[way];
}

}  // namespace rowtide
