#pragma once
// tiers — the memory of one group: hot planes, warm records, and a flag byte for each slot.
//
// It knows slots and bytes, neither keys nor steps.  In the hot arena a record lies in two planes,
// as the ops want it; in the warm one back to back (weights, then state), as it moves and as the
// log stores it: warm rows are only ever copied, and one piece costs one miss less.

#include <atomic>
#include <cstring>
#include <span>

#include "kernels/rows.h"
#include "runtime/base/carver.h"
#include "runtime/layout.h"

namespace rowtide {

// A byte a slot.  On the cpu device resident rows have a byte too, so that threads that update
// different rows need no atomic read-modify-write.
inline constexpr uint8_t kDirty = 1;    // changed since the log accepted it
inline constexpr uint8_t kVoid = 2;     // its read failed: the log has the truth
inline constexpr uint8_t kPresent = 4;  // resident rows: the initial value was filled in
inline constexpr uint8_t kUsed = 8;     // resident rows: a step has named it, or it was written

struct GroupTier {
  RowPlanes hot;
  uint8_t* hot_flags = nullptr;  // (hot_slots)
  std::byte* warm = nullptr;     // (warm sets * 32, record_bytes)
  uint8_t* warm_flags = nullptr;
  uint32_t record_bytes = 0;

  GroupTier(const GroupLayout& group, Carver& hbm, Carver& ddr) {
    hot.weight_stride = group.weight_bytes;
    hot.state_stride = group.state_bytes;
    record_bytes = group.record_bytes();
    hot.weights = hbm.take<std::byte>(group.hot_slots() * group.weight_bytes);
    hot.state = hbm.take<std::byte>(group.hot_slots() * group.state_bytes);
    hot_flags = hbm.take<uint8_t>(group.hot_slots());
    warm = ddr.take<std::byte>(uint64_t{group.warm_sets} * kWays * record_bytes);
    warm_flags = ddr.take<uint8_t>(uint64_t{group.warm_sets} * kWays);
  }

  std::byte* weights(Slot slot) const { return hot.weights + uint64_t{slot} * hot.weight_stride; }
  std::byte* state(Slot slot) const { return hot.state + uint64_t{slot} * hot.state_stride; }
  std::byte* warm_record(Slot slot) const { return warm + uint64_t{slot} * record_bytes; }
  std::span<const std::byte> weight_span(Slot slot) const {
    return {weights(slot), hot.weight_stride};
  }
  std::span<const std::byte> state_span(Slot slot) const { return {state(slot), hot.state_stride}; }

  void store(Slot slot, const std::byte* record) const {
    std::memcpy(weights(slot), record, hot.weight_stride);
    std::memcpy(state(slot), record + hot.weight_stride, hot.state_stride);
  }
  void load(Slot slot, std::byte* record) const {
    std::memcpy(record, weights(slot), hot.weight_stride);
    std::memcpy(record + hot.weight_stride, state(slot), hot.state_stride);
  }
  void prefetch_hot(Slot slot) const {
    __builtin_prefetch(hot_flags + slot, 1);
    const std::byte* at = weights(slot);
    for (uint32_t b = 0; b < hot.weight_stride; b += 64) __builtin_prefetch(at + b);
    if (hot.state_stride > 0) __builtin_prefetch(state(slot));
  }

  void prefetch_warm(Slot slot) const {
    __builtin_prefetch(warm_flags + slot, 1);
    const std::byte* at = warm_record(slot);
    for (uint32_t b = 0; b < record_bytes; b += 64) __builtin_prefetch(at + b);
  }

  // Flags of resident rows are looked at by the mover while a step sets them.
  uint8_t flags(Slot slot) const {
    return std::atomic_ref(hot_flags[slot]).load(std::memory_order_relaxed);
  }
  void set_flags(Slot slot, uint8_t flags) const {
    std::atomic_ref(hot_flags[slot]).store(flags, std::memory_order_relaxed);
  }
};

}  // namespace rowtide
