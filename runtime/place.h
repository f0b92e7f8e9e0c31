#pragma once
// place — who stands where after all planned moves: the directories of one group.
//
// A pure function of batches and directories: never of bytes, dirty bits, timing, threads or the
// disk.  The rules and their order are design.md's ("The exact rules"), found by an executable
// model; tests compare the moves with a transcription of it (tests/reference/placement.h).
//
//     place(j):  1. empty every transit slot whose last step is over, in slot order
//                2. rows found in a set or in transit: touched, first occurrence first
//                3. the others, first occurrence first: into a free slot of their set, else in the
//                   place of a victim, else, or if admission refuses, into a transit slot
//                (the choices in hot do not depend on warm: so all choose, then all move, each in
//                order, and what the next ones need is loaded meanwhile)
//     sink:      a row leaving hot goes to warm; warm's victim, or the row itself, to the log

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/directory.h"
#include "kernels/policies/policy.h"
#include "runtime/base/carver.h"
#include "runtime/known_batches.h"
#include "runtime/layout.h"
#include "runtime/transit.h"

namespace rowtide {

enum class Place : uint8_t { kHot, kWarm, kLog };

// A record's way.  Hot slots count sets, then transit.  Moves run in the order of their list.
struct Move {
  Key key = 0;
  Place from = Place::kLog, to = Place::kLog;
  Slot source = kNoSlot, target = kNoSlot;
  uint32_t row = kSkipped;  // of the batch, if it is one that goes up
};

// Where place found a row, for the counters.
enum class Found : uint8_t { kHot, kWarm, kBelow };

// What place needs of a batch.
struct PlaceBatch {
  uint32_t step = 0;  // counted from the runtime's first
  const KnownBatch* known = nullptr;
  const uint32_t* occurrence_begin = nullptr;  // (rows + 1)
  Slot* slots = nullptr;                       // (rows) out: hot slot of each
  Found* found = nullptr;                      // (rows) out
  const uint8_t* refused = nullptr;  // (rows) admission says no; null: everyone is admitted
};

class GroupDirectory {
 public:
  GroupDirectory(const Layout& layout, uint32_t group, Carver& hbm, Carver& ddr);

  // Whether the batch fits if steps below `over` have ended; finds its rows.  Changes nothing that
  // place() or another probe() would see.
  bool probe(const PlaceBatch& batch, uint32_t over);
  // Takes back a probe() that is not followed by place().
  void forget();
  // Transit slots that the last probe() asked for, and that it could have.
  uint64_t demand() const { return demand_; }
  uint64_t had() const { return had_; }

  // The moves in their order; they stand until the next call.
  // REQUIRES: probe(batch, over) said true, and no other batch was probed since.
  std::span<const Move> place(const PlaceBatch& batch, uint32_t over);

  // The next use of these rows came into the known window.  REQUIRES: at most kForeseen of them.
  static constexpr uint32_t kForeseen = 256;
  void foresee(std::span<const Key> keys, uint32_t step);

  // Where the row is after all planned moves.
  struct Address {
    Place place;
    Slot slot;
  };
  Address find(Key key) const;

  // Calls visit(key, slot) for every row in a set or in transit.
  template <typename Visit>
  void for_each_hot(Visit&& visit) const {
    for_each_taken(hot_, [&](Slot slot) { visit(hot_.keys[slot], slot); });
    transit_.for_each([&](Key key, uint32_t i) { visit(key, transit_base_ + i); });
  }
  template <typename Visit>
  void for_each_warm(Visit&& visit) const {
    for_each_taken(warm_, [&](Slot slot) { visit(warm_.keys[slot], slot); });
  }
  // Rows of sets as they are saved and come back: visit(key, word, place), in slot order.
  template <typename Visit>
  void for_each_word(Visit&& visit) const {
    for_each_taken(hot_, [&](Slot s) { visit(hot_.keys[s], hot_.words[s], Place::kHot); });
    for_each_taken(warm_, [&](Slot s) { visit(warm_.keys[s], warm_.words[s], Place::kWarm); });
  }
  uint32_t tick() const { return tick_; }
  void resume(uint32_t tick) { tick_ = tick; }
  // Where the row stands now; kNoSlot if its set is full.  REQUIRES: it stands nowhere.
  Slot put_back(Key key, uint32_t word, Place place);
  // Takes rows out of the sets again.
  template <typename Keep>
  void keep_rows(Keep&& keep) {
    for_each_taken(hot_, [&](Slot slot) {
      if (!keep(Place::kHot, slot)) directory_take(hot_, slot);
    });
    for_each_taken(warm_, [&](Slot slot) {
      if (!keep(Place::kWarm, slot)) directory_take(warm_, slot);
    });
  }

  uint64_t transit_rows() const { return transit_rows_; }

 private:
  struct SetDemand {
    uint32_t hits = 0;  // ways that the batch uses
    uint32_t misses = 0;
    uint32_t forced = 0;  // misses that only transit can take
  };

  template <typename Visit>
  static void for_each_taken(const DirectoryView& view, Visit&& visit) {
    for (uint64_t s = 0; s < uint64_t{view.sets} * kWays; ++s) {
      if (view.tags[s] != kFreeTag) visit(static_cast<Slot>(s));
    }
  }
  // visit(begin, end): the batch's rows of this group, feature by feature.
  template <typename Visit>
  void for_each_range(const KnownBatch& batch, Visit&& visit) const;
  Touch touch(const PlaceBatch& batch, uint32_t row);
  void count_demand(const PlaceBatch& batch, uint32_t over);
  void mark_warm(const PlaceBatch& batch);
  void touch_hits(const PlaceBatch& batch);
  void empty_transit(const PlaceBatch& batch, uint32_t over);
  void age_ticks();
  void choose_slot(const PlaceBatch& batch, uint32_t miss, uint32_t over, uint64_t& spare);
  void name_slot(const PlaceBatch& batch, uint32_t miss);
  void move_up(const PlaceBatch& batch, uint32_t miss);
  Slot sink(Key key, uint32_t word, Slot source, uint32_t step);

  const Policy* policy_;
  std::vector<uint32_t> features_;  // of cached tables of this group
  uint64_t most_rows_;
  Slot transit_base_;
  DirectoryView hot_, warm_;
  Transit transit_;
  uint32_t tick_ = 0;
  uint64_t transit_rows_ = 0;

  // Scratch of one batch.
  SetDemand* set_demand_;   // (hot sets) all zero between batches
  uint32_t* misses_;        // (most_rows) rows, by first occurrence
  Key* miss_keys_;          // (most_rows) of misses_[i]
  Slot* warm_slot_;         // (most_rows) of misses_[i], or kNoSlot
  Slot* victim_slots_;      // (most_rows) hot slot of the victim of misses_[i], or kNoSlot
  Key* victim_keys_;        // (most_rows) of victims, once name_slot() was called
  uint32_t* victim_words_;  // (most_rows)
  uint32_t* expired_miss_;  // (transit slots) 1 + index into misses_ of an expired row that returns
  Move* moves_;             // (3 most_rows + 2 transit slots): a miss and its two victims; a row
                            // that leaves transit and its victim
  uint32_t move_count_ = 0;
  uint32_t miss_count_ = 0;
  uint64_t demand_ = 0, had_ = 0;
};

}  // namespace rowtide
