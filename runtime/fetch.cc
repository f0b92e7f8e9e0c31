#include "runtime/fetch.h"

#include <algorithm>

#include "kernels/initial_rows.h"

namespace rowtide {

Fetch::Fetch(const Layout& layout, uint64_t seed, std::vector<GroupTier>& tiers, ColdStore* store,
             Carver& ddr)
    : layout_(layout), tiers_(tiers), store_(store), seed_(seed), stride_(0) {
  for (const TableLayout& table : layout.tables) {
    if (table.id >= scale_.size()) {
      scale_.resize(table.id + 1);
      format_.resize(table.id + 1);
    }
    scale_[table.id] = table.init_scale;
    format_[table.id] = table.format;
    stride_ = std::max<uint64_t>(stride_, (table.format.record_bytes() + 63) / 64 * 64);
  }
  const uint32_t reads = layout.store.directories.empty() ? 0 : layout.store.reads_in_flight;
  staging_ = ddr.take<std::byte>(reads * stride_);
  staged_.resize(reads);
  done_.reserve(reads);
  for (uint32_t i = reads; i-- > 0;) free_.push_back(i);
}

Result<bool> Fetch::run(const Move& move, uint32_t group, PlacedBatch& batch) {
  if (move.to == Place::kLog) return to_log(move, group);
  if (move.to == Place::kWarm) {
    lower(move, tiers_[group]);
  } else {
    bring_up(move, group, batch);
  }
  return true;
}

void Fetch::lower(const Move& move, const GroupTier& tier) {
  const uint8_t flags = tier.hot_flags[move.source];
  if ((flags & kVoid) == 0) tier.load(move.source, tier.warm_record(move.target));
  tier.warm_flags[move.target] = flags;
  tier.hot_flags[move.source] = 0;
  ++counters_.warm_in;
}

void Fetch::bring_up(const Move& move, uint32_t group, PlacedBatch& batch) {
  const GroupTier& tier = tiers_[group];
  ++counters_.hot_in;
  if (move.from == Place::kWarm) {
    const uint8_t flags = tier.warm_flags[move.source];
    if ((flags & kVoid) == 0) {
      tier.store(move.target, tier.warm_record(move.source));
      tier.hot_flags[move.target] = flags;
      return;
    }
  }
  read(move.key, group, move.target, batch);
}

// Whether a record is appended or dropped is decided now: place never knows.
Result<bool> Fetch::to_log(const Move& move, uint32_t group) {
  const GroupTier& tier = tiers_[group];
  const bool warm = move.from == Place::kWarm;
  uint8_t& flags = warm ? tier.warm_flags[move.source] : tier.hot_flags[move.source];
  if ((flags & (kDirty | kVoid)) == kDirty) {
    const std::byte* record = warm ? tier.warm_record(move.source) : nullptr;
    const GroupLayout& shape = layout_.groups[group];
    auto accepted =
        warm ? store_->append(shape.record_type, move.key, epoch_, {record, shape.weight_bytes},
                              {record + shape.weight_bytes, shape.state_bytes})
             : store_->append(shape.record_type, move.key, epoch_, tier.weight_span(move.source),
                              tier.state_span(move.source));
    if (!accepted.ok() || !*accepted) return accepted;
  } else {
    ++counters_.dropped;  // clean, or void: the log has the truth
  }
  flags = 0;
  return true;
}

void Fetch::initialise(Key key, uint32_t group, Slot target) {
  const uint32_t table = table_of(key);
  initial_row_cpu({.format = format_[table], .seed = seed_, .scale = scale_[table]}, key,
                  tiers_[group].weights(target), tiers_[group].state(target));
}

void Fetch::read(Key key, uint32_t group, Slot target, PlacedBatch& batch) {
  const GroupTier& tier = tiers_[group];
  tier.hot_flags[target] = 0;
  if (store_ == nullptr || !store_->contains(key)) {
    initialise(key, group, target);
    ++counters_.never_written;
    return;
  }
  while (free_.empty()) poll(true);
  const uint32_t ticket = free_.back();
  std::byte* out = staging_ + ticket * stride_;
  for (;;) {
    switch (store_->start_read(key, out, ticket)) {
      case ColdStore::Read::kAbsent:
        initialise(key, group, target);
        return;
      case ColdStore::Read::kDone:
        tier.store(target, out);
        return;
      case ColdStore::Read::kStarted:
        free_.pop_back();
        staged_[ticket] = {key, group, target, &batch};
        ++batch.reads_pending;
        ++pending_;
        return;
      case ColdStore::Read::kFull:
        poll(true);
    }
  }
}

void Fetch::prefetch(const Move& move, uint32_t group) const {
  const GroupTier& tier = tiers_[group];
  if (move.from == Place::kHot) tier.prefetch_hot(move.source);
  if (move.to == Place::kHot) tier.prefetch_hot(move.target);
  if (move.from == Place::kWarm) tier.prefetch_warm(move.source);
  if (move.to == Place::kWarm) tier.prefetch_warm(move.target);
  if (move.from == Place::kLog && store_ != nullptr) store_->prefetch(move.key);
}

bool Fetch::poll(bool wait) {
  if (store_ == nullptr) return false;
  done_.clear();
  store_->poll(wait, done_);
  for (const ColdStore::Done& done : done_) {
    const uint32_t ticket = static_cast<uint32_t>(done.ticket);
    const Staged& staged = staged_[ticket];
    const GroupTier& tier = tiers_[staged.group];
    if (done.status.ok()) {
      tier.store(staged.target, staging_ + ticket * stride_);
    } else {
      tier.hot_flags[staged.target] = kVoid;
      ++failed_reads_;
      read_error_ = done.status;
    }
    --staged.batch->reads_pending;
    --pending_;
    free_.push_back(ticket);
  }
  return !done_.empty();
}

Status Fetch::reread(Key key, uint32_t group, Slot slot, PlacedBatch& batch) {
  if ((tiers_[group].hot_flags[slot] & kVoid) == 0) return {};
  read(key, group, slot, batch);
  settle(batch);
  return (tiers_[group].hot_flags[slot] & kVoid) == 0 ? Status() : read_error_;
}

}  // namespace rowtide
