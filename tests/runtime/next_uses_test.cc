// NextUses beside a plain map, also where so many keys have one home that entries lie far behind
// it.

#include "runtime/next_uses.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "kernels/policies/policy.h"

namespace rowtide {
namespace {

constexpr uint32_t kMostRows = 60, kWindow = 9;

struct NextUsesTest : testing::Test {
  NextUsesTest() : layout_(make_layout()) {
    Carver measure;
    NextUses measured(layout_, measure, /*salt=*/0);
    memory_.resize(measure.used() / sizeof(uint64_t) + 8);
    auto* at =
        reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory_.data()) + 63) & ~63ull);
    Carver carver(at);
    uses_ = std::make_unique<NextUses>(layout_, carver, /*salt=*/0);
  }
  static Layout make_layout() {
    Layout layout;
    layout.policy = find_policy("lookahead");
    layout.known = kWindow;
    layout.placed = 1;
    layout.groups.resize(1);
    layout.groups[0].most_rows = kMostRows;
    return layout;
  }
  struct Stored {
    std::vector<Key> keys;
    std::vector<uint32_t> next;
    KnownBatch batch;
  };
  void enter(std::vector<Key> keys) {
    Stored& stored = window_.emplace_back();
    stored.keys = std::move(keys);
    stored.next.resize(stored.keys.size() + 1);
    stored.batch.step = first_ + window_.size() - 1;
    stored.batch.rows.keys = stored.keys.data();
    stored.batch.next = stored.next.data();
    foreseen_.clear();
    uses_->enter(stored.batch, 0, static_cast<uint32_t>(stored.keys.size()), batch_of(),
                 [&](std::span<const Key> some) { foreseen_.insert(some.begin(), some.end()); });
  }
  void leave() {
    Stored& stored = window_.front();
    uses_->leave(stored.batch, 0, static_cast<uint32_t>(stored.keys.size()), batch_of());
    window_.pop_front();
    ++first_;
  }
  std::function<KnownBatch&(uint32_t)> batch_of() {
    return [this](uint32_t step) -> KnownBatch& { return window_.at(step - first_).batch; };
  }
  // The next uses of all rows, and who was foreseen, as the batches say.
  void check() {
    std::set<Key> foreseen;
    for (Key key : window_.back().keys) {
      bool before = false;
      for (size_t w = 0; w + 1 < window_.size(); ++w) before |= has(w, key);
      if (!before) foreseen.insert(key);
    }
    EXPECT_EQ(foreseen_, foreseen);
    for (size_t w = 0; w < window_.size(); ++w) {
      for (size_t u = 0; u < window_[w].keys.size(); ++u) {
        size_t n = w + 1;
        while (n < window_.size() && !has(n, window_[w].keys[u])) ++n;
        const uint32_t next = n == window_.size() ? kNeverUsed : static_cast<uint32_t>(first_ + n);
        ASSERT_EQ(window_[w].next[u], next) << "step " << first_ + w << " row " << u;
      }
    }
  }
  bool has(size_t w, Key key) const {
    return std::ranges::find(window_[w].keys, key) != window_[w].keys.end();
  }
  void run(const std::vector<Key>& pool, uint32_t seed) {
    std::mt19937 random(seed);
    for (int step = 0; step < 400; ++step) {
      std::set<Key> keys;
      const uint32_t count = random() % (kMostRows + 1);
      while (keys.size() < count) keys.insert(pool[random() % pool.size()]);
      enter({keys.begin(), keys.end()});
      check();
      // The window has room for kWindow batches.
      if (window_.size() == kWindow || random() % 4 == 0) leave();
    }
    while (!window_.empty()) leave();
    enter({pool[0]});
    EXPECT_EQ(foreseen_, std::set<Key>{pool[0]}) << "entries were left behind";
    leave();
  }

  Layout layout_;
  std::vector<uint64_t> memory_;
  std::unique_ptr<NextUses> uses_;
  std::deque<Stored> window_;
  uint32_t first_ = 0;
  std::set<Key> foreseen_;
};

TEST_F(NextUsesTest, EqualsTheBatches) {
  std::vector<Key> pool;
  for (uint64_t row = 0; row < 500; ++row) pool.push_back(make_key(row % 3, row * row));
  run(pool, 1);
}

TEST_F(NextUsesTest, StepsMayWrap) {
  std::vector<Key> pool;
  for (uint64_t row = 0; row < 200; ++row) pool.push_back(make_key(1, row));
  first_ = (1u << 18) - 100;
  run(pool, 2);
}

// Keys of one fortieth of the homes: entries lie hundreds of places behind them.
TEST_F(NextUsesTest, CrowdedHomesAreOnlySlow) {
  std::vector<Key> pool;
  for (uint64_t row = 0; pool.size() < 450; ++row) {
    if (uses_->hash(make_key(0, row)) < ~uint64_t{0} / 40) pool.push_back(make_key(0, row));
  }
  run(pool, 3);
}

// The homes are the last ones, so that runs go round the end.
TEST_F(NextUsesTest, RunsGoRoundTheEnd) {
  std::vector<Key> pool;
  for (uint64_t row = 0; pool.size() < 450; ++row) {
    if (uses_->hash(make_key(0, row)) > ~uint64_t{0} / 40 * 39) pool.push_back(make_key(0, row));
  }
  run(pool, 4);
}

}  // namespace
}  // namespace rowtide
