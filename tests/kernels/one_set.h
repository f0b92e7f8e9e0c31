#pragma once
// OneSet — a policy of kernels/policies at work on a single set, for tests.
//
// It does what place does: it tells the policy of each use and asks for a victim when no way is
// free.  Every choice is checked: the victim may go, and nothing that may not go has changed.

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string_view>

#include "kernels/policies/policy.h"
#include "tests/kernels/guarded_directory.h"

namespace rowtide {

class OneSet {
 public:
  explicit OneSet(std::string_view policy, uint32_t ways = kWays)
      : policy_(find_policy(policy)),
        ways_(ways == kWays ? ~0u : (1u << ways) - 1),
        directory_(1, policy_->set_words) {}

  struct Outcome {
    bool hit = false;
    Slot slot = kNoSlot;  // none: nothing may go
    std::optional<Key> evicted;
  };
  // Uses a key; the touch's tick is set here.
  Outcome access(Key key, Touch use, uint32_t may_go = ~0u) {
    use.tick = ++tick_;
    Outcome outcome;
    outcome.slot = directory_find(view(), key);
    outcome.hit = outcome.slot != kNoSlot;
    if (outcome.hit) {
      policy_->hit(view(), outcome.slot, use);
      return outcome;
    }
    if (const uint32_t free = directory_free(view(), 0) & ways_; free != 0) {
      outcome.slot = static_cast<Slot>(__builtin_ctz(free));
    } else if (may_go &= ways_; may_go != 0) {
      outcome.slot = victim(may_go, use.step);
      outcome.evicted = view().keys[outcome.slot];
      directory_take(view(), outcome.slot);
    } else {
      return outcome;
    }
    directory_put(view(), outcome.slot, key, word_of_newcomer, use.step + 1);
    policy_->insert(view(), outcome.slot, use);
    return outcome;
  }

  Slot victim(uint32_t may_go, uint32_t step) {
    const auto before = words();
    const Slot slot = policy_->victim(view(), 0, may_go, step);
    EXPECT_LT(slot, kWays);
    EXPECT_NE(may_go >> slot % kWays & 1, 0u) << "the victim may not go";
    for (uint32_t way = 0; way < kWays; ++way) {
      if ((may_go >> way & 1) == 0) {
        EXPECT_EQ(view().words[way], before[way]) << "way " << way << " may not go";
      }
    }
    return slot;
  }

  void foresee(Key key, uint32_t step) {
    const Slot slot = directory_find(view(), key);
    if (slot != kNoSlot && policy_->foresees) policy_->foresee(view(), slot, step);
  }
  void age(uint32_t by) {
    policy_->age(view(), by);
    tick_ -= by;
  }

  void resume() {
    for (uint32_t way = 0; way < kWays; ++way) {
      view().words[way] = policy_->resumed(view().words[way], tick_);
    }
  }

  const DirectoryView& view() const { return directory_.view; }
  const Policy& policy() const { return *policy_; }
  uint32_t tick() const { return tick_; }
  void skip_ticks(uint32_t count) { tick_ += count; }
  std::array<uint32_t, kWays> words() const {
    std::array<uint32_t, kWays> words;
    std::copy_n(view().words, kWays, words.begin());
    return words;
  }
  bool guards_intact() const { return directory_.guards_intact(); }

  uint32_t word_of_newcomer = 0;  // not 0: it comes from another tier

 private:
  const Policy* policy_;
  uint32_t ways_;
  GuardedDirectory directory_;
  uint32_t tick_ = 0;
};

}  // namespace rowtide
