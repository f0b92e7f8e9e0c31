#pragma once
// clock — a ring of marks and a hand; newcomers are unmarked.
//
// The hand passes over what may not go and leaves its mark; it stops behind the victim.

#include <vector>

#include "bench/policies/textbook.h"

namespace rowtide::textbook {

class Clock : public Policy {
 public:
  explicit Clock(const Shape& shape) : used_(shape.capacity) {}

  void insert(uint32_t place, const Use&) override { used_[place] = false; }
  void hit(uint32_t place, const Use&) override { used_[place] = true; }
  uint32_t evict(uint64_t, const MayGo& may_go) override {
    for (;;) {
      const uint32_t place = hand_;
      hand_ = (hand_ + 1) % static_cast<uint32_t>(used_.size());
      if (!may_go(place)) continue;
      if (!used_[place]) return place;
      used_[place] = false;
    }
  }

 private:
  std::vector<bool> used_;
  uint32_t hand_ = 0;
};

}  // namespace rowtide::textbook
