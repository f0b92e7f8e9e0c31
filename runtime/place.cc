#include "runtime/place.h"

#include <algorithm>
#include <bit>

#include "runtime/base/salt.h"

namespace rowtide {
namespace {

constexpr uint32_t kAhead = 8;         // rows whose sets are fetched ahead of their turn
constexpr uint32_t kAgeAt = 1u << 31;  // ticks are lowered long before they would wrap
constexpr uint32_t kAgeBy = 1u << 30;

DirectoryView carve_directory(uint32_t sets, uint32_t set_words, uint64_t salt, Carver& carver) {
  std::byte* memory = carver.take<std::byte>(DirectoryView::bytes(sets, set_words));
  if (memory == nullptr) return {};
  return DirectoryView::over(memory, sets, set_words, salt);
}

}  // namespace

GroupDirectory::GroupDirectory(const Layout& layout, uint32_t group, Carver& hbm, Carver& ddr)
    : policy_(layout.policy),
      most_rows_(layout.groups[group].most_rows),
      transit_base_(layout.groups[group].transit_base()),
      hot_(carve_directory(layout.groups[group].hot_sets, policy_->set_words, 11 + group, hbm)),
      warm_(carve_directory(layout.groups[group].warm_sets, policy_->set_words, 77 + group, ddr)),
      transit_(layout.groups[group].transit_slots, policy_->set_words, process_salt(), hbm) {
  const GroupLayout& shape = layout.groups[group];
  for (uint32_t f = 0; f < layout.features.size(); ++f) {
    const TableLayout& table = layout.tables[layout.features[f].table];
    if (table.group == group && !table.resident) features_.push_back(f);
  }
  set_demand_ = hbm.take<SetDemand>(shape.hot_sets);
  // What grows with the transit slots is part of the hot tier: so the least of one budget does not
  // depend on the other.
  expired_miss_ = hbm.take<uint32_t>(shape.transit_slots);
  moves_ = hbm.take<Move>(3 * shape.most_rows + 2 * uint64_t{shape.transit_slots});
  misses_ = ddr.take<uint32_t>(shape.most_rows);
  miss_keys_ = ddr.take<Key>(shape.most_rows);
  warm_slot_ = ddr.take<Slot>(shape.most_rows);
  victim_slots_ = ddr.take<Slot>(shape.most_rows);
  victim_keys_ = ddr.take<Key>(shape.most_rows);
  victim_words_ = ddr.take<uint32_t>(shape.most_rows);
}

template <typename Visit>
void GroupDirectory::for_each_range(const KnownBatch& batch, Visit&& visit) const {
  for (uint32_t f : features_) {
    visit(batch.rows.feature_rows[f], batch.rows.feature_rows[f + 1]);
  }
}

bool GroupDirectory::probe(const PlaceBatch& batch, uint32_t over) {
  forget();
  const Key* keys = batch.known->rows.keys;
  for_each_range(*batch.known, [&](uint32_t begin, uint32_t end) {
    directory_probe_cpu({hot_, keys + begin, batch.slots + begin, end - begin});
    std::fill(batch.found + begin, batch.found + end, Found::kHot);
    for (uint32_t u = begin; u < end; ++u) {
      if (batch.slots[u] != kNoSlot) continue;
      const uint32_t transit = transit_.find(keys[u]);
      if (transit != kNoSlot && transit_.view().last[transit] > over) {
        batch.slots[u] = transit_base_ + transit;
        continue;
      }
      misses_[miss_count_] = u;
      miss_keys_[miss_count_++] = keys[u];
    }
  });
  count_demand(batch, over);
  if (demand_ > had_) forget();
  return demand_ <= had_;
}

void GroupDirectory::forget() {
  for (uint32_t m = 0; m < miss_count_; ++m) set_demand_[hot_.set_of(miss_keys_[m])] = {};
  miss_count_ = 0;
}

// Of a set's misses, those beyond its free slots and those that may go must take transit slots.
void GroupDirectory::count_demand(const PlaceBatch& batch, uint32_t over) {
  for (uint32_t m = 0; m < miss_count_; ++m) ++set_demand_[hot_.set_of(miss_keys_[m])].misses;
  for_each_range(*batch.known, [&](uint32_t begin, uint32_t end) {
    for (uint32_t u = begin; miss_count_ > 0 && u < end; ++u) {
      const Slot slot = batch.slots[u];
      if (slot >= transit_base_) continue;
      SetDemand& demand = set_demand_[slot / kWays];
      if (demand.misses > 0) demand.hits |= 1u << slot % kWays;
    }
  });
  demand_ = 0;
  for (uint32_t m = 0; m < miss_count_; ++m) {
    const uint32_t set = hot_.set_of(miss_keys_[m]);
    SetDemand& demand = set_demand_[set];
    if (demand.misses == 0) continue;  // counted with an earlier row of the set
    const uint32_t room = std::popcount(directory_free(hot_, set) |
                                        (directory_before(hot_, set, over) & ~demand.hits));
    demand.forced = demand.misses > room ? demand.misses - room : 0;
    demand.misses = 0;
    demand_ += demand.forced;
  }
  had_ = transit_.slots() - transit_.used();
  transit_.for_each([&](Key, uint32_t i) { had_ += transit_.view().last[i] <= over; });
}

// Before a batch, so that no row is on its way between two tiers.
void GroupDirectory::age_ticks() {
  if (tick_ + most_rows_ < kAgeAt) return;
  for (const DirectoryView* view : {&hot_, &warm_, &transit_.view()}) policy_->age(*view, kAgeBy);
  tick_ -= kAgeBy;
}

Touch GroupDirectory::touch(const PlaceBatch& batch, uint32_t row) {
  ++tick_;
  const uint32_t next = batch.known->next == nullptr ? kNeverUsed : batch.known->next[row];
  const uint32_t count = batch.occurrence_begin[row + 1] - batch.occurrence_begin[row];
  return {.step = batch.step, .count = count, .next_use = next, .tick = tick_};
}

std::span<const Move> GroupDirectory::place(const PlaceBatch& batch, uint32_t over) {
  uint64_t spare = had_ - demand_;  // transit slots left for refused rows
  move_count_ = 0;
  age_ticks();
  mark_warm(batch);
  empty_transit(batch, over);
  touch_hits(batch);
  for (uint32_t m = 0; m < miss_count_; ++m) {
    if (m + kAhead < miss_count_) {
      directory_prefetch_set(hot_, hot_.set_of(miss_keys_[m + kAhead]));
      const Slot warm = warm_slot_[m + kAhead];
      if (warm != kNoSlot) __builtin_prefetch(warm_.words + warm);
    }
    choose_slot(batch, m, over, spare);
  }
  for (uint32_t m = 0; m < miss_count_ + 2 * kAhead; ++m) {
    if (m < miss_count_ && victim_slots_[m] != kNoSlot) {
      __builtin_prefetch(hot_.keys + victim_slots_[m], 1);
    }
    // What falls below 0 wraps to a huge number, and is no miss either.
    if (const uint32_t n = m - kAhead; n < miss_count_) name_slot(batch, n);
    if (const uint32_t n = m - 2 * kAhead; n < miss_count_) move_up(batch, n);
  }
  forget();
  return {moves_, move_count_};
}

void GroupDirectory::touch_hits(const PlaceBatch& batch) {
  for_each_range(*batch.known, [&](uint32_t begin, uint32_t end) {
    for (uint32_t u = begin; u < end; ++u) {
      if (u + kAhead < end && batch.slots[u + kAhead] < transit_base_) {
        __builtin_prefetch(hot_.last + batch.slots[u + kAhead], 1);
        __builtin_prefetch(hot_.words + batch.slots[u + kAhead], 1);
      }
      const Slot slot = batch.slots[u];
      if (slot == kNoSlot) continue;
      const bool in_set = slot < transit_base_;
      const DirectoryView& view = in_set ? hot_ : transit_.view();
      const Slot at = in_set ? slot : slot - transit_base_;
      view.last[at] = batch.step + 1;
      policy_->hit(view, at, touch(batch, u));
    }
  });
}

// The batch's rows in warm are no victims: each leaves by its own move up.
void GroupDirectory::mark_warm(const PlaceBatch& batch) {
  directory_probe_cpu({warm_, miss_keys_, warm_slot_, miss_count_});
  for (uint32_t m = 0; m < miss_count_; ++m) {
    if (warm_slot_[m] != kNoSlot) {
      warm_.last[warm_slot_[m]] = batch.step + 1;
      batch.found[misses_[m]] = Found::kWarm;
      continue;
    }
    batch.found[misses_[m]] = Found::kBelow;
    const uint32_t transit = transit_.find(miss_keys_[m]);
    if (transit != kNoSlot) {  // expired: it goes down first, and comes up again
      expired_miss_[transit] = m + 1;
      batch.found[misses_[m]] = Found::kHot;
    }
  }
}

void GroupDirectory::empty_transit(const PlaceBatch& batch, uint32_t over) {
  transit_.for_each([&](Key key, uint32_t i) {
    if (transit_.view().last[i] > over) return;
    const uint32_t word = transit_.view().words[i];
    transit_.take(i);
    const Slot warm = sink(key, word, transit_base_ + i, batch.step);
    if (expired_miss_[i] == 0) return;
    warm_slot_[expired_miss_[i] - 1] = warm;
    if (warm != kNoSlot) warm_.last[warm] = batch.step + 1;
    expired_miss_[i] = 0;
  });
}

// Takes a hot slot for the miss; whose it was name_slot() tells.
void GroupDirectory::choose_slot(const PlaceBatch& batch, uint32_t m, uint32_t over,
                                 uint64_t& spare) {
  const uint32_t u = misses_[m];
  const Key key = miss_keys_[m];
  const uint32_t set = hot_.set_of(key);
  const uint32_t free = directory_free(hot_, set);
  // Rows of the batch that were hit or put have `last` above `over`, so they are no victims.
  const uint32_t may_go = free == 0 ? directory_before(hot_, set, over) : 0;
  uint32_t& forced = set_demand_[set].forced;
  const bool refuse =
      batch.refused != nullptr && batch.refused[u] != 0 && (forced > 0 || spare > 0);
  // A row of the batch in warm is no victim there, so its word stays until it moves.
  const uint32_t word = warm_slot_[m] == kNoSlot ? 0 : warm_.words[warm_slot_[m]];
  victim_slots_[m] = kNoSlot;
  if (refuse || (free == 0 && may_go == 0)) {
    forced > 0 ? --forced : --spare;
    ++transit_rows_;
    const uint32_t i = transit_.put(key, word, batch.step + 1);
    policy_->insert(transit_.view(), i, touch(batch, u));
    batch.slots[u] = transit_base_ + i;
    return;
  }
  Slot slot = set * kWays + static_cast<Slot>(std::countr_zero(free));
  if (free == 0) {
    slot = policy_->victim(hot_, set, may_go, batch.step);
    victim_slots_[m] = slot;
    victim_words_[m] = hot_.words[slot];
  }
  directory_claim(hot_, slot, key, word, batch.step + 1);
  policy_->insert(hot_, slot, touch(batch, u));
  batch.slots[u] = slot;
}

void GroupDirectory::name_slot(const PlaceBatch& batch, uint32_t m) {
  const Slot slot = batch.slots[misses_[m]];
  if (slot < transit_base_) victim_keys_[m] = directory_name(hot_, slot, miss_keys_[m]);
  if (warm_.sets == 0) return;
  if (victim_slots_[m] != kNoSlot) directory_prefetch_set(warm_, warm_.set_of(victim_keys_[m]));
  if (warm_slot_[m] != kNoSlot) __builtin_prefetch(warm_.tags + warm_slot_[m], 1);
}

// The victim goes down, and then the row up.
void GroupDirectory::move_up(const PlaceBatch& batch, uint32_t m) {
  const uint32_t u = misses_[m];
  if (victim_slots_[m] != kNoSlot) {
    sink(victim_keys_[m], victim_words_[m], victim_slots_[m], batch.step);
  }
  const Slot from_warm = warm_slot_[m];
  if (from_warm != kNoSlot) directory_take(warm_, from_warm);
  moves_[move_count_++] = {.key = miss_keys_[m],
                           .from = from_warm == kNoSlot ? Place::kLog : Place::kWarm,
                           .to = Place::kHot,
                           .source = from_warm,
                           .target = batch.slots[u],
                           .row = u};
}

// Returns the warm slot, or kNoSlot if the row went to the log.
Slot GroupDirectory::sink(Key key, uint32_t word, Slot source, uint32_t step) {
  Slot target = kNoSlot;
  if (warm_.sets > 0) {
    const uint32_t set = warm_.set_of(key);
    const uint32_t free = directory_free(warm_, set);
    const uint32_t may_go = free == 0 ? directory_before(warm_, set, step) : 0;
    if (free != 0) {
      target = set * kWays + static_cast<Slot>(std::countr_zero(free));
    } else if (may_go != 0) {
      target = policy_->victim(warm_, set, may_go, step);
      moves_[move_count_++] = {
          .key = warm_.keys[target], .from = Place::kWarm, .to = Place::kLog, .source = target};
      directory_take(warm_, target);
    }
  }
  if (target == kNoSlot) {
    moves_[move_count_++] = {.key = key, .from = Place::kHot, .to = Place::kLog, .source = source};
    return kNoSlot;
  }
  directory_put(warm_, target, key, word, kNoStep);
  moves_[move_count_++] = {
      .key = key, .from = Place::kHot, .to = Place::kWarm, .source = source, .target = target};
  return target;
}

// All are looked for in hot, then those not found in warm: so a probe hides the misses.
void GroupDirectory::foresee(std::span<const Key> keys, uint32_t step) {
  Key elsewhere[kForeseen];
  Slot slots[kForeseen];
  uint32_t count = 0;
  directory_probe_cpu({hot_, keys.data(), slots, keys.size()});
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i + kAhead < keys.size() && slots[i + kAhead] != kNoSlot) {
      __builtin_prefetch(hot_.words + slots[i + kAhead], 1);
    }
    if (slots[i] != kNoSlot) {
      policy_->foresee(hot_, slots[i], step);
    } else {
      elsewhere[count++] = keys[i];
    }
  }
  directory_probe_cpu({warm_, elsewhere, slots, count});
  for (uint32_t i = 0; i < count; ++i) {
    if (i + kAhead < count && slots[i + kAhead] != kNoSlot) {
      __builtin_prefetch(warm_.words + slots[i + kAhead], 1);
    }
    if (slots[i] != kNoSlot) {
      policy_->foresee(warm_, slots[i], step);
    } else if (const uint32_t transit = transit_.find(elsewhere[i]); transit != kNoSlot) {
      policy_->foresee(transit_.view(), transit, step);
    }
  }
}

Slot GroupDirectory::put_back(Key key, uint32_t word, Place place) {
  const DirectoryView& view = place == Place::kHot ? hot_ : warm_;
  const uint32_t set = view.sets == 0 ? 0 : view.set_of(key);
  const uint32_t free = view.sets == 0 ? 0 : directory_free(view, set);
  if (free == 0) return kNoSlot;
  const Slot slot = set * kWays + static_cast<Slot>(std::countr_zero(free));
  directory_put(view, slot, key, policy_->resumed(word, tick_), kNoStep);
  return slot;
}

GroupDirectory::Address GroupDirectory::find(Key key) const {
  if (const Slot slot = directory_find(hot_, key); slot != kNoSlot) return {Place::kHot, slot};
  if (const uint32_t transit = transit_.find(key); transit != kNoSlot) {
    return {Place::kHot, transit_base_ + transit};
  }
  if (const Slot warm = directory_find(warm_, key); warm != kNoSlot) return {Place::kWarm, warm};
  return {Place::kLog, kNoSlot};
}

}  // namespace rowtide
