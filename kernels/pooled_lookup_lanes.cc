#include "kernels/lanes.h"
#include "kernels/pooled_lookup.h"

namespace rowtide::ROWTIDE_LANES {
namespace {

constexpr uint32_t kPanel = 8;  // vectors in registers at once

// Rows come from anywhere in memory.  Each is asked for this long before it is added: far enough to
// hide a miss, near enough that a core's line fill buffers are not overrun.
constexpr uint32_t kBytesAhead = 2048;
constexpr uint32_t kMostRowsAhead = 24;
constexpr uint32_t kMostBytesOfARow = 1024;  // the hardware prefetcher sees the rest coming

// An output larger than an L2 cache is written past it: no line is read only to be overwritten.
// That gives a half more rows/s, and a fifth more with the time of the reader that follows; rows
// of more than 256 bytes lose by it, they have their lines asked for instead.
constexpr uint64_t kLeastStreamedBytes = 1 << 20;
constexpr uint32_t kMostStreamedRow = 256;
constexpr uint64_t kBagsAhead = 8;

template <uint32_t K>
bool streams(const PooledLookup& op) {
  const uint64_t row = op.format.width * sizeof(float), vector = K * sizeof(float);
  const uint64_t stride = op.out_stride * sizeof(float);
  return row <= kMostStreamedRow && op.bags * stride >= kLeastStreamedBytes && row % vector == 0 &&
         stride % vector == 0 && reinterpret_cast<uintptr_t>(op.out) % vector == 0;
}

template <typename Element>
struct Rows {
  using Stored = typename Element::Stored;

  // Asks for the first rows of ids [begin, end).
  Rows(const PooledLookup& op, int64_t begin_id, int64_t end_id)
      : base(op.planes.weights),
        stride(op.planes.weight_stride),
        slots(op.slots),
        unique(op.unique),
        end(end_id),
        bytes(op.format.width * sizeof(Stored)) {
    ahead = kBytesAhead / bytes + 2;
    if (ahead > kMostRowsAhead) ahead = kMostRowsAhead;
    if (bytes > kMostBytesOfARow) bytes = kMostBytesOfARow;
    for (int64_t i = begin_id - ahead; i < begin_id; ++i) prefetch_after(i);
  }

  const Stored* at(uint32_t index) const {
    return reinterpret_cast<const Stored*>(base + slots[index] * stride);
  }
  void prefetch_after(int64_t i) const {
    if (i + ahead >= end || unique[i + ahead] == kSkipped) return;
    prefetch_lines(at(unique[i + ahead]), bytes);
  }

