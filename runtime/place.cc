#include "runtime/place.h"

#include <algorithm>
#include <bit>

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
      transit_base_(layout.groups[group].transit_base()),
      hot_(carve_directory(layout.groups[group].hot_sets, policy_->set_words, 11 + group, hbm)),
      warm_(carve_directory(layout.groups[group].warm_sets, policy_->set_words, 77 + group, ddr)),
      transit_(layout.groups[group].transit_slots, policy_->set_words, hbm) {
  const GroupLayout& shape = layout.groups[group];
  for (uint32_t f = 0; f < layout.features.size(); ++f) {
    const TableLayout& table = layout.tables[layout.features[f].table];
    if (table.group == group && !table.resident) features_.push_back(f);
  }
  set_demand_ = hbm.take<SetDemand>(shape.hot_sets);
  misses_ = ddr.take<uint32_t>(shape.most_rows);
  warm_slot_ = ddr.take<Slot>(shape.most_rows);
  expired_miss_ = ddr.take<uint32_t>(shape.transit_slots);
}

template <typename Visit>
void GroupDirectory::for_each_row(const KnownBatch& batch, Visit&& visit) const {
  const Key* keys = batch.rows.keys;
  for (uint32_t f : features_) {
    const uint32_t end = batch.rows.feature_rows[f + 1];
    for (uint32_t u = batch.rows.feature_rows[f]; u < end; ++u) {
      if (u + kAhead < end) directory_prefetch(hot_, keys[u + kAhead]);
      visit(u, keys[u]);
    }
  }
}

bool GroupDirectory::probe(const PlaceBatch& batch, uint32_t over) {
  forget(*batch.known);
  for_each_row(*batch.known, [&](uint32_t u, Key key) {
    Slot slot = directory_find(hot_, key);
    if (slot == kNoSlot) {
      const uint32_t transit = transit_.find(key);
      if (transit != kNoSlot && transit_.view().last[transit] > over) {
        slot = transit_base_ + transit;
      }
    }
    batch.slots[u] = slot;
    batch.found[u] = Found::kHot;
    if (slot == kNoSlot) misses_[miss_count_++] = u;
  });
  count_demand(batch, over);
  if (demand_ > had_) forget(*batch.known);
  return demand_ <= had_;
}

void GroupDirectory::forget(const KnownBatch& batch) {
  for (uint32_t m = 0; m < miss_count_; ++m) {
    set_demand_[hot_.set_of(batch.rows.keys[misses_[m]])] = {};
  }
  miss_count_ = 0;
}

