#pragma once
// policy — what decides which record of a full set goes.
//
// A policy is one file here: integer functions of one set, the same code on host and device.  It
// keeps one 32-bit word a slot and a few words a set.  The word travels with the record between
// tiers.  It sees each distinct key of a batch once, with its multiplicity: hits first, then misses
// by first occurrence.  Which slots may go at all is not its business.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/directory.h"

namespace rowtide {

inline constexpr uint32_t kNeverUsed = 0xFFFFFFFFu;  // no next use within the known window

// One use of a key by a step.
struct Touch {
  uint32_t step = 0;               // number of the step
  uint32_t count = 1;              // occurrences in the batch
  uint32_t next_use = kNeverUsed;  // the next step that uses the key, as far as is known
  uint32_t tick = 0;               // grows by one with each touch of the group; below 2^31, see age
};

// A policy as a table of functions over a directory, made from its file by policies.cc.
struct Policy {
  std::string_view name;
  uint32_t set_words;  // words a set
  bool foresees;       // wants foresee() and next_use

  // `slot` holds a key since just now (its word came with the record or is 0) or was hit.
  void (*insert)(const DirectoryView&, Slot, const Touch&);
  void (*hit)(const DirectoryView&, Slot, const Touch&);
  // The key in `slot` will next be used by `step`, which has just become known.
  void (*foresee)(const DirectoryView&, Slot, uint32_t step);
  // The slot to empty, of those in `may_go` (bits of the set's ways).  Only they may change.
  // REQUIRES: may_go != 0, and names taken slots only.
  Slot (*victim)(const DirectoryView&, uint32_t set, uint32_t may_go, uint32_t step);
  // Lowers all ticks by `by`, the order within each set kept.  The caller lowers its own tick as
  // well, about every 2^30 ticks, and before it reaches 2^31.
  void (*age)(const DirectoryView&, uint32_t by);
  // What a word of another process becomes: steps count from 0 again, `tick` is the last tick.
  uint32_t (*resumed)(uint32_t word, uint32_t tick);
};

// Null if there is none of that name.  The names of all policies, in alphabetical order.
const Policy* find_policy(std::string_view name);
std::span<const std::string_view> policy_names();

}  // namespace rowtide
