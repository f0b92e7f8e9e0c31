#include "runtime/transit.h"

namespace rowtide {
namespace {

uint32_t set_count(uint32_t slots) { return (slots + kWays - 1) / kWays; }

}  // namespace

Transit::Transit(uint32_t slots, uint32_t set_words, uint64_t salt, Carver& carver)
    : mask_(std::bit_ceil(slots * 2 + 2) - 1), salt_(salt), slots_(slots) {
  const uint32_t sets = set_count(slots);
  view_.set_word_count = set_words;
  view_.sets = sets;
  view_.tags = carver.take<uint16_t>(uint64_t{sets} * kWays);
  view_.keys = carver.take<Key>(uint64_t{sets} * kWays);
  view_.words = carver.take<uint32_t>(uint64_t{sets} * kWays);
  view_.last = carver.take<uint32_t>(uint64_t{sets} * kWays);
  view_.set_words = carver.take<uint32_t>(uint64_t{sets} * set_words);
  taken_ = carver.take<uint64_t>((slots + 63) / 64);
  table_ = carver.take<uint32_t>(uint64_t{mask_} + 1);
}

uint32_t Transit::find(Key key) const {
  if (used_ == 0) return kNoSlot;
  for (uint32_t at = home(key); table_[at] != 0; at = (at + 1) & mask_) {
    if (view_.keys[table_[at] - 1] == key) return table_[at] - 1;
  }
  return kNoSlot;
}

uint32_t Transit::put(Key key, uint32_t word, uint32_t last) {
  ROWTIDE_CHECK(used_ < slots_);
  while (taken_[first_free_] == ~uint64_t{0}) ++first_free_;
  const uint32_t slot =
      first_free_ * 64 + static_cast<uint32_t>(std::countr_one(taken_[first_free_]));
  taken_[first_free_] |= uint64_t{1} << slot % 64;
  view_.tags[slot] = view_.tag_of(key);
  view_.keys[slot] = key;
  view_.words[slot] = word;
  view_.last[slot] = last;
  uint32_t at = home(key);
  while (table_[at] != 0) at = (at + 1) & mask_;
  table_[at] = slot + 1;
  ++used_;
  return slot;
}

void Transit::take(uint32_t slot) {
  uint32_t hole = home(view_.keys[slot]);
  while (table_[hole] != slot + 1) hole = (hole + 1) & mask_;
  // Linear probing without tombstones: later entries of the run move up into the hole.
  for (uint32_t at = (hole + 1) & mask_; table_[at] != 0; at = (at + 1) & mask_) {
    const uint32_t wanted = home(view_.keys[table_[at] - 1]);
    if (((at - wanted) & mask_) < ((at - hole) & mask_)) continue;
    table_[hole] = table_[at];
    hole = at;
  }
  table_[hole] = 0;
  taken_[slot / 64] &= ~(uint64_t{1} << slot % 64);
  view_.tags[slot] = kFreeTag;
  first_free_ = first_free_ < slot / 64 ? first_free_ : slot / 64;
  --used_;
}

}  // namespace rowtide