// Of a set's misses, those beyond its free slots and those that may go must take transit slots.
void GroupDirectory::count_demand(const PlaceBatch& batch, uint32_t over) {
  const Key* keys = batch.known->rows.keys;
  for (uint32_t m = 0; m < miss_count_; ++m) {
    ++set_demand_[hot_.set_of(keys[misses_[m]])].misses;
  }
  for_each_row(*batch.known, [&](uint32_t u, Key) {
    const Slot slot = batch.slots[u];
    if (slot >= transit_base_) return;
    SetDemand& demand = set_demand_[slot / kWays];
    if (demand.misses > 0) demand.hits |= 1u << slot % kWays;
  });
  demand_ = 0;
  for (uint32_t m = 0; m < miss_count_; ++m) {
    const uint32_t set = hot_.set_of(keys[misses_[m]]);
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

Touch GroupDirectory::touch(const PlaceBatch& batch, uint32_t row) {
  if (++tick_ == kAgeAt) {
    for (const DirectoryView* view : {&hot_, &warm_, &transit_.view()}) policy_->age(*view, kAgeBy);
    tick_ -= kAgeBy;
  }
  const uint32_t next = batch.known->next == nullptr ? kNeverUsed : batch.known->next[row];
  const uint32_t count = batch.occurrence_begin[row + 1] - batch.occurrence_begin[row];
  return {.step = batch.step, .count = count, .next_use = next, .tick = tick_};
}

void GroupDirectory::place(const PlaceBatch& batch, uint32_t over, std::vector<Move>& moves) {
  uint64_t spare = had_ - demand_;  // transit slots left for refused rows
  mark_warm(batch);
  empty_transit(batch, over, moves);
  for_each_row(*batch.known, [&](uint32_t u, Key) {
    const Slot slot = batch.slots[u];
    if (slot == kNoSlot) return;
    const bool in_set = slot < transit_base_;
    const DirectoryView& view = in_set ? hot_ : transit_.view();
    const Slot at = in_set ? slot : slot - transit_base_;
    view.last[at] = batch.step + 1;
    policy_->hit(view, at, touch(batch, u));
  });
  for (uint32_t m = 0; m < miss_count_; ++m) {
    if (m + kAhead < miss_count_) {
      directory_prefetch(hot_, batch.known->rows.keys[misses_[m + kAhead]]);
    }
    place_miss(batch, m, over, spare, moves);
  }
  forget(*batch.known);
}

// The batch's rows in warm are no victims: each leaves by its own move up.
void GroupDirectory::mark_warm(const PlaceBatch& batch) {
  const Key* keys = batch.known->rows.keys;
  for (uint32_t m = 0; m < miss_count_; ++m) {
    if (m + kAhead < miss_count_) directory_prefetch(warm_, keys[misses_[m + kAhead]]);
    const Key key = keys[misses_[m]];
    warm_slot_[m] = directory_find(warm_, key);
    if (warm_slot_[m] != kNoSlot) {
      warm_.last[warm_slot_[m]] = batch.step + 1;
      batch.found[misses_[m]] = Found::kWarm;
      continue;
    }
    batch.found[misses_[m]] = Found::kBelow;
    const uint32_t transit = transit_.find(key);
    if (transit != kNoSlot) {  // expired: it goes down first, and comes up again
      expired_miss_[transit] = m + 1;
      batch.found[misses_[m]] = Found::kHot;
    }
  }
}

void GroupDirectory::empty_transit(const PlaceBatch& batch, uint32_t over,
                                   std::vector<Move>& moves) {
  transit_.for_each([&](Key key, uint32_t i) {
    if (transit_.view().last[i] > over) return;
    const uint32_t word = transit_.view().words[i];
    transit_.take(i);
    const Slot warm = sink(key, word, transit_base_ + i, batch.step, moves);
    if (expired_miss_[i] == 0) return;
    warm_slot_[expired_miss_[i] - 1] = warm;
    if (warm != kNoSlot) warm_.last[warm] = batch.step + 1;
    expired_miss_[i] = 0;
  });
}

void GroupDirectory::place_miss(const PlaceBatch& batch, uint32_t m, uint32_t over, uint64_t& spare,
                                std::vector<Move>& moves) {
  const uint32_t u = misses_[m];
  const Key key = batch.known->rows.keys[u];
  const uint32_t set = hot_.set_of(key);
  const uint32_t free = directory_free(hot_, set);
  // Rows of the batch that were hit or put have `last` above `over`, so they are no victims.
  const uint32_t may_go = free == 0 ? directory_before(hot_, set, over) : 0;
  uint32_t& forced = set_demand_[set].forced;
  const bool refuse =
      batch.refused != nullptr && batch.refused[u] != 0 && (forced > 0 || spare > 0);
  const Slot from_warm = warm_slot_[m];
  Slot slot;
  const bool to_transit = refuse || (free == 0 && may_go == 0);
  if (to_transit) {
    forced > 0 ? --forced : --spare;
    ++transit_rows_;
  } else if (free != 0) {
    slot = set * kWays + static_cast<Slot>(std::countr_zero(free));
  } else {
    slot = policy_->victim(hot_, set, may_go, batch.step);
    const Key victim = hot_.keys[slot];
    const uint32_t word = hot_.words[slot];
    directory_take(hot_, slot);
    sink(victim, word, slot, batch.step, moves);
  }
  uint32_t word = 0;
  if (from_warm != kNoSlot) {
    word = warm_.words[from_warm];
    directory_take(warm_, from_warm);
  }
  if (to_transit) {
    const uint32_t i = transit_.put(key, word, batch.step + 1);
    policy_->insert(transit_.view(), i, touch(batch, u));
    slot = transit_base_ + i;
  } else {
    directory_put(hot_, slot, key, word, batch.step + 1);
    policy_->insert(hot_, slot, touch(batch, u));
  }
  batch.slots[u] = slot;
  moves.push_back({.key = key,
                   .from = from_warm == kNoSlot ? Place::kLog : Place::kWarm,
                   .to = Place::kHot,
                   .source = from_warm,
                   .target = slot,
                   .row = u});
}

// Returns the warm slot, or kNoSlot if the row went to the log.
Slot GroupDirectory::sink(Key key, uint32_t word, Slot source, uint32_t step,
                          std::vector<Move>& moves) {
  Slot target = kNoSlot;
  if (warm_.sets > 0) {
    const uint32_t set = warm_.set_of(key);
    const uint32_t free = directory_free(warm_, set);
    const uint32_t may_go = free == 0 ? directory_before(warm_, set, step) : 0;
    if (free != 0) {
      target = set * kWays + static_cast<Slot>(std::countr_zero(free));
    } else if (may_go != 0) {
      target = policy_->victim(warm_, set, may_go, step);
      moves.push_back(
          {.key = warm_.keys[target], .from = Place::kWarm, .to = Place::kLog, .source = target});
      directory_take(warm_, target);
    }
  }
  if (target == kNoSlot) {
    moves.push_back({.key = key, .from = Place::kHot, .to = Place::kLog, .source = source});
    return kNoSlot;
  }
  directory_put(warm_, target, key, word, kNoStep);
  moves.push_back(
      {.key = key, .from = Place::kHot, .to = Place::kWarm, .source = source, .target = target});
  return target;
}

void GroupDirectory::foresee(Key key, uint32_t step) {
  if (const Slot slot = directory_find(hot_, key); slot != kNoSlot) {
    policy_->foresee(hot_, slot, step);
  } else if (const Slot warm = directory_find(warm_, key); warm != kNoSlot) {
    policy_->foresee(warm_, warm, step);
  } else if (const uint32_t transit = transit_.find(key); transit != kNoSlot) {
    policy_->foresee(transit_.view(), transit, step);
  }
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
