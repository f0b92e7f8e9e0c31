#include <algorithm>
#include <utility>

#include "kernels/directory.h"
#include "kernels/instruction_set.h"
#include "runtime/base/status.h"

namespace rowtide {

#define ROWTIDE_DECLARE(lanes)                                             \
  namespace lanes {                                                        \
  Slot find(const DirectoryView&, Key);                                    \
  uint32_t free_ways(const DirectoryView&, uint32_t set);                  \
  uint32_t ways_before(const DirectoryView&, uint32_t set, uint32_t step); \
  void probe(const DirectoryProbe&);                                       \
  }
ROWTIDE_DECLARE(scalar)
ROWTIDE_DECLARE(avx2)
ROWTIDE_DECLARE(avx512)
#undef ROWTIDE_DECLARE

namespace {

constexpr uint64_t kLine = 64;

// Takes `count` values from the memory, in whole lines.
template <typename T>
T* carve(std::byte*& memory, uint64_t count) {
  T* array = reinterpret_cast<T*>(memory);
  memory += (count * sizeof(T) + kLine - 1) / kLine * kLine;
  return array;
}

}  // namespace

DirectoryView DirectoryView::over(std::byte* memory, uint32_t sets, uint32_t set_word_count,
                                  uint64_t salt) {
  ROWTIDE_CHECK(sets <= kNoSlot / kWays && set_word_count <= kMaxSetWords);
  ROWTIDE_CHECK(reinterpret_cast<uintptr_t>(memory) % kLine == 0);
  const uint64_t slots = uint64_t{sets} * kWays;
  DirectoryView view{.set_word_count = set_word_count, .sets = sets, .salt = salt};
  view.tags = carve<uint16_t>(memory, slots);
  view.keys = carve<Key>(memory, slots);
  view.words = carve<uint32_t>(memory, slots);
  view.last = carve<uint32_t>(memory, slots);
  view.set_words = carve<uint32_t>(memory, uint64_t{sets} * set_word_count);
  return view;
}

uint64_t DirectoryView::bytes(uint32_t sets, uint32_t set_word_count) {
  const uint64_t slots = uint64_t{sets} * kWays;
  const uint64_t slot_bytes = sizeof(*tags) + sizeof(*keys) + sizeof(*words) + sizeof(*last);
  const uint64_t set_bytes = uint64_t{sets} * set_word_count * sizeof(*set_words);
  return slots * slot_bytes + (set_bytes + kLine - 1) / kLine * kLine;
}

Slot directory_find(const DirectoryView& view, Key key) {
  return ROWTIDE_FOR_THIS_CPU(find)(view, key);
}

void directory_prefetch_set(const DirectoryView& view, uint32_t set) {
  constexpr uint32_t kInLine = kLine / sizeof(uint32_t);
  const uint64_t first = uint64_t{set} * kWays;
  __builtin_prefetch(view.tags + first, 1);
  for (uint64_t slot = first; slot < first + kWays; slot += kInLine) {
    __builtin_prefetch(view.last + slot, 1);
    __builtin_prefetch(view.words + slot, 1);
  }
}

uint32_t directory_free(const DirectoryView& view, uint32_t set) {
  return ROWTIDE_FOR_THIS_CPU(free_ways)(view, set);
}

uint32_t directory_before(const DirectoryView& view, uint32_t set, uint32_t step) {
  return ROWTIDE_FOR_THIS_CPU(ways_before)(view, set, step);
}

void directory_claim(const DirectoryView& view, Slot slot, Key key, uint32_t word, uint32_t last) {
  ROWTIDE_CHECK(slot / kWays == view.set_of(key));
  view.tags[slot] = view.tag_of(key);
  view.words[slot] = word;
  view.last[slot] = last;
}

Key directory_name(const DirectoryView& view, Slot slot, Key key) {
  return std::exchange(view.keys[slot], key);
}

void directory_put(const DirectoryView& view, Slot slot, Key key, uint32_t word, uint32_t last) {
  ROWTIDE_CHECK(view.tags[slot] == kFreeTag);
  directory_claim(view, slot, key, word, last);
  directory_name(view, slot, key);
}

void directory_take(const DirectoryView& view, Slot slot) {
  ROWTIDE_CHECK(view.tags[slot] != kFreeTag);
  view.tags[slot] = kFreeTag;
}

void directory_probe_cpu(const DirectoryProbe& op) {
  if (op.view.sets == 0) {
    std::fill_n(op.slots, op.n, kNoSlot);
    return;
  }
  ROWTIDE_FOR_THIS_CPU(probe)(op);
}

}  // namespace rowtide