  const std::byte* base;
  uint64_t stride;
  const Slot* slots;
  const uint32_t* unique;
  int64_t end;  // of the ids that this call reads
  uint32_t bytes;
  uint32_t ahead;
};

template <typename Element, bool kWeighted, uint32_t K, uint32_t N>
[[gnu::always_inline]] inline void pool_bag(const PooledLookup& op, const Rows<Element>& rows,
                                            uint64_t bag, Panel<K, N> panel, bool streamed) {
  const int64_t begin = op.offsets[bag], end = op.offsets[bag + 1];
  Floats<K> sum[N] = {};
  for (int64_t i = begin; i < end; ++i) {
    if (panel.first == 0) rows.prefetch_after(i);
    if (rows.unique[i] == kSkipped) continue;
    const auto* row = rows.at(rows.unique[i]);
    for (uint32_t n = 0; n < N; ++n) {
      Floats<K> value = Element::template load<K>(row + panel.column(n));
      if constexpr (kWeighted) value = op.weights[i] * value;
      sum[n] = sum[n] + value;
    }
  }
  if (op.pooling == Pooling::kMean && end > begin) {
    const float length = static_cast<float>(end - begin);
    for (uint32_t n = 0; n < N; ++n) sum[n] = sum[n] / length;
  }
  float* out = op.out + bag * op.out_stride;
  if (streamed) {
    for (uint32_t n = 0; n < N; ++n) stream<K>(out + panel.column(n), sum[n]);
    return;
  }
  if (panel.first == 0 && bag + kBagsAhead < op.bags) {
    prefetch_lines(out + kBagsAhead * op.out_stride, op.format.width * sizeof(float));
  }
  for (uint32_t n = 0; n < N; ++n) store<K>(out + panel.column(n), sum[n]);
}

template <typename Element, bool kWeighted, uint32_t K, uint32_t N>
void pool_bags(const PooledLookup& op, uint64_t begin, uint64_t end) {
  const Rows<Element> rows(op, op.offsets[begin], op.offsets[end]);
  const auto panel = Panel<K, N>::ending_at(0, op.format.width);
  const bool streamed = streams<K>(op);
  for (uint64_t bag = begin; bag < end; ++bag) {
    pool_bag<Element, kWeighted>(op, rows, bag, panel, streamed);
  }
  if (streamed) finish_streams();
}

// Rows wider than one panel: all panels of a bag before the next bag, while its rows are in cache.
template <typename Element, bool kWeighted>
void pool_wide(const PooledLookup& op, uint64_t begin, uint64_t end) {
  constexpr uint32_t kStep = kPanel * kVector;
  const Rows<Element> rows(op, op.offsets[begin], op.offsets[end]);
  const uint32_t width = op.format.width;
  for (uint64_t bag = begin; bag < end; ++bag) {
    uint32_t column = 0;
    for (; column + kStep <= width; column += kStep) {
      const auto panel = Panel<kVector, kPanel>::ending_at(column, column + kStep);
      pool_bag<Element, kWeighted>(op, rows, bag, panel, false);
    }
    if (column == width) continue;
    const auto panel = Panel<kVector, kPanel>::ending_at(width - kStep, width);
    pool_bag<Element, kWeighted>(op, rows, bag, panel, false);
  }
}

template <typename Element, bool kWeighted>
void pool(const PooledLookup& op, uint64_t begin, uint64_t end) {
  using PoolBags = void (*)(const PooledLookup&, uint64_t, uint64_t);
  constexpr PoolBags kByVectors[kPanel] = {
      pool_bags<Element, kWeighted, kVector, 1>, pool_bags<Element, kWeighted, kVector, 2>,
      pool_bags<Element, kWeighted, kVector, 3>, pool_bags<Element, kWeighted, kVector, 4>,
      pool_bags<Element, kWeighted, kVector, 5>, pool_bags<Element, kWeighted, kVector, 6>,
      pool_bags<Element, kWeighted, kVector, 7>, pool_bags<Element, kWeighted, kVector, 8>};
  const uint32_t width = op.format.width;
  if (width > kPanel * kVector) return pool_wide<Element, kWeighted>(op, begin, end);
  if (width >= kVector) return kByVectors[(width - 1) / kVector](op, begin, end);
  if (kVector > 8 && width >= 8) return pool_bags<Element, kWeighted, kUpTo8, 2>(op, begin, end);
  if (kVector > 4 && width >= 4) return pool_bags<Element, kWeighted, 4, 2>(op, begin, end);
  if (width == 3) return pool_bags<Element, kWeighted, 1, 3>(op, begin, end);
  return pool_bags<Element, kWeighted, 1, 2>(op, begin, end);
}

template <typename Element>
void pool(const PooledLookup& op, uint64_t begin, uint64_t end) {
  op.weights ? pool<Element, true>(op, begin, end) : pool<Element, false>(op, begin, end);
}

// One row of a sequence: widened, and multiplied if there are weights.
template <typename Element, uint32_t K>
inline uint32_t copy_columns(const typename Element::Stored* row, const float* weight, float* out,
                             uint32_t column, uint32_t width) {
  for (; column + K <= width; column += K) {
    Floats<K> value = Element::template load<K>(row + column);
    if (weight) value = *weight * value;
    store<K>(out + column, value);
  }
  return column;
}

template <typename Element>
void copy_rows(const PooledLookup& op, uint64_t begin, uint64_t end) {
  const int64_t first = op.offsets[0];
  const uint32_t width = op.format.width;
  const Rows<Element> rows(op, first + static_cast<int64_t>(begin),
                           first + static_cast<int64_t>(end));
  for (uint64_t n = begin; n < end; ++n) {
    const int64_t i = first + static_cast<int64_t>(n);
    rows.prefetch_after(i);
    float* out = op.out + n * op.out_stride;
    if (op.unique[i] == kSkipped) {
      __builtin_memset(out, 0, width * sizeof(float));
      continue;
    }
    const auto* row = rows.at(op.unique[i]);
    const float* weight = op.weights ? op.weights + i : nullptr;
    const uint32_t column = copy_columns<Element, kVector>(row, weight, out, 0, width);
    copy_columns<Element, 1>(row, weight, out, column, width);
  }
}

}  // namespace

void pooled_lookup(const PooledLookup& op, uint64_t begin, uint64_t end) {
  switch (op.format.precision) {
    case Precision::kFp32:
      return pool<Fp32>(op, begin, end);
    case Precision::kFp16:
      return pool<Fp16>(op, begin, end);
    case Precision::kBf16:
      return pool<Bf16>(op, begin, end);
  }
}

void sequence_lookup(const PooledLookup& op, uint64_t begin, uint64_t end) {
  switch (op.format.precision) {
    case Precision::kFp32:
      return copy_rows<Fp32>(op, begin, end);
    case Precision::kFp16:
      return copy_rows<Fp16>(op, begin, end);
    case Precision::kBf16:
      return copy_rows<Bf16>(op, begin, end);
  }
}

}  // namespace rowtide::ROWTIDE_LANES
