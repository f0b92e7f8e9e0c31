#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "bench/policies/belady.h"
#include "bench/policies/textbook.h"
#include "kernels/policies/policy.h"
#include "tests/kernels/one_set.h"

namespace rowtide {
namespace {

// One distinct key of a batch, and how often the batch has it.
struct Item {
  Key key = 0;
  uint32_t count = 1;
};
using Steps = std::vector<std::vector<Item>>;  // steps[s]: the keys of step s by first occurrence

// Three ways in which keys come, as functions of the number of the draw.
struct Workload {
  const char* name;
  std::function<Key(std::mt19937&, uint32_t)> draw;
};
const Workload kWorkloads[] = {
    {"skewed",
     [](std::mt19937& random, uint32_t) {
       Key r = random() % 200;
       return r * r / 200;
     }},
    {"looping",
     [](std::mt19937& random, uint32_t i) { return random() % 20 ? i % 40 : random() % 40; }},
    {"drifting", [](std::mt19937& random, uint32_t i) { return i / 50 + random() % 48; }},
};

Steps singles(const Workload& workload, uint32_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Steps steps(count);
  for (uint32_t i = 0; i < count; ++i) steps[i] = {{workload.draw(random, i)}};
  return steps;
}

Steps batches(const Workload& workload, uint32_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Steps steps(count);
  for (uint32_t i = 0; i < 12 * count; ++i) {
    const Key key = workload.draw(random, i);
    auto& batch = steps[i / 12];
    const auto same = std::ranges::find(batch, key, &Item::key);
    if (same == batch.end()) {
      const bool often = random() % 500 == 0;
      batch.push_back({key, often ? 1000 : 1 + static_cast<uint32_t>(random() % 3)});
    } else {
      ++same->count;
    }
  }
  return steps;
}

// The steps that use a key, of those within `window` of step s, after it; none is kNeverUsed.
class Future {
 public:
  Future(const Steps& steps, uint32_t window) : window_(window) {
    for (uint32_t s = 0; s < steps.size(); ++s) {
      for (const Item& item : steps[s]) uses_[item.key].push_back(s);
    }
  }
  std::optional<uint32_t> next(Key key, uint32_t s) const {
    const auto& uses = uses_.at(key);
    const auto next = std::ranges::upper_bound(uses, s);
    return next == uses.end() ? std::nullopt : std::optional(*next);
  }
  std::optional<uint32_t> known(Key key, uint32_t s) const {
    const auto use = next(key, s);
    return use && *use <= s + window_ ? use : std::nullopt;
  }

 private:
  uint32_t window_;
  std::map<Key, std::vector<uint32_t>> uses_;
};

// A set and the textbook cache beside it, driven by the same steps.
class Pair {
 public:
  Pair(std::string_view policy, const Steps& steps, uint32_t window, uint32_t first_step)
      : set(policy),
        textbook_(policy, {.capacity = kWays, .window = window}),
        steps_(steps),
        future_(steps, window),
        window_(window),
        first_step_(first_step) {}

  // What the step brings into the window, then its hits, then its misses.
  void run(uint32_t s, uint32_t in_flight) {
    for (uint32_t later = s == 0 ? 1 : s + window_; later <= s + window_; ++later) {
      if (later >= steps_.size()) break;
      for (const Item& item : steps_[later]) set.foresee(item.key, first_step_ + later);
    }
    uint32_t pinned = in_flight;
    std::vector<Item> misses;
    for (const Item& item : steps_[s]) {
      if (textbook_.contains(item.key)) {
        pinned |= access(item, s, 0);
      } else {
        misses.push_back(item);
      }
    }
    for (const Item& item : misses) {
      if (directory_free(set.view(), 0) != 0 || pinned != ~0u) {
        pinned |= access(item, s, ~pinned);
      }
    }
  }

  OneSet set;
  uint64_t hits = 0;

 private:
  uint32_t access(const Item& item, uint32_t s, uint32_t may_go) {
    const auto next = future_.next(item.key, s);
    const auto known = future_.known(item.key, s);
    const auto expected =
        textbook_.access({item.key, s, next ? *next : textbook::kNever, item.count},
                         [&](uint32_t place) { return (may_go >> place & 1) != 0; });
    const auto got = set.access(item.key,
                                {.step = first_step_ + s,
                                 .count = item.count,
                                 .next_use = known ? first_step_ + *known : kNeverUsed},
                                may_go);
    EXPECT_EQ(got.hit, expected.hit);
    EXPECT_EQ(got.slot, expected.place);
    EXPECT_EQ(got.evicted, expected.evicted);
    hits += got.hit;
    return 1u << got.slot % kWays;
  }

