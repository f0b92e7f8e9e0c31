#include "kernels/initial_rows.h"
#include "kernels/philox_lanes.h"

namespace rowtide::ROWTIDE_LANES {
namespace {

// The values of elements d, d + 1, ... of the row.
void initial_values(const InitialRow& op, Key key, uint32_t d, float* values) {
  uint32_t random[kRandomWords];
  random_words<2>(op.seed, initial_counter(key, d / 4), random);
  for (uint32_t n = 0; n < kRandomWords; ++n) {
    const float u = static_cast<float>(static_cast<int32_t>(random[n] >> 8)) * 0x1p-24f;
    values[n] = (2.0f * u - 1.0f) * op.scale;
  }
}

}  // namespace

void initial_row(const InitialRow& op, Key key, std::byte* weights) {
  float values[kRandomWords];
  for (uint32_t d = 0; d < op.format.width; d += kRandomWords) {
    initial_values(op, key, d, values);
    const uint32_t rest = op.format.width - d;
    const uint32_t count = rest < kRandomWords ? rest : kRandomWords;
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
