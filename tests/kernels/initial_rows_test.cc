#include "kernels/initial_rows.h"

#include <gtest/gtest.h>

#include "tests/reference/initial_rows.h"
#include "tests/support/embedding_case.h"

namespace rowtide {
namespace {

// Known answers of the generator's authors.
TEST(PhiloxTest, GivesTheKnownAnswers) {
  const auto words = [](PhiloxBlock b) { return std::vector<uint32_t>(b.word, b.word + 4); };
  EXPECT_EQ(words(philox4x32_10(0, {{0, 0, 0, 0}})),
            (std::vector<uint32_t>{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  const uint32_t ones = 0xFFFFFFFF;
  EXPECT_EQ(words(philox4x32_10(~uint64_t{0}, {{ones, ones, ones, ones}})),
            (std::vector<uint32_t>{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
}

TEST(PhiloxTest, CountersOfDifferentUsesKeysAndStepsDiffer) {
  const auto same = [](PhiloxBlock a, PhiloxBlock b) { return !std::memcmp(&a, &b, sizeof a); };
  const Key key = make_key(3, 5);
  EXPECT_FALSE(same(rounding_counter(key, 0, 1), rounding_counter(key, 1, 0)));
  EXPECT_FALSE(same(rounding_counter(key, 1, 1023), rounding_counter(key, 1ull << 33, 1023)));
  EXPECT_FALSE(same(rounding_counter(key, 0, 0), initial_counter(key, 0)));
  EXPECT_FALSE(same(initial_counter(key, 0), initial_counter(make_key(5, 3), 0)));
}

class InitialRowTest : public OnEachInstructionSet<uint32_t> {
 protected:
  static std::vector<float> row(void (*op)(const InitialRow&, Key, std::byte*, std::byte*),
                                const InitialRow& row, Key key) {
    Arena arena(row.format, 1, /*seed=*/1);  // full of other values, and guarded
    op(row, key, arena.weights.data(), arena.state.data());
    return arena.values();
  }
};
INSTANTIATE_TEST_SUITE_P(Widths, InitialRowTest,
                         ::testing::Combine(each_instruction_set(), ::testing::ValuesIn(kWidths)));

TEST_P(InitialRowTest, EqualsTheReferenceAndItsStateIsZero) {
  for (Precision precision : kPrecisions) {
    for (OptimizerKind optimizer : kOptimizers) {
      const InitialRow op{.format = {parameter(), precision, optimizer}, .seed = 7, .scale = 0.05f};
      for (Key key : {make_key(0, 0), make_key(9, kMaxRows - 1)}) {
        EXPECT_EQ(
            first_difference(row(initial_row_reference, op, key), row(initial_row_cpu, op, key)),
            "");
      }
    }
  }
}

TEST_P(InitialRowTest, HasTheSameFirstElementsAtEveryWidth) {
  const auto wide = row(initial_row_cpu, {.format = {.width = 4096}, .scale = 1}, 5);
  const auto narrow = row(initial_row_cpu, {.format = {.width = parameter()}, .scale = 1}, 5);
  EXPECT_EQ(first_difference(narrow, std::span(wide).first(parameter())), "");
}

TEST(InitialRowsTest, AreUniformWithinTheScale) {
  const InitialRow op{.format = {.width = 64}, .seed = 3, .scale = 0.5f};
  double sum = 0, squares = 0, next = 0;
  float least = 1, most = -1, before = 0;
  const int n = 64 * 20000;
  for (uint64_t r = 0; r < 20000; ++r) {
    float weights[64];
    initial_row_cpu(op, make_key(1, r), reinterpret_cast<std::byte*>(weights), nullptr);
    for (float w : weights) {
      sum += w, squares += double{w} * w, next += double{w} * before;
      least = std::min(least, w), most = std::max(most, w), before = w;
    }
  }
  EXPECT_GE(least, -0.5f);
  EXPECT_LT(most, 0.5f);
  EXPECT_LT(least, -0.4999f);
  EXPECT_GT(most, 0.4999f);
  EXPECT_NEAR(sum / n, 0, 0.001);              // 4 standard errors: 0.00102
  EXPECT_NEAR(squares / n, 0.25 / 3, 0.0003);  // 4 standard errors: 0.00026
  EXPECT_NEAR(next / n, 0, 0.0003);            // neighbours do not correlate
}

TEST(InitialRowsTest, DependOnSeedAndKeyAlone) {
  const auto first = [](uint64_t seed, Key key) {
    float weight;
    initial_row_cpu({.format = {.width = 1}, .seed = seed, .scale = 1}, key,
                    reinterpret_cast<std::byte*>(&weight), nullptr);
    return weight;
  };
  const float value = first(1, make_key(2, 3));
  EXPECT_NE(first(2, make_key(2, 3)), value);
  EXPECT_NE(first(1, make_key(3, 3)), value);
  EXPECT_NE(first(1, make_key(2, 4)), value);
  EXPECT_EQ(first(1, make_key(2, 3)), value);
}

}  // namespace
}  // namespace rowtide
