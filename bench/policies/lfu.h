#pragma once
// lfu — fewest uses go first; of equal counts the least recent step, then the lowest place.
//
// Counts stop at 255; when one gets there, all are halved.  They are kept only while resident.

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "bench/policies/textbook.h"

namespace rowtide::textbook {

class Lfu : public Policy {
 public:
  explicit Lfu(const Shape& shape) : entry_(shape.capacity) {}

  void insert(uint32_t place, const Use& use) override { count(place, 0, use); }
  void hit(uint32_t place, const Use& use) override {
    const uint64_t uses = std::get<0>(entry_[place]);
    order_.erase(entry_[place]);
    count(place, uses, use);
  }
  uint32_t evict(uint64_t, const MayGo& may_go) override {
    auto least = order_.begin();
    while (!may_go(std::get<2>(*least))) ++least;
    const uint32_t place = std::get<2>(*least);
    order_.erase(least);
    return place;
  }

 private:
  using Entry = std::tuple<uint64_t, uint64_t, uint32_t>;  // count, step, place

  void count(uint32_t place, uint64_t before, const Use& use) {
    const uint64_t uses = std::min<uint64_t>(before + use.count, 255);
    entry_[place] = {uses, use.step, place};
    order_.insert(entry_[place]);
    if (uses == 255) halve();
  }
  void halve() {
    std::set<Entry> halved;
    for (auto [uses, step, place] : order_) {
      entry_[place] = {uses / 2, step, place};
      halved.insert(entry_[place]);
    }
    order_.swap(halved);
  }

  std::vector<Entry> entry_;
  std::set<Entry> order_;
};

}  // namespace rowtide::textbook
