// What the tiers hold when a runtime opens, and what is remembered of them when it closes.
//
// Resident rows always come back from the log.  The others do if the last writer closed the runtime
// and the tiers have the same shape: the directories were saved as they lay in memory, and one pass
// over the log, the one that brings resident rows, fills the slots.  By I3 this changes no bit; a
// placement that is missing, older than the last commit or damaged is left alone.

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "runtime/engine.h"

namespace rowtide {
namespace {

// A pass over a log this many times larger than the tiers takes longer than it saves.
constexpr uint64_t kMostPasses = 16;

}  // namespace

// Of all that the meaning of the saved directories depends on.
uint64_t Runtime::Engine::shape_number() const {
  std::string shape(layout_.policy->name);
  const auto add = [&](uint64_t number) { shape += ' ' + std::to_string(number); };
  for (const GroupLayout& group : layout_.groups) {
    for (uint64_t n : {group.weight_bytes, group.state_bytes, group.hot_sets, group.warm_sets}) {
      add(n);
    }
  }
  for (const TableLayout& table : layout_.tables) {
    for (uint64_t n : {uint64_t{table.id}, table.rows, uint64_t{table.group}}) add(n);
    shape += table.resident ? " resident" : "";
  }
  return XXH3_64bits(shape.data(), shape.size());
}

uint8_t& Runtime::Engine::flags_of(uint32_t group, Place place, Slot slot) {
  return (place == Place::kHot ? tiers_[group].hot_flags : tiers_[group].warm_flags)[slot];
}

void Runtime::Engine::save_placement() {
  if (store_ == nullptr || store_->last_commit().epoch == 0) return;
  std::vector<uint64_t> head = {shape_number()};
  for (const GroupDirectory& directory : directories_) head.push_back(directory.tick());
  std::vector<std::span<const std::byte>> parts = {std::as_bytes(std::span(head))};
  for (GroupDirectory& directory : directories_) {
    for (const auto& part : directory.memory()) parts.push_back(part);
  }
  const Status status = store_->save_hints(parts);
  if (!status.ok() && options_.log) {
    options_.log("placement was not saved, the tiers fill anew: " + status.to_string());
  }
}

bool Runtime::Engine::take_placement() {
  std::vector<uint64_t> head(1 + directories_.size());
  std::vector<std::span<std::byte>> parts = {std::as_writable_bytes(std::span(head))};
  for (GroupDirectory& directory : directories_) {
    for (const auto& part : directory.memory()) parts.push_back(part);
  }
  if (!store_->take_hints(parts)) return false;
  if (head[0] != shape_number()) {
    for (const auto& part : parts) std::fill(part.begin(), part.end(), std::byte{0});
    return false;
  }
  for (uint32_t g = 0; g < directories_.size(); ++g) {
    directories_[g].resume(static_cast<uint32_t>(head[1 + g]));
    directories_[g].keep_rows([&](Key, Place place, Slot slot) {
      flags_of(g, place, slot) = kVoid;  // until its record is here
      return true;
    });
  }
  return true;
}

Status Runtime::Engine::load_rows() {
  if (store_ == nullptr) return {};
  uint64_t tiers = 0;
  for (const GroupLayout& group : layout_.groups) {
    tiers += uint64_t{group.hot_sets + group.warm_sets} * kWays * group.record_bytes();
  }
  const bool residents = std::any_of(layout_.tables.begin(), layout_.tables.end(),
                                     [](const TableLayout& table) { return table.resident; });
  const bool worth_it = residents || store_->stats().bytes_used <= kMostPasses * tiers;
  const bool placed = worth_it && take_placement();
  if (!residents && !placed) return {};
  if (store_->stats().rows > 0) {
    ROWTIDE_TRY(store_->scan([&](Key key, uint32_t, std::span<const std::byte> payload) {
      load_row(key, payload.data());
      return Status();
    }));
  }
  if (placed) drop_unloaded();
  return {};
}

void Runtime::Engine::load_row(Key key, const std::byte* record) {
  const TableLayout* table = table_of_key(key);
  if (table == nullptr) return;
  const GroupTier& tier = tiers_[table->group];
  if (table->resident) {
    const Slot slot = table->base + static_cast<Slot>(row_of(key));
    tier.store(slot, record);
    tier.set_flags(slot, kPresent | kUsed);
    return;
  }
  const auto [place, slot] = directories_[table->group].find(key);
  if (place == Place::kLog) return;
  if (place == Place::kHot) tier.store(slot, record);
  if (place == Place::kWarm) std::memcpy(tier.warm_record(slot), record, tier.record_bytes);
  flags_of(table->group, place, slot) = 0;
}

// Rows that the last commit does not have are new again.
void Runtime::Engine::drop_unloaded() {
  uint64_t hot = 0, warm = 0;
  for (uint32_t g = 0; g < directories_.size(); ++g) {
    directories_[g].keep_rows([&](Key, Place place, Slot slot) {
      uint8_t& flags = flags_of(g, place, slot);
      const bool loaded = flags == 0;
      flags = 0;
      (place == Place::kHot ? hot : warm) += loaded;
      return loaded;
    });
  }
  if (options_.log) {
    options_.log("placement restored: " + std::to_string(hot) + " rows hot, " +
                 std::to_string(warm) + " warm");
  }
}

}  // namespace rowtide
