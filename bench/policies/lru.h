#pragma once
// lru — a list in the order of use; the oldest that may go goes.

#include <list>
#include <vector>

#include "bench/policies/textbook.h"

namespace rowtide::textbook {

class Lru : public Policy {
 public:
  explicit Lru(const Shape& shape) : in_order_(shape.capacity) {}

  void insert(uint32_t place, const Use&) override {
    in_order_[place] = order_.insert(order_.end(), place);
  }
  void hit(uint32_t place, const Use&) override {
    order_.splice(order_.end(), order_, in_order_[place]);
  }
  uint32_t evict(uint64_t, const MayGo& may_go) override {
    auto oldest = order_.begin();
    while (!may_go(*oldest)) ++oldest;
    const uint32_t place = *oldest;
    order_.erase(oldest);
    return place;
  }

 private:
  std::list<uint32_t> order_;  // oldest first
  std::vector<std::list<uint32_t>::iterator> in_order_;
};

}  // namespace rowtide::textbook
