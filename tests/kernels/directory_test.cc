#include "kernels/directory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <map>
#include <set>

#include "kernels/instruction_set.h"
#include "tests/kernels/directory_probe_cases.h"
#include "tests/kernels/guarded_directory.h"
#include "tests/support/watchdog.h"

namespace rowtide {
namespace {

constexpr uint32_t kAll = 0xFFFFFFFFu;

// Every instruction set that this machine has.
class DirectoryTest : public ::testing::TestWithParam<InstructionSet> {
 protected:
  DirectoryTest() : before_(instruction_set()) { force_instruction_set(GetParam()); }
  ~DirectoryTest() override { force_instruction_set(before_); }

  static std::vector<Slot> probe(const DirectoryView& view, const std::vector<Key>& keys) {
    constexpr Slot kGuard = 0xA5A5A5A5u;
    std::vector<Slot> slots(keys.size() + 1, kGuard);
    directory_probe_cpu({view, keys.data(), slots.data(), keys.size()});
    EXPECT_EQ(slots.back(), kGuard);
    slots.pop_back();
    return slots;
  }

 private:
  InstructionSet before_;
};

// Distinct keys of one set and one tag.
std::vector<Key> colliding_keys(const DirectoryView& view, uint32_t count) {
  std::vector<Key> keys;
  for (uint64_t i = 0; i < count; ++i) keys.push_back(key_of_hash(i << 16 | 0x1234, view.salt));
  return keys;
}

TEST_P(DirectoryTest, FindsWhatAPlainMapFinds) {
  GuardedDirectory directory(/*sets=*/7);
  std::map<Key, Slot> expected;
  std::mt19937_64 random(1);
  std::vector<Key> keys = {0, 1, kNoKey - 1, Key{1} << 63, make_key(0xFFFE, kMaxRows - 1)};
  while (keys.size() < 400) keys.push_back(random());
  for (int round = 0; round < 20000; ++round) {
    const Key key = keys[random() % keys.size()];
    if (const auto found = expected.find(key); found == expected.end()) {
      ASSERT_EQ(directory_find(directory.view, key), kNoSlot);
      if (const Slot slot = directory.put(key); slot != kNoSlot) expected[key] = slot;
    } else {
      ASSERT_EQ(directory_find(directory.view, key), found->second);
      if (random() % 2 == 0) {
        directory_take(directory.view, found->second);
        expected.erase(found);
      }
    }
  }
  const std::vector<Slot> slots = probe(directory.view, keys);
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto found = expected.find(keys[i]);
    EXPECT_EQ(slots[i], found == expected.end() ? kNoSlot : found->second);
  }
  EXPECT_TRUE(directory.guards_intact());
}

TEST_P(DirectoryTest, ProbesAnyNumberOfKeys) {
  GuardedDirectory directory(/*sets=*/5);
  std::mt19937_64 random(2);
  std::vector<Key> all(1000);
  for (Key& key : all) key = random() % 300;
  for (size_t i = 0; i < all.size(); i += 3) {
    if (directory_find(directory.view, all[i]) == kNoSlot) directory.put(all[i]);
  }
  for (size_t count : {0, 1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 1000}) {
    const std::vector<Key> keys(all.begin(), all.begin() + static_cast<ptrdiff_t>(count));
    const std::vector<Slot> slots = probe(directory.view, keys);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(slots[i], directory_find(directory.view, keys[i]));
  }
}

TEST_P(DirectoryTest, TellsKeysOfOneSetAndOneTagApart) {
  GuardedDirectory directory(/*sets=*/3);
  const std::vector<Key> keys = colliding_keys(directory.view, kWays + 1);
  for (uint32_t i = 0; i < kWays; ++i) EXPECT_EQ(directory.put(keys[i]), i);
  EXPECT_EQ(directory.put(keys[kWays]), kNoSlot);
  EXPECT_EQ(directory_find(directory.view, keys[kWays]), kNoSlot);
  const std::vector<Slot> slots = probe(directory.view, keys);
  for (uint32_t i = 0; i < kWays; ++i) EXPECT_EQ(slots[i], i);
  EXPECT_EQ(slots[kWays], kNoSlot);
}

TEST_P(DirectoryTest, ATagNeverReadsAsAFreeSlot) {
  GuardedDirectory directory(/*sets=*/1);
  const Key tag0 = key_of_hash(Key{5} << 16, directory.view.salt);
  const Key tag1 = key_of_hash(Key{5} << 16 | 1, directory.view.salt);
  EXPECT_EQ(directory_find(directory.view, tag0), kNoSlot);
  EXPECT_EQ(directory.put(tag0), 0u);
  EXPECT_EQ(directory.put(tag1), 1u);
  EXPECT_EQ(directory_find(directory.view, tag0), 0u);
  EXPECT_EQ(directory_find(directory.view, tag1), 1u);
  EXPECT_EQ(directory_free(directory.view, 0), kAll << 2);
}

TEST_P(DirectoryTest, MasksNameTheFreeAndThoseUsedBeforeAStep) {
  GuardedDirectory directory(/*sets=*/2);
  const DirectoryView& view = directory.view;
  const std::vector<uint32_t> steps = {0, 1, 2, 1000, 0x7FFFFFFE, 0x80000000, 0xFFFFFFFE};
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    uint32_t free = 0;
    for (uint32_t way = 0; way < kWays; ++way) {
      const bool taken = random() % 4 != 0;
      view.tags[kWays + way] = taken ? static_cast<uint16_t>(1 + random() % 0xFFFF) : kFreeTag;
      view.last[kWays + way] = random() % 4 == 0 ? kNoStep : steps[random() % steps.size()] + 1;
      if (!taken) free |= 1u << way;
    }
    EXPECT_EQ(directory_free(view, 1), free);
    for (const uint32_t base : steps) {
      for (const uint32_t step : {base, base + 1}) {
        uint32_t before = 0;
        for (uint32_t way = 0; way < kWays; ++way) {
          const uint32_t last = view.last[kWays + way];
          if (last == kNoStep || last - 1 < step) before |= 1u << way;
        }
        EXPECT_EQ(directory_before(view, 1, step), before & ~free) << step;
      }
    }
  }
  EXPECT_EQ(directory_free(view, 0), kAll);
  EXPECT_EQ(directory_before(view, 0, 5), 0u);
}

