#pragma once
// placement — who stands where after all planned moves, as plainly as it can be said.
//
// A transcription of the executable model's directory into C++, with 32 ways and the hash of
// DirectoryView.  The runtime's place must plan the same moves, one by one.  A pure function of
// batches and directories.  Policies: lru, clock, lookahead.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/directory.h"

namespace rowtide::reference {

enum class Tier { kHot, kTransit, kWarm, kLog };

struct Address {
  Tier tier = Tier::kLog;
  uint32_t slot = 0;  // of its tier; 0 in the log
  bool operator==(const Address&) const = default;
};

struct PlannedMove {
  Key key = 0;
  Address source, target;
  bool operator==(const PlannedMove&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Address& address) {
  constexpr const char* kNames[] = {"hot", "transit", "warm", "log"};
  out << kNames[static_cast<int>(address.tier)];
  return address.tier == Tier::kLog ? out : out << ' ' << address.slot;
}
inline std::ostream& operator<<(std::ostream& out, const PlannedMove& move) {
  return out << move.key << ": " << move.source << " to " << move.target;
}

inline constexpr uint64_t kNotUsedAgain = ~uint64_t{0};

// What place is told of a batch: distinct keys of the group by first occurrence.
struct PlaceStep {
  int64_t step = 0;
  std::vector<Key> keys;
  int64_t ahead = 0;                      // P for this step: steps below step - P have ended
  std::function<uint64_t(Key)> next_use;  // within the known window, else kNotUsedAgain
  std::function<bool(Key)> refused;       // admission says no

  int64_t over() const { return step - ahead; }
};

struct PlacementShape {
  uint32_t hot_sets = 0, warm_sets = 0, transit_slots = 0;
  uint64_t hot_salt = 0, warm_salt = 0;
  std::string policy = "lru";
};

// A set-associative directory: slot i belongs to set i / 32.
struct TierDirectory {
  struct Entry {
    std::optional<Key> key;
    int64_t last = -1;  // the last step that uses the slot
    uint64_t word = 0;  // the tick of the last use, or the mark of clock; travels with the record
  };

  TierDirectory(uint32_t sets, uint64_t salt, uint32_t slots)
      : hash{.sets = sets, .salt = salt}, entries(slots), hands(sets) {}

  uint32_t set_of(Key key) const { return hash.set_of(key); }
  std::vector<uint32_t> slots_of(Key key) const {
    if (hash.sets == 0) return {};
    std::vector<uint32_t> slots(kWays);
    for (uint32_t way = 0; way < kWays; ++way) slots[way] = set_of(key) * kWays + way;
    return slots;
  }
  std::vector<uint32_t> room_for(Key key) const {
    std::vector<uint32_t> room = slots_of(key);
    std::erase_if(room, [&](uint32_t slot) { return entries[slot].key.has_value(); });
    return room;
  }
  bool holds(Key key) const { return where.contains(key); }
  void put(uint32_t slot, Key key, int64_t last, uint64_t word) {
    entries[slot] = {key, last, word};
    where[key] = slot;
  }
  Entry take(uint32_t slot) {
    const Entry taken = entries[slot];
    where.erase(*taken.key);
    entries[slot].key.reset();
    return taken;
  }

  DirectoryView hash;  // of no memory: only for set_of
  std::vector<Entry> entries;
  std::vector<uint32_t> hands;  // clock: the way of each set that is asked first
  std::map<Key, uint32_t> where;
};

// All cached tables of one record size.
class GroupPlacement {
 public:
  explicit GroupPlacement(const PlacementShape& shape)
      : policy_(shape.policy),
        hot_(shape.hot_sets, shape.hot_salt, shape.hot_sets * kWays),
        warm_(shape.warm_sets, shape.warm_salt, shape.warm_sets * kWays),
        transit_(0, 0, shape.transit_slots) {}

  Address address(Key key) const {
    if (hot_.holds(key)) return {Tier::kHot, hot_.where.at(key)};
    if (transit_.holds(key)) return {Tier::kTransit, transit_.where.at(key)};
    if (warm_.holds(key)) return {Tier::kWarm, warm_.where.at(key)};
    return {};
  }

