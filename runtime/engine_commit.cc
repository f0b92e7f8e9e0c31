#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "kernels/instruction_set.h"
#include "runtime/engine.h"
#include "runtime/stopwatch.h"

namespace rowtide {
namespace {

void add(Digest* sum, const XXH128_hash_t& hash) {
  sum->low += hash.low64;
  sum->high += hash.high64 + (sum->low < hash.low64);
}

constexpr std::string_view kDense = "dense/";

}  // namespace

Status Runtime::Engine::append_record(uint32_t group, Key key, std::span<const std::byte> weights,
                                      std::span<const std::byte> state) {
  if (store_ == nullptr) return {Code::kUnavailable, "there is no SSD directory"};
  const uint32_t type = layout_.groups[group].record_type;
  return until_accepted([&] { return store_->append(type, key, epoch_, weights, state); });
}

// Appends every dirty record, wherever it stands; it is clean once the log has accepted it.
Status Runtime::Engine::sweep() {
  Status status;
  for (uint32_t g = 0; g < layout_.groups.size(); ++g) {
    const GroupTier& tier = tiers_[g];
    const auto save = [&](Key key, uint8_t& flags, std::span<const std::byte> weights,
                          std::span<const std::byte> state) {
      if (!status.ok() || (flags & kDirty) == 0) return;
      status = append_record(g, key, weights, state);
      if (status.ok()) flags &= static_cast<uint8_t>(~kDirty);
    };
    directories_[g].for_each_hot([&](Key key, Slot slot) {
      save(key, tier.hot_flags[slot], tier.weight_span(slot), tier.state_span(slot));
    });
    directories_[g].for_each_warm([&](Key key, Slot slot) {
      const std::byte* record = tier.warm_record(slot);
      save(key, tier.warm_flags[slot], {record, tier.hot.weight_stride},
           {record + tier.hot.weight_stride, tier.hot.state_stride});
    });
    for (const TableLayout& table : layout_.tables) {
      if (table.group != g || !table.resident) continue;
      for (uint64_t row = 0; row < table.rows; ++row) {
        const Slot slot = table.base + static_cast<Slot>(row);
        save(make_key(table.id, row), tier.hot_flags[slot], tier.weight_span(slot),
             tier.state_span(slot));
      }
    }
  }
  return status;
}

Status Runtime::Engine::commit(std::vector<CommitArray> arrays) {
  CommitHeader header;
  {
    std::lock_guard lock(mutex_);
    if (store_ == nullptr) return {Code::kUnavailable, "commit: there is no SSD directory"};
    if (evaluation_open_) return {Code::kBusy, "commit: an evaluation is open"};
    if (schedule_.open() > 0) return {Code::kBusy, "commit: a forwarded step is not ended"};
    header.step = first_step_ + schedule_.oldest_open();
  }
  Stopwatch watch(&commit_s_);
  header.commits = commits_ + 1;
  CommitContent content;
  content.epoch = epoch_;
  content.meta = layout_.table_list.to_meta(header);
  for (const CommitArray& array : arrays) {
    content.arrays.push_back({array.name, array.dtype, array.shape, array.bytes});
  }
  ROWTIDE_TRY(request([&]() -> Status {
    if (!commit_begun_) ROWTIDE_TRY(store_->begin_commit(epoch_));
    commit_begun_ = true;  // a commit that failed is continued by the next
    ROWTIDE_TRY(sweep());
    const Status status = store_->commit(content);
    if (status.ok()) {
      std::lock_guard lock(mutex_);
      std::ranges::fill(updated_, 0);
    }
    if (store_->next_epoch() > epoch_) {  // it is made, or the disk may have it: that cut is over
      commit_begun_ = false;
      epoch_ = store_->next_epoch();
      fetch_->set_epoch(epoch_);
    }
    return status;
  }));
  commits_ = header.commits;
  arrays_ = std::move(arrays);
  return {};
}

void Runtime::Engine::count_updated(const KnownBatch& known) {
  std::lock_guard lock(mutex_);
  for (uint32_t f = 0; f < layout_.features.size(); ++f) {
    updated_[layout_.tables[layout_.features[f].table].group] +=
        known.rows.feature_rows[f + 1] - known.rows.feature_rows[f];
  }
}

// A commit would append what is dirty in memory: no more than was updated, or than there are slots.
bool Runtime::Engine::log_wants_commit() {
  std::ranges::fill(owed_, 0);
  for (uint32_t g = 0; g < layout_.groups.size(); ++g) {
    const GroupLayout& group = layout_.groups[g];
    const uint64_t slots = group.hot_slots() + uint64_t{group.warm_sets} * kWays;
    owed_[group.record_type] += std::min(updated_[g], slots);
  }
  return store_->wants_commit(owed_);
}

bool Runtime::Engine::commit_wanted() {
  std::lock_guard lock(mutex_);
  return commit_wanted_;
}

bool Runtime::Engine::dirty_in_memory(Key key) {
  const TableLayout* table = table_of_key(key);
  if (table == nullptr) return false;
  const GroupTier& tier = tiers_[table->group];
  if (table->resident) {
    return (tier.hot_flags[table->base + static_cast<Slot>(row_of(key))] & kDirty) != 0;
  }
  const GroupDirectory::Address at = directories_[table->group].find(key);
  if (at.place == Place::kLog) return false;
  return ((at.place == Place::kHot ? tier.hot_flags : tier.warm_flags)[at.slot] & kDirty) != 0;
}

// The log's newest records, but for rows that changed since; those as they are in memory.
Result<Digest> Runtime::Engine::digest(std::span<const CommitArray> dense) {
  Digest sum;
  std::vector<std::byte> bytes(sizeof(Key) + record_.size());
  const auto add_row = [&](Key key, const std::byte* record, size_t record_bytes) {
    std::memcpy(bytes.data(), &key, sizeof key);
    std::memcpy(bytes.data() + sizeof key, record, record_bytes);
    add(&sum, XXH3_128bits(bytes.data(), sizeof key + record_bytes));
  };
  ROWTIDE_TRY(request([&]() -> Status {
    for (uint32_t g = 0; g < layout_.groups.size(); ++g) {
      const GroupTier& tier = tiers_[g];
      const auto add_hot = [&](Key key, Slot slot) {
        if ((tier.hot_flags[slot] & kDirty) == 0) return;
        tier.load(slot, record_.data());
        add_row(key, record_.data(), tier.record_bytes);
      };
      directories_[g].for_each_hot(add_hot);
      directories_[g].for_each_warm([&](Key key, Slot slot) {
        if ((tier.warm_flags[slot] & kDirty) != 0) {
          add_row(key, tier.warm_record(slot), tier.record_bytes);
        }
      });
      for (const TableLayout& table : layout_.tables) {
        if (table.group != g || !table.resident) continue;
        for (uint64_t row = 0; row < table.rows; ++row) {
          add_hot(make_key(table.id, row), table.base + static_cast<Slot>(row));
        }
      }
    }
    if (store_ == nullptr) return {};
    return store_->scan(
        [&](Key key, uint32_t, std::span<const std::byte> payload) -> Status {
          if (!dirty_in_memory(key)) add_row(key, payload.data(), payload.size());
          return {};
        },
        nullptr);
  }));
  for (const CommitArray& array : dense) {
    if (!std::string_view(array.name).starts_with(kDense)) continue;
    const XXH128_hash_t name = XXH3_128bits(array.name.data(), array.name.size());
    add(&sum, XXH3_128bits_withSeed(array.bytes.data(), array.bytes.size(), name.low64));
  }
  return sum;
}

Stats Runtime::Engine::stats() {
  Stats stats;
  const auto look = [&]() -> Status {
    for (uint32_t t = 0; t < layout_.tables.size(); ++t) {
      const Hits& hits = hits_[t];
      stats.tables.push_back({layout_.tables[t].name, hits.hbm, hits.ddr, hits.ssd, hits.fresh,
                              layout_.tables[t].resident});
      for (auto member : {&Hits::hbm, &Hits::ddr, &Hits::ssd, &Hits::fresh}) {
        TierHits& sum = member == &Hits::hbm   ? stats.hbm
                        : member == &Hits::ddr ? stats.ddr
                        : member == &Hits::ssd ? stats.ssd
                                               : stats.fresh;
        sum.hits += (hits.*member).hits;
        sum.unique_hits += (hits.*member).unique_hits;
      }
    }
    const Fetch::Counters& moved = fetch_->counters();
    stats.hbm_tier.rows_in = moved.hot_in;
    stats.ddr_tier.rows_in = moved.warm_in;
    stats.ddr_tier.written = moved.warm_in;
    stats.ssd_tier.dropped = moved.dropped;
    for (const GroupDirectory& directory : directories_) {
      stats.transit_rows += directory.transit_rows();
    }
    stats.placed_lowered = placed_lowered_;
    stats.place_s = place_s_;
    stats.fetch_s = fetch_s_;
    if (store_ == nullptr) return {};
    const ColdStoreStats store = store_->stats();
    stats.ssd_tier.rows_in = stats.ssd_tier.written = store.records_appended;
    stats.ssd_tier.bytes_used = store.bytes_used;
    stats.ssd_tier.bytes_budget = store.bytes_budget;
    stats.ssd_reads = store.reads;
    stats.rows_read_from_ssd = store.reads + store.reads_joined;
    stats.rows_on_ssd = store.rows;
    for (uint32_t t = 0; t < layout_.tables.size(); ++t) {
      stats.tables[t].rows_on_ssd = store.table_rows[layout_.tables[t].id];
    }
    stats.io_engine = store_->engine_name();
    stats.file_system = store_->file_system();
    return {};
  };
  (void)request(look, /*any_time=*/true);
  stats.hbm_tier.bytes_used = layout_.plan.hbm_bytes;
  stats.hbm_tier.bytes_budget = options_.hbm_bytes;
  stats.ddr_tier.bytes_used = layout_.plan.ddr_bytes;
  stats.ddr_tier.bytes_budget = options_.ddr_bytes;
  stats.steps = applied_steps_;
  stats.samples = applied_samples_;
  stats.stall_s = stall_s_;
  stats.forward_s = forward_s_;
  stats.apply_s = apply_s_;
  stats.commit_s = commit_s_;
  stats.evaluate_s = evaluate_s_;
  {
    std::lock_guard lock(mutex_);
    stats.skipped_ids = skipped_ids_;
  }
  stats.instruction_set = instruction_set_name(instruction_set());
  return stats;
}

}  // namespace rowtide