TEST_P(DirectoryTest, AnEmptyTierFindsNothing) {
  const DirectoryView view = DirectoryView::over(nullptr, 0, 1, 3);
  EXPECT_EQ(DirectoryView::bytes(0, 1), 0u);
  EXPECT_EQ(directory_find(view, 1), kNoSlot);
  directory_prefetch_set(view, view.set_of(1));
  for (const Slot slot : probe(view, std::vector<Key>(100, 1))) EXPECT_EQ(slot, kNoSlot);
}

TEST_P(DirectoryTest, CollidingKeysAmongDuplicatesStayCorrectForTenThousandRounds) {
  Watchdog watchdog("keys of one set and one tag", std::chrono::seconds(60));
  GuardedDirectory directory(/*sets=*/4);
  const std::vector<Key> colliding = colliding_keys(directory.view, 2 * kWays);
  std::mt19937 random(4);
  std::map<Key, Slot> expected;
  for (int round = 0; round < 10000; ++round) {
    const Key* half = colliding.data() + random() % (kWays + 1);
    std::vector<Key> batch;
    for (uint32_t i = 0; i < kWays; ++i) {
      batch.push_back(half[i]);
      batch.push_back(half[random() % kWays]);
    }
    const std::vector<Slot> slots = probe(directory.view, batch);
    for (size_t i = 0; i < batch.size(); ++i) {
      const auto found = expected.find(batch[i]);
      ASSERT_EQ(slots[i], found == expected.end() ? kNoSlot : found->second);
    }
    const Key key = batch[random() % batch.size()];
    if (const Slot slot = directory_find(directory.view, key); slot != kNoSlot) {
      directory_take(directory.view, slot);
      expected.erase(key);
    } else if (const Slot placed = directory.put(key); placed != kNoSlot) {
      expected[key] = placed;
    }
  }
}

TEST_P(DirectoryTest, AfterATenthIsErasedTheSpilledAreExactlyThoseWithoutRoom) {
  GuardedDirectory directory(/*sets=*/16);
  std::mt19937_64 random(5);
  std::set<Key> resident, spilled;
  const auto insert = [&](Key key) {
    (directory.put(key) == kNoSlot ? spilled : resident).insert(key);
  };
  for (Key key = 0; key < 600; ++key) insert(key);
  const std::set<Key> filled = resident;
  for (const Key key : filled) {
    if (random() % 10 != 0) continue;
    directory_take(directory.view, directory_find(directory.view, key));
    resident.erase(key);
  }
  const size_t kept = resident.size();
  spilled.clear();
  for (Key key = 1000; key < 1200; ++key) insert(key);
  EXPECT_GT(spilled.size(), 0u);
  EXPECT_EQ(resident.size() - kept + spilled.size(), 200u);
  for (const Key key : resident) EXPECT_NE(directory_find(directory.view, key), kNoSlot);
  for (const Key key : spilled) {
    EXPECT_GE(key, 1000u);
    EXPECT_EQ(directory_find(directory.view, key), kNoSlot);
    EXPECT_EQ(directory_free(directory.view, directory.view.set_of(key)), 0u);
  }
}

TEST_P(DirectoryTest, FilledAndErasedAHundredTimesLosesNothing) {
  GuardedDirectory directory(/*sets=*/9);
  for (Key round = 0; round < 100; ++round) {
    std::map<Key, Slot> resident;
    for (Key key = round * 1000; resident.size() < 9 * kWays; ++key) {
      if (const Slot slot = directory.put(key); slot != kNoSlot) resident[key] = slot;
    }
    EXPECT_EQ(directory_find(directory.view, (round + 1) * 1000000), kNoSlot);
    for (const auto& [key, slot] : resident) {
      ASSERT_EQ(directory_find(directory.view, key), slot);
      directory_take(directory.view, slot);
      ASSERT_EQ(directory_find(directory.view, key), kNoSlot);
    }
  }
  for (uint32_t set = 0; set < 9; ++set) EXPECT_EQ(directory_free(directory.view, set), kAll);
  EXPECT_TRUE(directory.guards_intact());
}

