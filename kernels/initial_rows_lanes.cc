#include "kernels/initial_rows.h"
#include "kernels/lanes.h"
#include "kernels/philox.h"

namespace rowtide::ROWTIDE_LANES {
namespace {

constexpr uint32_t kBlocks = 16;  // of Philox at once, to fill vectors
constexpr uint32_t kValues = 4 * kBlocks;

// The values of elements d, d + 1, ... of the row.
void initial_values(const InitialRow& op, Key key, uint32_t d, float* values) {
  for (uint32_t b = 0; b < kBlocks; ++b) {
    const PhiloxBlock r = philox4x32_10(op.seed, initial_counter(key, d / 4 + b));
    for (uint32_t n = 0; n < 4; ++n) {
      const float u = static_cast<float>(static_cast<int32_t>(r.word[n] >> 8)) * 0x1p-24f;
      values[4 * b + n] = (2.0f * u - 1.0f) * op.scale;
    }
  }
}

}  // namespace

void initial_row(const InitialRow& op, Key key, std::byte* weights) {
  float values[kValues];
  for (uint32_t d = 0; d < op.format.width; d += kValues) {
    initial_values(op, key, d, values);
    const uint32_t rest = op.format.width - d;
    const uint32_t count = rest < kValues ? rest : kValues;
    auto* halves = reinterpret_cast<uint16_t*>(weights) + d;
    switch (op.format.precision) {
      case Precision::kFp32:
        __builtin_memcpy(weights + uint64_t{d} * 4, values, count * sizeof(float));
        break;
      case Precision::kFp16:
        for (uint32_t n = 0; n < count; ++n) halves[n] = nearest_fp16(values[n]);
        break;
      case Precision::kBf16:
        for (uint32_t n = 0; n < count; ++n) halves[n] = nearest_bf16(values[n]);
        break;
    }
  }
}

}  // namespace rowtide::ROWTIDE_LANES
