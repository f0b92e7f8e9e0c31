// The moves of GroupDirectory are those of tests/reference/placement.h, one by one.

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "runtime/base/host_arena.h"
#include "runtime/place.h"
#include "tests/reference/placement.h"

namespace rowtide {
namespace {

using reference::kNotUsedAgain;
using reference::PlannedMove;
using reference::Tier;

// A random shape, and batches that crowd sets, share rows and are now and then too large.
struct Case {
  // `all_fit`: enough transit slots for any batch.
  Case(uint32_t seed, bool all_fit) : random(seed) {
    hot_sets = pick({1, 2, 3});
    warm_sets = pick({0, 1, 2, 4});
    open_steps = pick({1, 2, 3});
    most_ahead = open_steps - 1 + pick({0, 1, 2, 4});
    window = pick({0, 1, 3, 8});
    largest = pick({20, 70, 150});
    const uint32_t least = largest * open_steps > kWays ? largest * open_steps - kWays : 0;
    transit_slots = pick({least, all_fit ? least : 8, largest * (most_ahead + 1)});
    refused_percent = pick({0, 0, 20, 70});
    key_count = pick({60, 200, 400});
    for (auto& batch : steps) batch = draw_batch();
    for (size_t s = 1; s < steps.size(); ++s) share(steps[s - 1], steps[s]);
  }

  uint32_t pick(std::vector<uint32_t> of) { return of[random() % of.size()]; }
  // Distinct keys of two tables, those of the first before the others, as features see them.
  std::vector<Key> draw_batch() {
    std::vector<Key> batch;
    const uint32_t count = random() % (largest + 1);
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t r = random() % key_count;
      batch.push_back(make_key(r % 2, i % 3 == 0 ? r * r / key_count : r));
    }
    return distinct(batch);
  }
  void share(const std::vector<Key>& before, std::vector<Key>& batch) {
    for (size_t i = 0; i < before.size() && random() % 8 != 0; i += 3) batch.push_back(before[i]);
    batch = distinct(batch);
    if (batch.size() > largest) batch.resize(largest);
  }
  static std::vector<Key> distinct(std::vector<Key> keys) {
    std::set<Key> seen;
    std::erase_if(keys, [&](Key key) { return !seen.insert(key).second; });
    std::ranges::stable_sort(keys, {}, table_of);
    return keys;
  }

  bool refused(Key key, uint64_t step) const {
    return mix64(key + step * 77) % 100 < refused_percent;
  }
  // The next step of the window after `step` that uses the key.
  uint64_t next_use(Key key, uint64_t step) const {
    for (uint64_t s = step + 1; s <= step + window && s < steps.size(); ++s) {
      if (std::ranges::find(steps[s], key) != steps[s].end()) return s;
    }
    return kNotUsedAgain;
  }

  std::mt19937 random;
  uint32_t hot_sets, warm_sets, transit_slots, open_steps, most_ahead, window, largest;
  uint32_t refused_percent, key_count;
  std::vector<std::vector<Key>> steps = std::vector<std::vector<Key>>(50);
};

// The group's directory over memory of its own, and the arrays of the batch it places.
class Placed {
 public:
  Placed(const Case& c, const Policy* policy) : case_(c) {
    layout_.policy = policy;
    layout_.groups = {{.most_rows = c.largest,
                       .hot_sets = c.hot_sets,
                       .warm_sets = c.warm_sets,
                       .transit_slots = c.transit_slots}};
    layout_.tables.resize(2);
    layout_.features = {{.table = 0}, {.table = 1}};
    Carver hbm_size, ddr_size;
    GroupDirectory(layout_, 0, hbm_size, ddr_size);
    hbm_ = HostArena::reserve(hbm_size.used(), "hbm").value();
    ddr_ = HostArena::reserve(ddr_size.used(), "ddr").value();
    Carver hbm(hbm_.bytes()), ddr(ddr_.bytes());
    directory = std::make_unique<GroupDirectory>(layout_, 0, hbm, ddr);
  }

  // What the step brings into the window: rows that no step from it on was known to use.
  void enter(uint32_t step) {
    const uint32_t first = step == 0 ? 0 : step + case_.window;
    for (uint32_t s = first; s <= step + case_.window && s < case_.steps.size(); ++s) {
      for (const Key key : case_.steps[s]) {
        const auto uses_key = [&](const auto& batch) {
          return std::ranges::find(batch, key) != batch.end();
        };
        const auto begin = case_.steps.begin();
        if (std::none_of(begin + step, begin + s, uses_key)) directory->foresee({&key, 1}, s);
      }
    }
  }

