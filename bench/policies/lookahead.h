#pragma once
// lookahead — Belady as far as the window reaches, lru beyond.
//
// What has no use within the window goes first, least recent first; then the farthest use, of
// equal ones the lowest place.

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "bench/policies/textbook.h"

namespace rowtide::textbook {

class Lookahead : public Policy {
 public:
  explicit Lookahead(const Shape& shape) : window_(shape.window), entry_(shape.capacity) {}

  void insert(uint32_t place, const Use& use) override {
    entry_[place] = {.tick = ++tick_, .next_use = use.next_use};
    unknown_.emplace(tick_, place);
    if (use.next_use != kNever) beyond_.emplace(use.next_use, place);
  }
  void hit(uint32_t place, const Use& use) override {
    forget(place);
    insert(place, use);
  }
  uint32_t evict(uint64_t step, const MayGo& may_go) override {
    move_window(step);
    const uint32_t place = choose(may_go);
    forget(place);
    return place;
  }

 private:
  struct Entry {
    uint64_t tick = 0;
    uint64_t next_use = kNever;
  };

  // What the window has reached is known.
  void move_window(uint64_t step) {
    while (!beyond_.empty() && beyond_.begin()->first <= step + window_) {
      const auto [next_use, place] = *beyond_.begin();
      beyond_.erase(beyond_.begin());
      unknown_.erase(entry_[place].tick);
      known_.emplace(~next_use, place);
    }
  }
  uint32_t choose(const MayGo& may_go) const {
    for (const auto& [tick, place] : unknown_) {
      if (may_go(place)) return place;
    }
    auto farthest = known_.begin();
    while (!may_go(farthest->second)) ++farthest;
    return farthest->second;
  }
  void forget(uint32_t place) {
    unknown_.erase(entry_[place].tick);
    beyond_.erase({entry_[place].next_use, place});
    known_.erase({~entry_[place].next_use, place});
  }

  uint64_t window_;
  uint64_t tick_ = 0;
  std::vector<Entry> entry_;
  std::map<uint64_t, uint32_t> unknown_;            // tick, place
  std::set<std::pair<uint64_t, uint32_t>> beyond_;  // next use, place: also in unknown_
  std::set<std::pair<uint64_t, uint32_t>> known_;   // ~next use, place
};

}  // namespace rowtide::textbook
