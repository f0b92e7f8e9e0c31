#include "bench/policies/belady.h"

#include <set>

#include "bench/policies/textbook.h"

namespace rowtide::textbook {

// A resident key is known by its next use: no two keys share one.  Keys that are never used again
// are the first to go and need no name, so they are only counted.
uint64_t most_hits(std::span<const uint64_t> trace, uint32_t capacity, Bypass bypass) {
  if (capacity == 0) return 0;
  const std::vector<uint64_t> next = next_uses(trace);
  std::set<uint64_t> resident;
  uint64_t dead = 0, hits = 0;
  for (uint64_t i = 0; i < trace.size(); ++i) {
    if (resident.erase(i) == 1) {
      ++hits;
    } else if (resident.size() + dead == capacity) {
      if (dead > 0) {
        --dead;
      } else if (bypass == Bypass::kYes && next[i] > *resident.rbegin()) {
        continue;
      } else {
        resident.erase(std::prev(resident.end()));
      }
    }
    if (next[i] == kNever) {
      ++dead;
    } else {
      resident.insert(next[i]);
    }
  }
  return hits;
}

}  // namespace rowtide::textbook