  // Transit slots that full sets force, by set, and those that can be had.
  struct Demand {
    std::map<uint32_t, uint64_t> forced;
    uint64_t forced_count = 0, had = 0;
    bool fits() const { return forced_count <= had; }
  };
  Demand demand(const PlaceStep& batch) const {
    Demand demand;
    for (const auto& slot : transit_.entries) {
      demand.had += !slot.key || slot.last < batch.over();
    }
    const std::set<Key> keys(batch.keys.begin(), batch.keys.end());
    std::map<uint32_t, std::vector<Key>> misses;
    for (const Key key : batch.keys) {
      const bool in_flight = transit_.holds(key) && last_use_in_transit(key) >= batch.over();
      if (!hot_.holds(key) && !in_flight) misses[hot_.set_of(key)].push_back(key);
    }
    for (const auto& [set, missing] : misses) {
      const uint64_t room =
          hot_.room_for(missing[0]).size() + may_go_in_hot(missing[0], batch, keys).size();
      demand.forced[set] = missing.size() - std::min<uint64_t>(missing.size(), room);
      demand.forced_count += demand.forced[set];
    }
    return demand;
  }

  // Changes the directories and appends to moves, in their order.  REQUIRES: demand() fits.
  void place(const PlaceStep& batch, std::vector<PlannedMove>& moves) {
    Placing placing{batch, {batch.keys.begin(), batch.keys.end()}, demand(batch), 0, moves};
    placing.spare = placing.demand.had - placing.demand.forced_count;
    // 1. Expired transit slots are emptied, also of rows of this batch.
    for (uint32_t slot = 0; slot < transit_.entries.size(); ++slot) {
      const auto& entry = transit_.entries[slot];
      if (entry.key && entry.last < batch.over()) sink({Tier::kTransit, slot}, placing);
    }
    // 2. Hits first; a row in transit stays there while a step in flight uses it.
    std::vector<Key> misses;
    for (const Key key : batch.keys) {
      if (hot_.holds(key)) {
        touch(hot_.entries[hot_.where[key]], batch.step, /*mark=*/1);
      } else if (transit_.holds(key)) {
        touch(transit_.entries[transit_.where[key]], batch.step, /*mark=*/1);
      } else {
        misses.push_back(key);
      }
    }
    // 3. Misses by first occurrence.
    for (const Key key : misses) place_miss(key, placing);
  }

 private:
  struct Placing {
    const PlaceStep& batch;
    std::set<Key> keys;
    Demand demand;
    uint64_t spare;  // transit slots that full sets do not need
    std::vector<PlannedMove>& moves;
  };

  int64_t last_use_in_transit(Key key) const {
    return transit_.entries[transit_.where.at(key)].last;
  }

  void touch(TierDirectory::Entry& entry, int64_t step, uint64_t mark) {
    ++tick_;
    entry.last = step;
    entry.word = policy_ == "clock" ? mark : tick_;
  }

  std::vector<uint32_t> may_go_in_hot(Key key, const PlaceStep& batch,
                                      const std::set<Key>& keys) const {
    std::vector<uint32_t> may_go = hot_.slots_of(key);
    std::erase_if(may_go, [&](uint32_t slot) {
      const auto& entry = hot_.entries[slot];
      return !entry.key || keys.contains(*entry.key) || entry.last >= batch.over();
    });
    return may_go;
  }

