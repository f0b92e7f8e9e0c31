#include "kernels/pooled_lookup.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <iterator>

#include "runtime/base/parallel.h"
#include "tests/kernels/pooled_lookup_cases.h"
#include "tests/reference/pooled_lookup.h"
#include "tests/support/embedding_case.h"

namespace rowtide {
namespace {

constexpr uint32_t kSlots = 64, kRows = 40;

PooledLookup lookup_of(Arena& arena, const std::vector<Slot>& slots, const Bags& bags,
                       Pooling pooling, bool weighted) {
  return {.format = arena.format,
          .planes = arena.planes(),
          .slots = slots.data(),
          .unique = bags.unique.data(),
          .offsets = bags.offsets.data(),
          .weights = weighted ? bags.weights.data() : nullptr,
          .pooling = pooling,
          .out_stride = arena.format.width + 3,
          .bags = bags.bags()};
}

using Op = void (*)(const PooledLookup&, uint64_t, uint64_t);

// Columns between rows of the output must stay as they are, like everything around it.
std::vector<float> run(Op op, PooledLookup look, uint64_t count) {
  Guarded<float> out(count * look.out_stride, -7.0f);
  look.out = out.data();
  op(look, 0, count);
  return out.vector();
}

void expect_equals_reference(const PooledLookup& look, const Bags& bags) {
  const bool sequence = look.pooling == Pooling::kNone;
  const Op reference = sequence ? sequence_lookup_reference : pooled_lookup_reference;
  const Op op = sequence ? sequence_lookup_cpu : pooled_lookup_cpu;
  const uint64_t count = sequence ? bags.ids() : bags.bags();
  EXPECT_EQ(first_difference(run(reference, look, count), run(op, look, count)), "")
      << "precision " << int(look.format.precision) << " pooling " << int(look.pooling)
      << (look.weights ? " weighted" : "");
}

class PooledLookupTest : public OnEachInstructionSet<PooledLookupCase> {};

TEST_P(PooledLookupTest, EqualsTheReference) {
  PooledLookupInput input(parameter());
  expect_equals_reference(input.op(), input.bags);
}
INSTANTIATE_TEST_SUITE_P(Cases, PooledLookupTest,
                         ::testing::Combine(each_instruction_set(),
                                            ::testing::ValuesIn(pooled_lookup_cases(
                                                {std::begin(kPoolings), std::end(kPoolings)}))));

class PooledLookupBatchTest : public OnEachInstructionSet<uint64_t> {
 protected:
  void expect_equals_reference_at(uint32_t width) {
    const std::vector<int64_t> lengths(parameter(), 1);
    const Bags bags(lengths, kRows, /*first=*/0, /*seed=*/4);
    const auto slots = random_slots(kRows, kSlots, /*seed=*/5);
    Arena arena({.width = width}, kSlots, /*seed=*/6);
    for (Pooling pooling : kPoolings) {
      expect_equals_reference(lookup_of(arena, slots, bags, pooling, false), bags);
    }
  }
};
TEST_P(PooledLookupBatchTest, EqualsTheReferenceInLargeBatches) { expect_equals_reference_at(4); }
INSTANTIATE_TEST_SUITE_P(Large, PooledLookupBatchTest,
                         ::testing::Combine(each_instruction_set(),
                                            ::testing::Values(65535, 65536)));
INSTANTIATE_TEST_SUITE_P(SlowSizes, PooledLookupBatchTest,
                         ::testing::Combine(each_instruction_set(), ::testing::Values(1000003)));

class PooledLookupValuesTest : public OnEachInstructionSet<int> {};
INSTANTIATE_TEST_SUITE_P(All, PooledLookupValuesTest,
                         ::testing::Combine(each_instruction_set(), ::testing::Values(0)));

TEST_P(PooledLookupValuesTest, MeanOfAnEmptyBagIsZeroNotNan) {
  Arena arena({.width = 20}, 1, /*seed=*/1);
  const Bags bags({0, 0}, 1, 0, /*seed=*/1);
  const std::vector<Slot> slots{0};
  const auto out = run(pooled_lookup_cpu, lookup_of(arena, slots, bags, Pooling::kMean, false), 2);
  for (uint32_t d = 0; d < 20; ++d) EXPECT_EQ(out[d], 0.0f);
}

TEST_P(PooledLookupValuesTest, TheLengthOfAMeanCountsSkippedIds) {
  Arena arena({.width = 1}, 1, /*seed=*/1);
  arena.set(0, 6.0f);
  Bags bags({4}, 1, 0, /*seed=*/1);
  bags.unique = {kSkipped, 0, 0, kSkipped};
  const std::vector<Slot> slots{0};
  const auto look = lookup_of(arena, slots, bags, Pooling::kMean, false);
  EXPECT_EQ(run(pooled_lookup_cpu, look, 1)[0], 3.0f);
}

TEST_P(PooledLookupValuesTest, EveryHalfWidensToItsValue) {
  for (Precision precision : {Precision::kFp16, Precision::kBf16}) {
    Arena arena({.width = 1024, .precision = precision}, 64, /*seed=*/1);
    for (uint32_t h = 0; h < 65536; ++h) {
      reinterpret_cast<uint16_t*>(arena.weights.data())[h] = static_cast<uint16_t>(h);
    }
    Bags bags(std::vector<int64_t>(64, 1), 64, 0, /*seed=*/1);
    std::iota(bags.unique.begin(), bags.unique.end(), 0u);
    auto look = lookup_of(arena, bags.unique, bags, Pooling::kNone, false);
    look.out_stride = 1024;
    const auto out = run(sequence_lookup_cpu, look, 64);
    EXPECT_EQ(first_difference(arena.values(), out), "");
  }
}

// Large aligned outputs are written past the caches, others are not.
TEST_P(PooledLookupValuesTest, EqualsTheReferenceForLargeOutputs) {
  const Bags bags(std::vector<int64_t>(8200, 2), kRows, 0, /*seed=*/1);
  const auto slots = random_slots(kRows, kSlots, /*seed=*/2);
  for (uint32_t width : {16, 32, 40, 64, 128}) {
    Arena arena({.width = width}, kSlots, /*seed=*/3);
    for (uint64_t stride : {width + 16, width + 24, width + 1}) {
      auto look = lookup_of(arena, slots, bags, Pooling::kSum, false);
      look.out_stride = stride;
      expect_equals_reference(look, bags);
    }
  }
}

TEST_P(PooledLookupValuesTest, PiecesOnThreadsEqualTheWhole) {
  const Bags bags(std::vector<int64_t>(8200, 3), kRows, 0, /*seed=*/1);
  const auto slots = random_slots(kRows, kSlots, /*seed=*/2);
  Arena arena({.width = 32, .precision = Precision::kFp16}, kSlots, /*seed=*/3);
  auto look = lookup_of(arena, slots, bags, Pooling::kSum, true);
  look.out_stride = 48;
  const auto whole = run(pooled_lookup_cpu, look, 8200);
  Guarded<float> out(whole.size(), -7.0f);
  look.out = out.data();
  Parallel parallel(3);
  parallel.run(11, [&](size_t i) { pooled_lookup_cpu(look, 8200 * i / 11, 8200 * (i + 1) / 11); });
  EXPECT_EQ(first_difference(whole, out.vector()), "");
}

// 16 GiB of addresses of which one page is touched.
TEST_P(PooledLookupValuesTest, ReachesSlotsBeyondTwoToThe31Floats) {
  constexpr uint32_t kWidth = 128;
  constexpr Slot kFar = (1u << 25) - 1;
  const uint64_t bytes = (uint64_t{kFar} + 1) * kWidth * sizeof(float);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no 16 GiB of addresses";
  auto* last = static_cast<float*>(memory) + uint64_t{kFar} * kWidth;
  for (uint32_t d = 0; d < kWidth; ++d) last[d] = static_cast<float>(d) + 1;

  const std::vector<Slot> slots{kFar};
  const uint32_t unique[] = {0};
  const int64_t offsets[] = {0, 1};
  PooledLookup look{.format = {.width = kWidth},
                    .planes = {.weights = static_cast<std::byte*>(memory),
                               .weight_stride = kWidth * sizeof(float)},
                    .slots = slots.data(),
                    .unique = unique,
                    .offsets = offsets,
                    .out_stride = kWidth,
                    .bags = 1};
  EXPECT_EQ(run(pooled_lookup_cpu, look, 1), std::vector<float>(last, last + kWidth));
  munmap(memory, bytes);
}

}  // namespace
}  // namespace rowtide
