#include "bench/policies/textbook.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <string>

#include "bench/policies/belady.h"

namespace rowtide::textbook {
namespace {

// The most hits, by trying every choice from request i on.
uint64_t try_all(std::span<const uint64_t> trace, std::set<uint64_t> resident, size_t capacity,
                 Bypass bypass) {
  if (trace.empty()) return 0;
  const auto rest = trace.subspan(1);
  if (resident.contains(trace[0])) return 1 + try_all(rest, resident, capacity, bypass);
  if (resident.size() < capacity) {
    resident.insert(trace[0]);
    return try_all(rest, resident, capacity, bypass);
  }
  uint64_t best = bypass == Bypass::kYes ? try_all(rest, resident, capacity, bypass) : 0;
  for (const uint64_t key : resident) {
    std::set<uint64_t> next = resident;
    next.erase(key);
    next.insert(trace[0]);
    best = std::max(best, try_all(rest, next, capacity, bypass));
  }
  return best;
}

std::vector<uint64_t> random_trace(uint32_t count, uint32_t keys, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint64_t> trace(count);
  for (uint64_t& key : trace) {
    const uint64_t r = random() % keys;
    key = r * r / keys;
  }
  return trace;
}

TEST(BeladyTest, IsTheBestOfAllChoices) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const auto trace = random_trace(12, 8, seed);
    for (const uint32_t capacity : {1, 2, 3}) {
      for (const Bypass bypass : {Bypass::kNo, Bypass::kYes}) {
        EXPECT_EQ(most_hits(trace, capacity, bypass), try_all(trace, {}, capacity, bypass));
      }
    }
  }
}

TEST(BeladyTest, IsNeverBeatenByATextbook) {
  const auto trace = random_trace(5000, 300, /*seed=*/1);
  for (const std::string_view policy : policy_names()) {
    for (const uint32_t capacity : {1, 7, 50, 150}) {
      const uint64_t hits = count_hits(policy, {.capacity = capacity, .window = 20}, trace);
      EXPECT_LE(hits, most_hits(trace, capacity, Bypass::kNo)) << policy;
    }
  }
}

TEST(LookaheadTextbookTest, IsBeladyWhenAllIsKnownAndLruWhenNothingIs) {
  const auto trace = random_trace(5000, 300, /*seed=*/2);
  for (const uint32_t capacity : {1, 7, 50, 150}) {
    EXPECT_EQ(count_hits("lookahead", {capacity, trace.size()}, trace),
              most_hits(trace, capacity, Bypass::kNo));
    EXPECT_EQ(count_hits("lookahead", {capacity, 0}, trace), count_hits("lru", {capacity}, trace));
  }
}

// Hits on a public trace of recommendation look-ups, big-endian 64-bit ids under xz.
class PublicTraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("ROWTIDE_DATA");
    if (folder == nullptr) GTEST_SKIP() << "ROWTIDE_DATA names no folder of real data";
    const std::string path = std::string(folder) + "/scarab-recs/scarab-recs.trace.xz";
    FILE* pipe = popen(("xz -dc '" + path + "' 2>/dev/null").c_str(), "r");
    unsigned char bytes[8];
    while (pipe != nullptr && std::fread(bytes, sizeof bytes, 1, pipe) == 1) {
      uint64_t key = 0;
      for (const unsigned char byte : bytes) key = key << 8 | byte;
      trace_.push_back(key);
    }
    if (pipe == nullptr || pclose(pipe) != 0) GTEST_SKIP() << "xz cannot unpack " << path;
    ASSERT_EQ(trace_.size(), 1245184u);
  }

  std::vector<uint64_t> trace_;
};

TEST_F(PublicTraceTest, HitsAreThePublishedOnes) {
  EXPECT_EQ(count_hits("lru", {2584}, trace_), 432205u);
  EXPECT_EQ(count_hits("clock", {2584}, trace_), 444438u);
  EXPECT_EQ(most_hits(trace_, 2584, Bypass::kNo), 664311u);
  EXPECT_EQ(most_hits(trace_, 2584, Bypass::kYes), 664335u);
}

TEST_F(PublicTraceTest, SlowHitsOfLargerCachesAreThePublishedOnes) {
  EXPECT_EQ(count_hits("lru", {25837}, trace_), 754547u);
  EXPECT_EQ(count_hits("lru", {100000}, trace_), 945202u);
  EXPECT_EQ(count_hits("clock", {25837}, trace_), 757908u);
  EXPECT_EQ(count_hits("clock", {100000}, trace_), 945593u);
  EXPECT_EQ(most_hits(trace_, 25837, Bypass::kNo), 934319u);
  EXPECT_EQ(most_hits(trace_, 100000, Bypass::kNo), 986816u);
  EXPECT_EQ(most_hits(trace_, 25837, Bypass::kYes), 934320u);
  EXPECT_EQ(most_hits(trace_, 100000, Bypass::kYes), 986816u);
}

}  // namespace
}  // namespace rowtide::textbook
