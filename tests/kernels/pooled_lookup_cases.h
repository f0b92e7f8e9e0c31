#pragma once
// The table of cases that every implementation of pooled_lookup is held against, CPU and GPU.
// Needs no gtest.

#include <cstddef>
#include <iterator>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/pooled_lookup.h"
#include "tests/reference/rows.h"
#include "tests/support/bags.h"

namespace rowtide {

struct PooledLookupCase {
  std::string name;
  RowFormat format;
  Pooling pooling = Pooling::kSum;
  bool weighted = false;
  std::vector<int64_t> lengths;  // of the bags
  int64_t first = 0;             // id of the batch at which they begin
  bool unusual = false;          // zeros, subnormals, infinities, NaN instead of plain numbers
};

inline void PrintTo(const PooledLookupCase& test, std::ostream* out) { *out << test.name; }

// The arrays of a case.
class PooledLookupInput {
 public:
  static constexpr uint32_t kSlots = 64, kRows = 40;

  explicit PooledLookupInput(const PooledLookupCase& test)
      : slots(random_slots(kRows, kSlots, /*seed=*/2)),
        bags(test.lengths, kRows, test.first, /*seed=*/1),
        weights(size_t{kSlots} * test.format.weight_bytes()),
        test_(test) {
    const auto plain = random_floats(size_t{kSlots} * test.format.width, /*seed=*/3);
    for (size_t i = 0; i < plain.size(); ++i) set(i, test.unusual ? unusual(i) : plain[i]);
  }

  // The op on these arrays, without an output.
  PooledLookup op() {
    return {.format = test_.format,
            .planes = {weights.data(), nullptr, test_.format.weight_bytes(), 0},
            .slots = slots.data(),
            .unique = bags.unique.data(),
            .offsets = bags.offsets.data(),
            .weights = test_.weighted ? bags.weights.data() : nullptr,
            .pooling = test_.pooling,
            .out_stride = test_.format.width + 3,
            .bags = bags.bags()};
  }
  uint64_t rows_out() const { return test_.pooling == Pooling::kNone ? bags.ids() : bags.bags(); }

  std::vector<Slot> slots;
  Bags bags;
  std::vector<std::byte> weights;

 private:
  // Subnormals are not flushed, -0 + +0 is +0, infinities cancel to NaN.
  static float unusual(size_t i) {
    const float infinity = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float values[] = {0.0f,      -0.0f, 1e-45f, -1e-45f, 1e-39f,   6e-8f,  -6e-8f, infinity,
                            -infinity, nan,   3e38f,  3e38f,   65504.0f, 1e-40f, -1.0f};
    return values[i * i % std::size(values)];
  }
  void set(size_t i, float value) {
    if (test_.format.precision == Precision::kFp32) {
      std::memcpy(&weights[i * 4], &value, 4);
    } else {
      const uint16_t half = nearest_reference(test_.format.precision, value);
      std::memcpy(&weights[i * 2], &half, 2);
    }
  }

  PooledLookupCase test_;
};

inline std::string name_of(const PooledLookupCase& test, const std::string& shape) {
  constexpr const char* kPrecision[] = {"Fp32", "Fp16", "Bf16"};
  constexpr const char* kPooling[] = {"Sum", "Mean", "None"};
  return shape + kPrecision[static_cast<int>(test.format.precision)] +
         kPooling[static_cast<int>(test.pooling)] + (test.weighted ? "Weighted" : "");
}

// Every width, every batch size just off a lane, a warp and a block, and unusual values; each in
// all precisions, with the given poolings, with and without weights.
inline std::vector<PooledLookupCase> pooled_lookup_cases(const std::vector<Pooling>& poolings) {
  std::vector<PooledLookupCase> cases;
  const auto add = [&](const std::string& shape, PooledLookupCase test) {
    for (const Precision precision : kPrecisions) {
      for (const Pooling pooling : poolings) {
        for (const bool weighted : {false, true}) {
          test.format.precision = precision;
          test.pooling = pooling;
          test.weighted = weighted;
          test.name = name_of(test, shape);
          cases.push_back(test);
        }
      }
    }
  };
  for (const uint32_t width : kWidths) {
    add("Width" + std::to_string(width),
        {.format = {.width = width}, .lengths = {0, 1, 2, 0, 1, 1, 40, 7, 3, 0}, .first = 5});
  }
  for (const size_t bags : {0, 1, 31, 32, 33, 255, 256, 257}) {
    add("Bags" + std::to_string(bags),
        {.format = {.width = 4}, .lengths = std::vector<int64_t>(bags, 1)});
  }
  add("Unusual", {.format = {.width = 37}, .lengths = {1, 1, 2, 3, 9}, .unusual = true});
  return cases;
}

}  // namespace rowtide