  textbook::Cache textbook_;
  const Steps& steps_;
  Future future_;
  uint32_t window_, first_step_;
};

class PolicyTest : public ::testing::TestWithParam<std::string_view> {
 protected:
  // A set with a history: hits, evictions and known uses.
  static OneSet used_set(uint32_t seed, uint32_t ticks_before = 0) {
    OneSet set(GetParam());
    set.skip_ticks(ticks_before);
    std::mt19937 random(seed);
    for (uint32_t step = 0; step < 400; ++step) {
      const uint32_t next = random() % 3 == 0 ? kNeverUsed : step + 1 + random() % 9;
      set.access(random() % 50, {.step = step, .count = 1 + step % 4, .next_use = next});
    }
    return set;
  }
  // The ways in the order in which they would go.
  static std::vector<Slot> order(OneSet& set) {
    std::vector<Slot> order;
    for (uint32_t left = ~0u; left != 0; left &= ~(1u << order.back())) {
      order.push_back(set.victim(left, 400));
    }
    return order;
  }
};

TEST_P(PolicyTest, EqualsTheTextbookOneAccessAtATime) {
  for (const Workload& workload : kWorkloads) {
    for (const uint32_t window : {1, 8, 64}) {
      const Steps steps = singles(workload, 6000, /*seed=*/window);
      Pair pair(GetParam(), steps, window, /*first_step=*/0);
      for (uint32_t s = 0; s < steps.size(); ++s) {
        pair.run(s, /*in_flight=*/0);
        ASSERT_FALSE(HasFailure()) << workload.name << ", window " << window << ", step " << s;
      }
      EXPECT_TRUE(pair.set.guards_intact());
    }
  }
}

// Hits first, then misses; what the batch uses and what is in flight may not go.  Ticks age, and
// steps pass the bounds of the fields that hold them.
TEST_P(PolicyTest, EqualsTheTextbookInBatchesWithSlotsInFlight) {
  for (const uint32_t first_step : {0u, (1u << 24) - 300, (1u << 31) - 300}) {
    for (const Workload& workload : kWorkloads) {
      std::mt19937 random(7);
      const Steps steps = batches(workload, 1000, /*seed=*/11);
      Pair pair(GetParam(), steps, /*window=*/8, first_step);
      for (uint32_t s = 0; s < steps.size(); ++s) {
        pair.run(s, s % 10 == 0 ? ~0u : random() & random());
        ASSERT_FALSE(HasFailure()) << workload.name << ", step " << s << " from " << first_step;
        if (s % 16 == 15) pair.set.age(pair.set.tick() / 2);
      }
    }
  }
}

TEST_P(PolicyTest, NeverBeatsTheBestPossible) {
  for (const Workload& workload : kWorkloads) {
    const Steps steps = singles(workload, 5000, /*seed=*/3);
    std::vector<uint64_t> trace;
    for (const auto& step : steps) trace.push_back(step[0].key);
    Pair pair(GetParam(), steps, /*window=*/100, 0);
    for (uint32_t s = 0; s < steps.size(); ++s) pair.run(s, 0);
    EXPECT_GT(pair.hits, 0u);
    EXPECT_LE(pair.hits, textbook::most_hits(trace, kWays, textbook::Bypass::kNo));
  }
}

TEST_P(PolicyTest, TheOnlySlotThatMayGoGoes) {
  OneSet set = used_set(/*seed=*/1);
  for (uint32_t way = 0; way < kWays; ++way) EXPECT_EQ(set.victim(1u << way, 400), way);
}

// OneSet::victim checks it.
TEST_P(PolicyTest, OnlySlotsThatMayGoChange) {
  std::mt19937 random(2);
  for (uint32_t seed = 0; seed < 50; ++seed) {
    OneSet set = used_set(seed);
    for (int i = 0; i < 20; ++i) set.victim(random() | 1u << random() % kWays, 400);
    EXPECT_TRUE(set.guards_intact());
  }
}

TEST_P(PolicyTest, AgeKeepsTheOrder) {
  for (const uint32_t ticks_before : {0u, 1u << 30, (1u << 31) - 401}) {
    for (const uint32_t back : {0u, 1u, 31u, 32u, 33u, 100u, 400u}) {
      OneSet set = used_set(/*seed=*/5, ticks_before), aged = used_set(/*seed=*/5, ticks_before);
      ASSERT_EQ(set.words(), aged.words());
      aged.age(ticks_before + 400 - back);
      EXPECT_EQ(order(set), order(aged)) << ticks_before << " - " << back;
    }
  }
}

TEST_P(PolicyTest, TheSameInputsGiveTheSameBits) {
  OneSet a = used_set(/*seed=*/9), b = used_set(/*seed=*/9);
  EXPECT_EQ(a.words(), b.words());
  const uint32_t set_words = a.policy().set_words;
  EXPECT_TRUE(std::equal(a.view().set_words, a.view().set_words + set_words, b.view().set_words));
  EXPECT_EQ(order(a), order(b));
}

// lfu needs the longest: the old hot keys must be halved to less than what a newcomer gains.
TEST_P(PolicyTest, HitRateRecoversAfterTheHotSetHasMoved) {
  OneSet set(GetParam());
  std::mt19937 random(4);
  uint32_t step = 0;
  const auto hit_rate = [&](Key hot, uint32_t count) {
    uint32_t hits = 0;
    for (uint32_t i = 0; i < count; ++i, ++step) {
      const uint32_t r = random() % 24;
      const Key key = random() % 5 == 0 ? 1000 + random() % 1000 : hot + r * r / 24;
      hits += set.access(key, {.step = step}).hit;
    }
    return static_cast<double>(hits) / count;
  };
  hit_rate(/*hot=*/0, 4000);
  const double before = hit_rate(0, 2000);
  EXPECT_GT(before, 0.7);
  EXPECT_LT(hit_rate(/*hot=*/500, 20), before);
  hit_rate(500, 20000);
  EXPECT_GT(hit_rate(500, 2000), 0.95 * before);
}

INSTANTIATE_TEST_SUITE_P(All, PolicyTest, ::testing::ValuesIn(policy_names()),
                         [](const auto& info) { return std::string(info.param); });

TEST(PolicyTableTest, EveryNameIsFoundAndNoOther) {
  for (const std::string_view name : policy_names()) {
    ASSERT_NE(find_policy(name), nullptr);
    EXPECT_EQ(find_policy(name)->name, name);
  }
  EXPECT_EQ(find_policy("oracle"), nullptr);
  EXPECT_TRUE(std::ranges::is_sorted(policy_names()));
}

// The traces by hand.  access(key, step) evicts what is said beside it.
Key evicted_by(OneSet& set, Key key, const Touch& use) {
  return set.access(key, use).evicted.value_or(kNoKey);
}

TEST(LruPolicyTest, TheLeastRecentGoes) {
  OneSet set("lru", /*ways=*/3);
  for (const Key key : {10, 11, 12}) EXPECT_EQ(evicted_by(set, key, {}), kNoKey);
  set.access(10, {});
  EXPECT_EQ(evicted_by(set, 13, {}), 11u);
  EXPECT_EQ(evicted_by(set, 14, {}), 12u);
  EXPECT_EQ(evicted_by(set, 15, {}), 10u);
}

// Way 0 was hit, so 1 goes first; its newcomer is behind the hand, so 2 is next.  Then the hand is
// back at way 0, whose mark was taken.
TEST(ClockPolicyTest, SparesTheHitAndTheNewcomer) {
  OneSet set("clock", /*ways=*/3);
  for (const Key key : {10, 11, 12}) set.access(key, {});
  set.access(10, {});
  EXPECT_EQ(evicted_by(set, 13, {}), 11u);
  EXPECT_EQ(evicted_by(set, 14, {}), 12u);
  EXPECT_EQ(evicted_by(set, 15, {}), 10u);
}

TEST(ClockPolicyTest, WhenAllAreMarkedTheFirstAtTheHandGoes) {
  OneSet set("clock", /*ways=*/3);
  for (const Key key : {10, 11, 12, 10, 11, 12}) set.access(key, {});
  EXPECT_EQ(set.access(13, {}, /*may_go=*/0b110).evicted, 11u);
  EXPECT_EQ(evicted_by(set, 14, {}), 12u);  // unmarked by the sweep; 10 was passed over
  EXPECT_EQ(evicted_by(set, 15, {}), 13u);  // 10 is spared once
}

TEST(LfuPolicyTest, TheLeastUsedGoesAndOldFameIsHalved) {
  OneSet set("lfu", /*ways=*/3);
  set.access(10, {.step = 0, .count = 254});
  set.access(11, {.step = 0, .count = 3});
  set.access(12, {.step = 0, .count = 2});
  EXPECT_EQ(evicted_by(set, 13, {.step = 1}), 12u);
  EXPECT_EQ(evicted_by(set, 14, {.step = 2}), 13u);
  set.access(14, {.step = 3, .count = 2});  // 254, 3, 3: the older of the equal ones goes
  EXPECT_EQ(evicted_by(set, 15, {.step = 4, .count = 2}), 11u);
  set.access(10, {.step = 5});                                   // 255 2 3 becomes 127 1 1
  EXPECT_EQ(evicted_by(set, 16, {.step = 6, .count = 5}), 14u);  // of step 3
  EXPECT_EQ(evicted_by(set, 17, {.step = 7}), 15u);
}

TEST(LfuPolicyTest, ARowThatComesBackFromBelowKeepsItsCount) {
  OneSet set("lfu", /*ways=*/2);
  set.access(10, {.step = 0, .count = 5});
  const uint32_t word = set.view().words[0];
  set.access(11, {.step = 0, .count = 3});
  EXPECT_EQ(set.access(12, {.step = 1}, /*may_go=*/0b01).evicted, 10u);
  set.word_of_newcomer = word;
  EXPECT_EQ(evicted_by(set, 10, {.step = 2}), 12u);
  set.word_of_newcomer = 0;
  EXPECT_EQ(evicted_by(set, 13, {.step = 3}), 11u);
}

// Steps count from 0 again: what was used last stays last, and counts stay counts.
TEST(LfuPolicyTest, ResumedRowsKeepTheirCounts) {
  OneSet set("lfu", /*ways=*/3);
  set.access(10, {.step = 900, .count = 5});
  set.access(11, {.step = 901, .count = 3});
  set.access(12, {.step = 902, .count = 3});
  set.resume();
  set.access(11, {.step = 0});
  EXPECT_EQ(evicted_by(set, 13, {.step = 1, .count = 9}), 12u);
  EXPECT_EQ(evicted_by(set, 14, {.step = 2}), 11u);
}

TEST(LookaheadPolicyTest, ResumedRowsOfTheKnownWindowWereUsedJustNow) {
  OneSet set("lookahead", /*ways=*/3);
  set.access(10, {.step = 900, .next_use = 950});
  set.access(11, {.step = 901});
  set.access(12, {.step = 902});
  set.resume();
  EXPECT_EQ(evicted_by(set, 13, {.step = 0}), 11u);
  set.foresee(12, 5);
  EXPECT_EQ(evicted_by(set, 14, {.step = 1}), 10u);
  EXPECT_EQ(evicted_by(set, 15, {.step = 1}), 13u);
}

TEST_P(PolicyTest, ResumingTwiceIsResumingOnce) {
  OneSet once = used_set(/*seed=*/3), twice = used_set(/*seed=*/3);
  once.resume();
  twice.resume();
  twice.resume();
  EXPECT_EQ(once.words(), twice.words());
  EXPECT_TRUE(once.guards_intact());
}

TEST(LookaheadPolicyTest, TheUnknownGoesFirstThenTheFarthest) {
  OneSet set("lookahead", /*ways=*/3);
  set.access(10, {.step = 1, .next_use = 9});
  set.access(11, {.step = 1, .next_use = 5});
  set.access(12, {.step = 1});
  EXPECT_EQ(evicted_by(set, 13, {.step = 2, .next_use = 4}), 12u);
  EXPECT_EQ(evicted_by(set, 14, {.step = 2, .next_use = 20}), 10u);
  EXPECT_EQ(evicted_by(set, 15, {.step = 3}), 14u);
  set.foresee(15, 5);   // now the window has its next use
  set.foresee(11, 50);  // but that of 11 was known, and is nearer
  EXPECT_EQ(evicted_by(set, 16, {.step = 3, .next_use = 4}), 15u);  // 5 and 5: the lower way
  EXPECT_EQ(evicted_by(set, 17, {.step = 3}), 11u);
  EXPECT_EQ(evicted_by(set, 18, {.step = 3}), 17u);
}

}  // namespace
}  // namespace rowtide
