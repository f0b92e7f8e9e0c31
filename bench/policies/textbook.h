#pragma once
// textbook — eviction policies as a textbook has them, for a cache of any number of places.
//
// They are what kernels/policies must equal on one set, and what `rowtide-bench policy` replays.
// Written with the standard containers and for reading; nothing here is shared with the kernels.
// A cache looks keys up and gives out places; a policy only orders places and knows no key.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rowtide::textbook {

inline constexpr uint64_t kNever = ~uint64_t{0};

// One use of a key by a step.  A trace of single requests has one step a request.
struct Use {
  uint64_t key = 0;
  uint64_t step = 0;
  uint64_t next_use = kNever;  // the next step that uses the key
  uint64_t count = 1;          // how often the step uses it
};

using MayGo = std::function<bool(uint32_t place)>;

class Policy {
 public:
  virtual ~Policy() = default;
  virtual void insert(uint32_t place, const Use& use) = 0;
  virtual void hit(uint32_t place, const Use& use) = 0;
  // Chooses a place that may go, and forgets what it holds.  REQUIRES: there is one.
  virtual uint32_t evict(uint64_t step, const MayGo& may_go) = 0;
};

// What a policy is made of.
struct Shape {
  uint32_t capacity = 0;
  uint64_t window = 0;  // lookahead: at step s the uses of steps up to s + window are known
};

// Null if there is none of that name.
std::unique_ptr<Policy> make_policy(std::string_view name, const Shape& shape);
std::span<const std::string_view> policy_names();

// A fully associative cache of single-sized entries.  A newcomer takes the lowest free place.
class Cache {
 public:
  // REQUIRES: there is a policy of that name; capacity > 0.
  Cache(std::string_view policy, const Shape& shape);

  struct Outcome {
    bool hit = false;
    uint32_t place = 0;
    std::optional<uint64_t> evicted;  // the key that went
  };
  // Uses a key; on a miss it comes in, if need be for another one that may go.
  Outcome access(
      const Use& use, const MayGo& may_go = [](uint32_t) { return true; });

  bool contains(uint64_t key) const { return place_of_.contains(key); }

 private:
  std::unique_ptr<Policy> policy_;
  std::unordered_map<uint64_t, uint32_t> place_of_;
  std::vector<uint64_t> key_in_;
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> free_;
};

// For each request the number of the next one for the same key, or kNever.
std::vector<uint64_t> next_uses(std::span<const uint64_t> trace);

// The hits of a trace of single requests.
uint64_t count_hits(std::string_view policy, const Shape& shape, std::span<const uint64_t> trace);

}  // namespace rowtide::textbook