TEST_P(DirectoryTest, FindsWhatStandsThereInEveryCase) {
  for (const DirectoryProbeCase& test : directory_probe_cases()) {
    DirectoryProbeInput input(test);
    struct alignas(64) Line {  // as the view wants its arrays
      uint16_t tags[kWays];
    };
    std::vector<Line> lines(input.tags.size() / kWays);
    std::copy(input.tags.begin(), input.tags.end(), reinterpret_cast<uint16_t*>(lines.data()));
    input.view.tags = reinterpret_cast<uint16_t*>(lines.data());
    input.view.keys = input.keys.data();
    EXPECT_EQ(probe(input.view, input.probes), input.expected()) << test.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, DirectoryTest, ::testing::ValuesIn(instruction_sets()),
                         [](const auto& info) { return instruction_set_name(info.param); });

TEST(DirectoryViewTest, BytesAreExactlyWhatItLaysOut) {
  for (const uint32_t sets : {1u, 3u, 100u}) {
    for (uint32_t set_words = 0; set_words <= kMaxSetWords; ++set_words) {
      GuardedDirectory directory(sets, set_words);
      const DirectoryView& view = directory.view;
      std::fill_n(view.tags, sets * kWays, uint16_t{0x1111});
      std::fill_n(view.keys, sets * kWays, Key{0x2222});
      std::fill_n(view.words, sets * kWays, 0x3333u);
      std::fill_n(view.last, sets * kWays, 0x4444u);
      std::fill_n(view.set_words, sets * set_words, 0x5555u);
      EXPECT_TRUE(directory.guards_intact());
      EXPECT_EQ(std::count(view.tags, view.tags + sets * kWays, 0x1111), sets * kWays);
      EXPECT_EQ(std::count(view.keys, view.keys + sets * kWays, 0x2222u), sets * kWays);
      EXPECT_EQ(std::count(view.words, view.words + sets * kWays, 0x3333u), sets * kWays);
      EXPECT_EQ(std::count(view.last, view.last + sets * kWays, 0x4444u), sets * kWays);
      const uint64_t used = sets * (kWays * (2 + 8 + 4 + 4) + uint64_t{set_words} * 4);
      EXPECT_EQ(DirectoryView::bytes(sets, set_words), (used + 63) / 64 * 64);
    }
  }
}

TEST(DirectoryViewTest, SetsComeFromTheUpperHalfOfAWideProduct) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 10000; ++i) {
    const uint64_t x = random();
    for (const uint32_t n : {1u, 3u, 0x80000001u, 0xFFFFFFFFu, static_cast<uint32_t>(random())}) {
      EXPECT_EQ(multiply_high(x, n),
                static_cast<uint64_t>(static_cast<unsigned __int128>(x) * n >> 64));
    }
  }
  EXPECT_EQ(multiply_high(~uint64_t{0}, 0xFFFFFFFFu), 0xFFFFFFFEu);
}

// Memory that is only reserved: a page costs something once it is touched.
TEST(DirectoryViewTest, SlotsAboveTwoToThe31AreAsGoodAsAny) {
  const uint32_t sets = (1u << 27) - 1;  // the most: slots reach 2^32 - 33
  const uint64_t bytes = DirectoryView::bytes(sets, kMaxSetWords);
  EXPECT_EQ(bytes, (uint64_t{sets} * (kWays * 18 + kMaxSetWords * 4) + 63) / 64 * 64);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no " << bytes << " bytes of address space";
  const DirectoryView view =
      DirectoryView::over(static_cast<std::byte*>(memory), sets, kMaxSetWords, /*salt=*/1);
  std::vector<Key> keys;
  for (const uint64_t hash : {0x0ull, 0x8000000000000000ull, 0xFFFFFFFFFFFFFFFFull}) {
    const Key key = key_of_hash(hash, view.salt);
    const uint64_t set = view.set_of(key);
    EXPECT_EQ(set, hash == 0 ? 0u : hash >> 63 == 1 && hash << 1 == 0 ? sets / 2 : sets - 1);
    EXPECT_EQ(directory_free(view, static_cast<uint32_t>(set)), kAll);
    directory_put(view, static_cast<Slot>(set * kWays + 31), key, 0, kNoStep);
    keys.push_back(key);
  }
  std::vector<Slot> slots(keys.size());
  directory_probe_cpu({view, keys.data(), slots.data(), keys.size()});
  EXPECT_EQ(slots[0], 31u);
  EXPECT_EQ(slots[1], sets / 2 * kWays + 31);
  EXPECT_EQ(slots[2], kNoSlot - kWays);
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(directory_find(view, keys[i]), slots[i]);
  EXPECT_EQ(munmap(memory, bytes), 0);
}

}  // namespace
}  // namespace rowtide
