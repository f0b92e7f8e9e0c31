#include "kernels/update_rows.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <limits>

#include "kernels/deduplicate.h"
#include "runtime/base/parallel.h"
#include "tests/reference/update_rows.h"
#include "tests/support/embedding_case.h"

namespace rowtide {
namespace {

constexpr uint32_t kSlots = 48;

// One table's share of a batch: a feature of one id a sample, one of bags, both on the same rows,
// with another table's ids before, between and after them.
struct UpdateCase {
  UpdateCase(uint32_t width, Pooling pooling, uint32_t rows, uint32_t part_count, uint64_t seed,
             std::vector<int64_t> lengths = {0, 1, 2, 0, 30, 1})
      : row_count(rows),
        single(std::vector<int64_t>(20, 1), rows, /*first=*/11, seed),
        bags(lengths, rows, /*first=*/40, seed + 1),
        slots(random_slots(rows, kSlots, seed + 2)) {
    unique.assign(static_cast<size_t>(bags.offsets.back()) + 5, kSkipped);
    std::copy(single.unique.begin(), single.unique.end(), unique.begin());
    std::copy(bags.unique.begin() + 40, bags.unique.end(), unique.begin() + 40);
    weights = random_floats(unique.size(), seed + 3);
    begin.resize(rows + 1);
    occurrences.resize(unique.size());
    sort_occurrences(unique.data(), unique.size(), rows, begin.data(), occurrences.data());
    for (uint32_t r = 0; r < rows; ++r) keys.push_back(make_key(2, 1000 + r));
    for (uint64_t b = 0; b < bags.bags(); ++b) {
      sample.insert(sample.end(), bags.offsets[b + 1] - bags.offsets[b], static_cast<uint32_t>(b));
    }
    stride = width + 3;
    for (uint32_t p = 0; p < part_count; ++p) {
      single_parts.push_back(random_floats(single.ids() * stride, seed + 10 + p));
      bag_parts.push_back(random_floats(std::max(bags.bags(), bags.ids()) * stride, seed + 20 + p));
    }
    for (const auto& part : single_parts) pointers.push_back(part.data());
    for (const auto& part : bag_parts) pointers.push_back(part.data());
    features = {{11, 31, pooling, single.offsets.data(), nullptr, pointers.data(), stride},
                {40, static_cast<uint32_t>(bags.offsets.back()), pooling, bags.offsets.data(),
                 sample.data(), pointers.data() + part_count, stride}};
  }

  UpdateRows op(Arena& arena, const OptimizerStep& step, bool weighted) const {
    return {.format = arena.format,
            .planes = arena.planes(),
            .step = step,
            .slots = slots.data(),
            .keys = keys.data(),
            .occurrence_begin = begin.data(),
            .occurrences = occurrences.data(),
            .features = features.data(),
            .feature_count = 2,
            .part_count = static_cast<uint32_t>(single_parts.size()),
            .weights = weighted ? weights.data() : nullptr};
  }