  PlaceBatch batch(uint32_t step) {
    keys_ = case_.steps[step];
    const auto rows = static_cast<uint32_t>(keys_.size());
    next_.clear(), refused_.clear(), begin_.clear();
    for (const Key key : keys_) {
      const uint64_t next = case_.next_use(key, step);
      next_.push_back(next == kNotUsedAgain ? kNeverUsed : static_cast<uint32_t>(next));
      refused_.push_back(case_.refused(key, step));
    }
    for (uint32_t i = 0; i <= rows; ++i) begin_.push_back(i);
    slots_.assign(rows, kNoSlot);
    found_.assign(rows, Found::kHot);
    const auto second = std::ranges::find(keys_, 1u, table_of) - keys_.begin();
    feature_rows_ = {0, static_cast<uint32_t>(second), rows};
    known_.step = step;
    known_.rows = {.count = rows, .keys = keys_.data(), .feature_rows = feature_rows_.data()};
    known_.next = layout_.policy->foresees ? next_.data() : nullptr;
    return {step, &known_, begin_.data(), slots_.data(), found_.data(), refused_.data()};
  }

  reference::Address address(Place place, Slot slot) const {
    const Slot transit = layout_.groups[0].transit_base();
    if (place == Place::kLog) return {};
    if (place == Place::kWarm) return {Tier::kWarm, slot};
    return slot < transit ? reference::Address{Tier::kHot, slot}
                          : reference::Address{Tier::kTransit, slot - transit};
  }

  std::unique_ptr<GroupDirectory> directory;

 private:
  const Case& case_;
  Layout layout_;
  HostArena hbm_, ddr_;
  KnownBatch known_;
  std::vector<Key> keys_;
  std::vector<uint32_t> next_, begin_, feature_rows_;
  std::vector<uint8_t> refused_;
  std::vector<Slot> slots_;
  std::vector<Found> found_;
};

// One case by both, step by step.
class Pair {
 public:
  Pair(const Case& c, const char* policy)
      : case_(c),
        placed_(c, find_policy(policy)),
        expected_({reference::GroupPlacement({c.hot_sets, c.warm_sets, c.transit_slots,
                                              /*hot_salt=*/11, /*warm_salt=*/77, policy})}) {}

  void run(uint32_t step) {
    placed_.enter(step);
    reference::PlaceStep plan{
        .step = step,
        .keys = case_.steps[step],
        .next_use = [&](Key key) { return case_.next_use(key, step); },
        .refused = [&](Key key) { return case_.refused(key, step); },
    };
    const PlaceBatch batch = placed_.batch(step);
    const auto ahead = choose_ahead(batch);
    ASSERT_EQ(ahead, reference::choose_ahead(expected_, {plan}, case_.most_ahead, least_ahead()));
    if (!ahead) {
      ++too_large;
      return;
    }
    lowered += *ahead < case_.most_ahead;
    plan.ahead = *ahead;
    std::vector<PlannedMove> wanted;
    expected_[0].place(plan, wanted);
    ASSERT_EQ(moves_of(batch, *ahead), wanted);
    move_count += wanted.size();
    for (uint32_t u = 0; u < plan.keys.size(); ++u) check_address(plan.keys[u], batch.slots[u]);
  }

  uint64_t move_count = 0, lowered = 0, too_large = 0;

 private:
  int64_t least_ahead() const { return case_.open_steps - 1; }
  static uint32_t over(const PlaceBatch& batch, int64_t ahead) {
    return static_cast<uint32_t>(std::max<int64_t>(0, batch.step - ahead));
  }
  std::optional<int64_t> choose_ahead(const PlaceBatch& batch) {
    for (int64_t p = case_.most_ahead; p >= least_ahead(); --p) {
      if (placed_.directory->probe(batch, over(batch, p))) return p;
    }
    return std::nullopt;
  }
  std::vector<PlannedMove> moves_of(const PlaceBatch& batch, int64_t ahead) {
    std::vector<PlannedMove> planned;
    for (const Move& move : placed_.directory->place(batch, over(batch, ahead))) {
      planned.push_back({move.key, placed_.address(move.from, move.source),
                         placed_.address(move.to, move.target)});
    }
    return planned;
  }
  void check_address(Key key, Slot slot) const {
    const auto expected = expected_[0].address(key);
    EXPECT_EQ(placed_.address(Place::kHot, slot), expected);
    const auto found = placed_.directory->find(key);
    EXPECT_EQ(placed_.address(found.place, found.slot), expected);
  }

  const Case& case_;
  Placed placed_;
  std::vector<reference::GroupPlacement> expected_;
};

class PlaceTest : public ::testing::TestWithParam<const char*> {};

// A use by a step that does not fit passes unseen: then lookahead's words know less than the
// reference, which asks the window anew.
TEST_P(PlaceTest, PlansTheMovesOfTheReference) {
  const bool all_fit = find_policy(GetParam())->foresees;
  uint64_t move_count = 0, lowered = 0, too_large = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    const Case c(seed, all_fit);
    Pair pair(c, GetParam());
    for (uint32_t step = 0; step < c.steps.size(); ++step) {
      pair.run(step);
      ASSERT_FALSE(HasFailure()) << "seed " << seed << ", step " << step;
    }
    move_count += pair.move_count, lowered += pair.lowered, too_large += pair.too_large;
  }
  // The cases are worth something.
  EXPECT_GT(move_count, 100000u);
  EXPECT_GT(lowered, 100u);
  EXPECT_EQ(too_large == 0, all_fit);
}

INSTANTIATE_TEST_SUITE_P(All, PlaceTest, ::testing::Values("lru", "clock", "lookahead"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace rowtide