  void place_miss(Key key, Placing& placing) {
    const PlaceStep& batch = placing.batch;
    uint64_t& forced = placing.demand.forced[hot_.set_of(key)];
    const auto room = hot_.room_for(key);
    const auto may_go = may_go_in_hot(key, batch, placing.keys);
    // Without transit slots that full sets do not need, nobody is refused.
    const bool refuse = batch.refused(key) && (forced > 0 || placing.spare > 0);
    Address target;
    if (refuse || (room.empty() && may_go.empty())) {
      --(forced > 0 ? forced : placing.spare);
      target = {Tier::kTransit, lowest_free_transit()};
    } else if (!room.empty()) {
      target = {Tier::kHot, room[0]};
    } else {
      target = {Tier::kHot, victim(hot_, may_go, batch)};
      sink(target, placing);
    }
    const Address source = address(key);
    const uint64_t word = source.tier == Tier::kWarm ? warm_.take(source.slot).word : 0;
    TierDirectory& tier = target.tier == Tier::kHot ? hot_ : transit_;
    tier.put(target.slot, key, batch.step, word);
    touch(tier.entries[target.slot], batch.step, /*mark=*/0);
    placing.moves.push_back({key, source, target});
  }

  uint32_t lowest_free_transit() const {
    const auto free = std::ranges::find_if(transit_.entries, [](auto& e) { return !e.key; });
    return static_cast<uint32_t>(free - transit_.entries.begin());
  }

  // Hot or transit goes down to warm; a warm victim, or the row itself if warm has no place, to
  // the log.  Rows of the batch are no warm victims.
  void sink(Address source, Placing& placing) {
    const auto gone = (source.tier == Tier::kHot ? hot_ : transit_).take(source.slot);
    const Key key = *gone.key;
    auto room = warm_.room_for(key);
    if (room.empty()) {
      auto may_go = warm_.slots_of(key);
      std::erase_if(may_go,
                    [&](uint32_t s) { return placing.keys.contains(*warm_.entries[s].key); });
      if (may_go.empty()) {
        placing.moves.push_back({key, source, {}});
        return;
      }
      room = {victim(warm_, may_go, placing.batch)};
      placing.moves.push_back({*warm_.take(room[0]).key, {Tier::kWarm, room[0]}, {}});
    }
    warm_.put(room[0], key, /*last=*/-1, gone.word);
    placing.moves.push_back({key, source, {Tier::kWarm, room[0]}});
  }

  // The slot to empty among may_go, all of one set and in ascending order.
  uint32_t victim(TierDirectory& tier, const std::vector<uint32_t>& may_go,
                  const PlaceStep& batch) const {
    if (policy_ == "clock") return sweep(tier, may_go);
    // Least recent first.  lookahead: before that, what has no known use, then the farthest; of
    // known uses the lowest slot.
    const auto order = [&](uint32_t slot) {
      const auto& entry = tier.entries[slot];
      const uint64_t use = policy_ == "lookahead" ? batch.next_use(*entry.key) : kNotUsedAgain;
      return std::tuple(~use, use == kNotUsedAgain ? entry.word : 0, slot);
    };
    return *std::ranges::min_element(may_go, {}, order);
  }

  static uint32_t sweep(TierDirectory& tier, const std::vector<uint32_t>& may_go) {
    const uint32_t set = may_go[0] / kWays;
    uint32_t& hand = tier.hands[set];
    for (;; hand = (hand + 1) % kWays) {
      const uint32_t slot = set * kWays + hand;
      if (!std::ranges::binary_search(may_go, slot)) continue;
      if (tier.entries[slot].word == 0) {
        hand = (hand + 1) % kWays;
        return slot;
      }
      tier.entries[slot].word = 0;  // spared once
    }
  }

  std::string policy_;
  TierDirectory hot_, warm_;
  TierDirectory transit_;  // only its entries: no set, no policy
  uint64_t tick_ = 0;
};

// The greatest P in [least, most] with which the batch fits in every group, or none.  Reads only.
// `batches[g]` is what group g is told; its `ahead` is set to each P in turn.
inline std::optional<int64_t> choose_ahead(const std::vector<GroupPlacement>& groups,
                                           std::vector<PlaceStep> batches, int64_t most,
                                           int64_t least) {
  for (int64_t p = most; p >= least; --p) {
    bool fits = true;
    for (size_t g = 0; g < groups.size(); ++g) {
      batches[g].ahead = p;
      fits = fits && groups[g].demand(batches[g]).fits();
    }
    if (fits) return p;
  }
  return std::nullopt;
}

}  // namespace rowtide::reference