  uint32_t row_count;
  Bags single, bags;
  std::vector<Slot> slots;
  std::vector<uint32_t> unique, begin, occurrences, sample;
  std::vector<Key> keys;
  std::vector<float> weights;
  std::vector<std::vector<float>> single_parts, bag_parts;
  std::vector<const float*> pointers;
  std::vector<GradientFeature> features;
  uint64_t stride;
};

OptimizerStep a_step(float weight_decay = 0, bool decoupled = false) {
  return {.learning_rate = 0.05f,
          .correction1 = 0.19f,
          .correction2 = 0.002f,
          .weight_decay = weight_decay,
          .decoupled = decoupled,
          .seed = 77,
          .step = (uint64_t{1} << 32) + 3};
}

using Op = void (*)(const UpdateRows&, uint64_t, uint64_t);

std::vector<float> run(Op op, const UpdateCase& c, RowFormat format, const OptimizerStep& step,
                       bool weighted) {
  Arena arena(format, kSlots, /*seed=*/5);
  op(c.op(arena, step, weighted), 0, c.row_count);
  return arena.values();
}

void expect_equals_reference(const UpdateCase& c, RowFormat format, const OptimizerStep& step,
                             bool weighted) {
  EXPECT_EQ(first_difference(run(update_rows_reference, c, format, step, weighted),
                             run(update_rows_cpu, c, format, step, weighted)),
            "")
      << "width " << format.width << " precision " << int(format.precision) << " optimizer "
      << int(format.optimizer) << " pooling " << int(c.features[0].pooling)
      << (weighted ? " weighted" : "") << " decay " << step.weight_decay << step.decoupled;
}

class UpdateRowsTest : public OnEachInstructionSet<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Widths, UpdateRowsTest,
                         ::testing::Combine(each_instruction_set(), ::testing::ValuesIn(kWidths)));

TEST_P(UpdateRowsTest, EqualsTheReferenceForEveryOptimizerAndPrecision) {
  const UpdateCase c(parameter(), Pooling::kSum, /*rows=*/13, /*parts=*/1, /*seed=*/1);
  for (Precision precision : kPrecisions) {
    for (OptimizerKind optimizer : kOptimizers) {
      const RowFormat format{parameter(), precision, optimizer};
      expect_equals_reference(c, format, a_step(), false);
      expect_equals_reference(c, format, a_step(0.125f, false), false);
      expect_equals_reference(c, format, a_step(0.125f, true), false);
    }
  }
}

TEST_P(UpdateRowsTest, EqualsTheReferenceForEveryPoolingWeightsAndParts) {
  for (Pooling pooling : kPoolings) {
    for (uint32_t parts : {1, 3}) {
      const UpdateCase c(parameter(), pooling, /*rows=*/13, parts, /*seed=*/2);
      for (bool weighted : {false, true}) {
        expect_equals_reference(c, {.width = parameter()}, a_step(), weighted);
      }
    }
  }
}

// Sums of more than 1,024 occurrences go by blocks, counted over all parts.
TEST_P(UpdateRowsTest, EqualsTheReferenceForRowsOfManyOccurrences) {
  if (parameter() > 200) return;
  for (int64_t copies : {1023, 1024, 1025, 2500}) {
    const UpdateCase c(parameter(), Pooling::kMean, /*rows=*/2, /*parts=*/2, /*seed=*/3, {copies});
    const RowFormat format{parameter(), Precision::kFp32, OptimizerKind::kRowwiseAdagrad};
    expect_equals_reference(c, format, a_step(), true);
  }
}

// Many rows, in slots of no order; every third one occurs twice.
class UpdateBatchTest : public OnEachInstructionSet<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Large, UpdateBatchTest,
                         ::testing::Combine(each_instruction_set(),
                                            ::testing::Values(65535, 65536)));

TEST_P(UpdateBatchTest, EqualsTheReferenceInLargeBatches) {
  const uint32_t rows = parameter();
  const auto slots = random_slots(rows, rows + 5, /*seed=*/1);
  std::vector<uint32_t> unique, begin(rows + 1);
  std::vector<Key> keys;
  for (uint32_t r = 0; r < rows; ++r) {
    unique.insert(unique.end(), r % 3 == 0 ? 2 : 1, r);
    keys.push_back(make_key(2, r));
  }
  std::vector<uint32_t> occurrences(unique.size());
  sort_occurrences(unique.data(), unique.size(), rows, begin.data(), occurrences.data());
  const auto gradients = random_floats(unique.size() * 4, /*seed=*/2);
  const float* part = gradients.data();
  const GradientFeature feature{
      .end = static_cast<uint32_t>(unique.size()), .parts = &part, .stride = 4};
  for (OptimizerKind optimizer : kOptimizers) {
    const RowFormat format{4, Precision::kFp32, optimizer};
    const auto updated = [&](Op op) {
      Arena arena(format, rows + 5, /*seed=*/3);
      op({.format = format,
          .planes = arena.planes(),
          .step = a_step(),
          .slots = slots.data(),
          .keys = keys.data(),
          .occurrence_begin = begin.data(),
          .occurrences = occurrences.data(),
          .features = &feature,
          .feature_count = 1},
         0, rows);
      return arena.values();
    };
    EXPECT_EQ(first_difference(updated(update_rows_reference), updated(update_rows_cpu)), "")
        << "optimizer " << int(optimizer);
  }
}

class UpdateValuesTest : public OnEachInstructionSet<int> {};
INSTANTIATE_TEST_SUITE_P(All, UpdateValuesTest,
                         ::testing::Combine(each_instruction_set(), ::testing::Values(0)));

TEST_P(UpdateValuesTest, NansAndInfinitiesStayInTheirElements) {
  UpdateCase c(33, Pooling::kSum, /*rows=*/13, /*parts=*/1, /*seed=*/1);
  c.single_parts[0][5] = std::numeric_limits<float>::quiet_NaN();
  c.single_parts[0][c.stride + 7] = std::numeric_limits<float>::infinity();
  c.single_parts[0][2 * c.stride + 9] = 3e38f;  // its square overflows
  c.single_parts[0][3 * c.stride + 1] = 1e-42f;
  for (Precision precision : kPrecisions) {
    for (OptimizerKind optimizer : kOptimizers) {
      expect_equals_reference(c, {33, precision, optimizer}, a_step(), false);
    }
  }
}

