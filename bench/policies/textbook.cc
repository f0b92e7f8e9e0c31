#include "bench/policies/textbook.h"

#include <algorithm>
#include <array>

#include "bench/policies/clock.h"
#include "bench/policies/lfu.h"
#include "bench/policies/lookahead.h"
#include "bench/policies/lru.h"

namespace rowtide::textbook {
namespace {

struct Named {
  std::string_view name;
  std::unique_ptr<Policy> (*make)(const Shape&);
};

template <typename P>
constexpr Named named(std::string_view name) {
  return {name,
          [](const Shape& shape) -> std::unique_ptr<Policy> { return std::make_unique<P>(shape); }};
}

constexpr std::array kPolicies = {named<Clock>("clock"), named<Lfu>("lfu"),
                                  named<Lookahead>("lookahead"), named<Lru>("lru")};
constexpr auto kNames = [] {
  std::array<std::string_view, kPolicies.size()> names;
  std::ranges::transform(kPolicies, names.begin(), &Named::name);
  return names;
}();

}  // namespace

std::unique_ptr<Policy> make_policy(std::string_view name, const Shape& shape) {
  const auto found = std::ranges::find(kPolicies, name, &Named::name);
  return found == kPolicies.end() ? nullptr : found->make(shape);
}

std::span<const std::string_view> policy_names() { return kNames; }

Cache::Cache(std::string_view policy, const Shape& shape)
    : policy_(make_policy(policy, shape)), key_in_(shape.capacity) {
  for (uint32_t place = 0; place < shape.capacity; ++place) free_.push(place);
}

Cache::Outcome Cache::access(const Use& use, const MayGo& may_go) {
  Outcome outcome;
  if (const auto found = place_of_.find(use.key); found != place_of_.end()) {
    policy_->hit(found->second, use);
    return {.hit = true, .place = found->second};
  }
  if (free_.empty()) {
    outcome.place = policy_->evict(use.step, may_go);
    outcome.evicted = key_in_[outcome.place];
    place_of_.erase(*outcome.evicted);
  } else {
    outcome.place = free_.top();
    free_.pop();
  }
  key_in_[outcome.place] = use.key;
  place_of_[use.key] = outcome.place;
  policy_->insert(outcome.place, use);
  return outcome;
}

std::vector<uint64_t> next_uses(std::span<const uint64_t> trace) {
  std::vector<uint64_t> next(trace.size(), kNever);
  std::unordered_map<uint64_t, uint64_t> latest;
  for (uint64_t i = 0; i < trace.size(); ++i) {
    const auto [seen, is_new] = latest.try_emplace(trace[i], i);
    if (!is_new) next[seen->second] = i;
    seen->second = i;
  }
  return next;
}

uint64_t count_hits(std::string_view policy, const Shape& shape, std::span<const uint64_t> trace) {
  Cache cache(policy, shape);
  const std::vector<uint64_t> next = next_uses(trace);
  uint64_t hits = 0;
  for (uint64_t i = 0; i < trace.size(); ++i) {
    hits += cache.access({.key = trace[i], .step = i, .next_use = next[i]}).hit;
  }
  return hits;
}

}  // namespace rowtide::textbook
