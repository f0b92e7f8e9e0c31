#pragma once
// Schedule — the order of the caller's calls, and when place may go on.
//
// It knows step numbers only, counted from the runtime's first.  place(j) runs once every step
// below j - P has been ended by the caller, and sees exactly the keys up to j + L - P: it waits
// until they are known, or the caller has called forward of j or of a later step, or has said that
// no batch follows; the window then ends at what was known at that call (design.md).
//
// Threads: under the engine's mutex.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace rowtide {

class Schedule {
 public:
  Schedule(uint32_t known, uint32_t placed, uint32_t open_steps, bool foresees)
      : l_(known), p_(placed), open_steps_(open_steps), foresees_(foresees), steps_(known + 1) {}

  // The number of the runtime's first step, for messages.
  void set_first(uint64_t first) { first_ = first; }

  uint32_t known() const { return known_; }
  uint32_t placed() const { return placed_; }
  uint32_t oldest_open() const { return oldest_open_; }  // all steps below have ended
  uint32_t open() const { return open_; }                // forwarded and not ended

  // A batch may be submitted if L are not ended beyond the oldest, and its entry of the ring is
  // free: that of a step that was dropped unseen is so once it was placed.
  bool full() const { return known_ - oldest_open_ > l_; }
  bool entry_in_use() const { return known_ - std::min(oldest_open_, placed_) > l_; }
  uint32_t submit() {
    steps_[known_ % steps_.size()] = {};
    return known_++;
  }

  // Every batch known now ends the windows of those not yet placed.
  void end_of_input() { end_windows(known_); }

  bool forwarded(uint32_t step) const { return steps_[step % steps_.size()].forwarded; }

  // The first forward of a step.  Errors: kBusy.
  Status forward(uint32_t step) {
    Entry& entry = steps_[step % steps_.size()];
    for (uint32_t j = oldest_open_; j < step; ++j) {
      const Entry& before = steps_[j % steps_.size()];
      if (before.ended || before.forwarded) continue;
      return {Code::kBusy, name(j) + " was neither forwarded nor dropped"};
    }
    // Counted from the oldest, also if a step after it has ended: place lowers P to open_steps - 1
    // at the least, and then waits for all steps before that.
    if (step - oldest_open_ >= open_steps_) {
      return {Code::kBusy,
              name(oldest_open_) + " is not ended, open_steps is " + std::to_string(open_steps_)};
    }
    end_windows(step + 1);
    entry.forwarded = true;
    ++open_;
    return {};
  }

  void end(uint32_t step) {
    Entry& entry = steps_[step % steps_.size()];
    entry.ended = true;
    open_ -= entry.forwarded;
    while (oldest_open_ < known_ && steps_[oldest_open_ % steps_.size()].ended) ++oldest_open_;
  }

  bool has_unplaced() const { return placed_ < known_; }
  // Whether placed() may be placed with P lowered to p.
  bool ready(uint32_t p) const {
    const uint32_t j = placed_;
    return oldest_open_ + p >= j &&
           (!foresees_ || known_ > window(j) || steps_[j % steps_.size()].known_at != 0);
  }
  // One past the last step whose keys place(placed()) sees.
  uint32_t window_end() const {
    const uint32_t known_at = steps_[placed_ % steps_.size()].known_at;
    return std::min(window(placed_) + 1, known_at != 0 ? known_at : known_);
  }
  void place() { ++placed_; }

 private:
  struct Entry {
    uint32_t known_at = 0;  // batches known when forward of this or a later step was called; 0: not
    bool forwarded = false, ended = false;
  };

  std::string name(uint32_t step) const { return "step " + std::to_string(first_ + step); }
  uint32_t window(uint32_t j) const { return j + l_ - p_; }
  void end_windows(uint32_t before) {
    for (uint32_t j = placed_; j < before; ++j) {
      uint32_t& known_at = steps_[j % steps_.size()].known_at;
      if (known_at == 0) known_at = known_;
    }
  }

  uint32_t l_, p_, open_steps_;
  bool foresees_;
  uint64_t first_ = 0;
  std::vector<Entry> steps_;  // a ring, by step
  uint32_t known_ = 0, placed_ = 0, oldest_open_ = 0, open_ = 0;
};

}  // namespace rowtide