TEST_P(UpdateValuesTest, PiecesOnThreadsEqualTheWhole) {
  const UpdateCase c(64, Pooling::kMean, /*rows=*/kSlots, /*parts=*/2, /*seed=*/1, {500, 3, 700});
  const RowFormat format{64, Precision::kBf16, OptimizerKind::kAdam};
  const auto whole = run(update_rows_cpu, c, format, a_step(), true);
  Arena arena(format, kSlots, /*seed=*/5);
  const auto op = c.op(arena, a_step(), true);
  Parallel parallel(3);
  parallel.run(7, [&](size_t i) { update_rows_cpu(op, kSlots * i / 7, kSlots * (i + 1) / 7); });
  EXPECT_EQ(first_difference(whole, arena.values()), "");
}

// A feature of one row, `copies` times, each with its own gradient.
std::vector<float> update_one_row(RowFormat format, const std::vector<float>& gradients,
                                  const OptimizerStep& step, uint64_t repeats = 1) {
  const auto copies = static_cast<uint32_t>(gradients.size() / format.width);
  Arena arena(format, 1, /*seed=*/1);
  for (uint32_t d = 0; d < format.width; ++d) arena.set(d, 1.0f);
  std::fill_n(arena.state.data(), arena.state.size(), std::byte{0});
  std::vector<uint32_t> occurrences(copies);
  std::iota(occurrences.begin(), occurrences.end(), 0u);
  const uint32_t begin[] = {0, copies};
  const Slot slot = 0;
  const Key key = make_key(1, 7);
  const float* part = gradients.data();
  const GradientFeature feature{.end = copies, .parts = &part, .stride = format.width};
  UpdateRows op{.format = format,
                .planes = arena.planes(),
                .step = step,
                .slots = &slot,
                .keys = &key,
                .occurrence_begin = begin,
                .occurrences = occurrences.data(),
                .features = &feature,
                .feature_count = 1};
  for (uint64_t n = 0; n < repeats; ++n, ++op.step.step) update_rows_cpu(op, 0, 1);
  return arena.values();
}

TEST_P(UpdateValuesTest, ThreeCopiesOfAnIdAreOneStepOfTheirSum) {
  const RowFormat format{1, Precision::kFp32, OptimizerKind::kAdagrad};
  const auto row = update_one_row(format, {2.0f, 3.0f, 4.0f}, {.learning_rate = 0.5f, .eps = 0});
  EXPECT_EQ(row[0], 0.5f);   // 1 - 0.5 * 9 / 9
  EXPECT_EQ(row[1], 81.0f);  // not 4 + 9 + 16
}

TEST_P(UpdateValuesTest, AHundredThousandCopiesAreSummedTheSameEveryTime) {
  const RowFormat format{5, Precision::kFp32, OptimizerKind::kSgd};
  const auto gradients = random_floats(100000 * 5, /*seed=*/3);
  const auto first = update_one_row(format, gradients, {.learning_rate = 0.001f});
  for (uint32_t d = 0; d < 5; ++d) {
    double sum = 0;
    for (size_t i = d; i < gradients.size(); i += 5) sum += gradients[i];
    EXPECT_NEAR(first[d], 1 - 0.001 * sum, 1e-5);
  }
  for (int run = 0; run < 20; ++run) {
    EXPECT_EQ(update_one_row(format, gradients, {.learning_rate = 0.001f}), first);
  }
}

// Planes of which a page or two are touched; freed with the object.
struct SparseMemory {
  explicit SparseMemory(uint64_t size)
      : bytes(size),
        at(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0)) {}
  SparseMemory(const SparseMemory&) = delete;
  ~SparseMemory() {
    if (there()) munmap(at, bytes);
  }
  bool there() const { return at != MAP_FAILED; }
  std::byte* begin() const { return static_cast<std::byte*>(at); }

  uint64_t bytes;
  void* at;
};

// A row updates alike wherever it stands.
TEST_P(UpdateValuesTest, ReachesSlotsBeyondTwoToThe31Floats) {
  constexpr Slot kFar = (1u << 25) - 1;
  const auto gradient = random_floats(128, /*seed=*/1);
  const float* part = gradient.data();
  const GradientFeature feature{.end = 1, .parts = &part, .stride = 128};
  const uint32_t begin[] = {0, 1}, occurrences[] = {0};
  const Key key = make_key(1, 7);
  for (OptimizerKind optimizer : {OptimizerKind::kRowwiseAdagrad, OptimizerKind::kAdam}) {
    const RowFormat format{128, Precision::kFp32, optimizer};
    const auto updated = [&](RowPlanes planes, Slot slot) {
      update_rows_cpu({.format = format,
                       .planes = planes,
                       .step = a_step(),
                       .slots = &slot,
                       .keys = &key,
                       .occurrence_begin = begin,
                       .occurrences = occurrences,
                       .features = &feature,
                       .feature_count = 1},
                      0, 1);
    };
    Arena near(format, 1, /*seed=*/3);
    const SparseMemory weights((uint64_t{kFar} + 1) * format.weight_bytes());
    const SparseMemory state((uint64_t{kFar} + 1) * format.state_bytes());
    if (!weights.there() || !state.there()) GTEST_SKIP() << "no 48 GiB of addresses";
    std::byte* const w = weights.begin() + uint64_t{kFar} * format.weight_bytes();
    std::byte* const s = state.begin() + uint64_t{kFar} * format.state_bytes();
    std::copy_n(near.weights.data(), near.weights.size(), w);
    std::copy_n(near.state.data(), near.state.size(), s);
    updated(near.planes(), 0);
    updated({weights.begin(), state.begin(), format.weight_bytes(), format.state_bytes()}, kFar);
    EXPECT_TRUE(std::equal(w, w + near.weights.size(), near.weights.data()));
    EXPECT_TRUE(std::equal(s, s + near.state.size(), near.state.data()));
  }
}

// The formulas in double: the reference may share a mistake with the op, this does not.
TEST_P(UpdateValuesTest, AgreesWithTheFormulasInDouble) {
  const double lr = 0.05, eps = 1e-3, b1 = 0.9, b2 = 0.99;
  const std::vector<float> g{0.5f, -0.25f, 2.0f};
  for (auto [decay, decoupled] : {std::pair{0.0, false}, {0.1, false}, {0.1, true}}) {
    const OptimizerStep step{.learning_rate = float(lr),
                             .eps = float(eps),
                             .beta1 = float(b1),
                             .beta2 = float(b2),
                             .correction1 = float(1 - b1),
                             .correction2 = float(1 - b2),
                             .weight_decay = float(decay),
                             .decoupled = decoupled};
    double effective[3], squares = 0;
    for (int d = 0; d < 3; ++d) {
      effective[d] = g[d] + (decoupled ? 0 : decay * 1.0);
      squares += effective[d] * effective[d];
    }
    for (OptimizerKind kind : kOptimizers) {
      const auto row = update_one_row({3, Precision::kFp32, kind}, g, step);
      for (int d = 0; d < 3; ++d) {
        const double e = effective[d], start = decoupled ? 1 - lr * decay : 1;
        const double moved = kind == OptimizerKind::kSgd       ? lr * e
                             : kind == OptimizerKind::kAdagrad ? lr * e / (std::fabs(e) + eps)
                             : kind == OptimizerKind::kRowwiseAdagrad
                                 ? lr * e / (std::sqrt(squares / 3) + eps)
                                 : lr * e / (std::fabs(e) + eps);  // Adam's first step
        EXPECT_NEAR(row[d], start - moved, 1e-6) << "optimizer " << int(kind);
      }
    }
  }
}

class StochasticUpdateTest : public OnEachInstructionSet<Precision> {
 protected:
  RowFormat format() const { return {64, parameter(), OptimizerKind::kSgd}; }
};
INSTANTIATE_TEST_SUITE_P(Halves, StochasticUpdateTest,
                         ::testing::Combine(each_instruction_set(),
                                            ::testing::Values(Precision::kFp16, Precision::kBf16)));

TEST_P(StochasticUpdateTest, DriftsAsExpectedByStepsFarBelowOneUlp) {
  const std::vector<float> gradient(64, 1.0f);
  const float lr = parameter() == Precision::kFp16 ? 1e-5f : 1e-4f;  // an ulp is 50 and 40 of these
  const auto row = update_one_row(format(), gradient, {.learning_rate = lr, .seed = 5}, 10000);
  double sum = 0;
  for (float w : row) sum += w;
  const double expected = 10000.0 * lr;
  EXPECT_NEAR(1 - sum / 64, expected, 0.05 * expected);
}

TEST_P(StochasticUpdateTest, SameSeedSameBitsOtherSeedOrStepOtherBits) {
  const auto gradient = random_floats(64, /*seed=*/1);
  const auto run = [&](uint64_t seed, uint64_t step) {
    return update_one_row(format(), gradient,
                          {.learning_rate = 0.001f, .seed = seed, .step = step});
  };
  EXPECT_EQ(run(1, 1), run(1, 1));
  EXPECT_NE(run(1, 1), run(2, 1));
  EXPECT_NE(run(1, 1), run(1, 2));
}

TEST_P(StochasticUpdateTest, WeightsThatDoNotChangeStay) {
  const auto row =
      update_one_row(format(), std::vector<float>(64, 0.0f), {.learning_rate = 1}, 100);
  EXPECT_EQ(row, std::vector<float>(64, 1.0f));
}

TEST_P(StochasticUpdateTest, ClampsAtTheLargestFinite) {
  const float largest = half_value_reference(parameter(), largest_half(parameter()));
  const auto row = update_one_row(format(), std::vector<float>(64, -3e38f), {.learning_rate = 9});
  EXPECT_EQ(row, std::vector<float>(64, largest));
}

}  // namespace
}  // namespace rowtide
