// What the tiers hold when a runtime opens, and what is remembered of them when it closes.
//
// Resident rows always come back from the log, by a pass over it or, of one that is far larger, row
// by row.  The others do if the last writer closed the runtime under the same policy: the keys and
// words of its sets were saved, and the same pass fills their slots.  By I3 this changes no bit; a
// placement that is missing, older than the last commit or damaged is left alone.

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/engine.h"

namespace rowtide {
namespace {

// A pass over a log this many times larger than the tiers takes longer than it saves.
constexpr uint64_t kMostPasses = 16;
// A read of one row takes about as long as so many bytes of a pass.
constexpr uint64_t kBytesForARead = 16 << 10;

// The saved placement: a first cell of the policy's hash and the last tick, then one for each row.
struct Cell {
  uint64_t key = 0;
  uint32_t word = 0;
  uint32_t place = 0;
};
static_assert(sizeof(Cell) == 16, "Cell is on disk: do not change it");

uint64_t number_of(const Policy& policy) {
  return XXH3_64bits(policy.name.data(), policy.name.size());
}

}  // namespace

uint8_t& Runtime::Engine::flags_of(uint32_t group, Place place, Slot slot) {
  return (place == Place::kHot ? tiers_[group].hot_flags : tiers_[group].warm_flags)[slot];
}

void Runtime::Engine::save_placement() {
  if (store_ == nullptr || store_->last_commit().epoch == 0) return;
  Cell head{.key = number_of(*layout_.policy)};
  uint64_t rows = 0;
  for (const GroupDirectory& directory : directories_) {
    head.word = std::max(head.word, directory.tick());
    directory.for_each_word([&](Key, uint32_t, Place) { ++rows; });
  }
  const Status saved = store_->save_hints((rows + 1) * sizeof(Cell), [&](const auto& append) {
    Status status;
    const auto add = [&](const Cell& cell) {
      if (status.ok()) status = append(std::as_bytes(std::span(&cell, 1)));
    };
    add(head);
    for (const GroupDirectory& directory : directories_) {
      directory.for_each_word([&](Key key, uint32_t word, Place place) {
        add({.key = key, .word = word, .place = static_cast<uint32_t>(place)});
      });
    }
    return status;
  });
  if (!saved.ok() && options_.log) {
    options_.log("placement was not saved, the tiers fill anew: " + saved.to_string());
  }
}

// Puts rows back; their slots are void until their records are here.
bool Runtime::Engine::take_placement() {
  bool first = true, ours = false;
  uint64_t rows = 0;
  store_->take_hints([&](std::span<const std::byte> bytes) {
    for (; bytes.size() >= sizeof(Cell); bytes = bytes.subspan(sizeof(Cell))) {
      Cell cell;
      std::memcpy(&cell, bytes.data(), sizeof cell);
      if (std::exchange(first, false)) {
        ours = cell.key == number_of(*layout_.policy);
        for (GroupDirectory& directory : directories_) directory.resume(ours ? cell.word : 0);
      } else if (ours) {
        rows += put_back(cell.key, cell.word, static_cast<Place>(cell.place));
      }
    }
  });
  return rows > 0;
}

bool Runtime::Engine::put_back(Key key, uint32_t word, Place place) {
  const TableLayout* table = table_of_key(key);
  if (table == nullptr || table->resident || row_of(key) >= table->rows) return false;
  const Slot slot = directories_[table->group].put_back(key, word, place);
  if (slot != kNoSlot) flags_of(table->group, place, slot) = kVoid;
  return slot != kNoSlot;
}

Status Runtime::Engine::load_rows() {
  if (store_ == nullptr) return {};
  uint64_t tiers = 0, residents = 0, log = 0;
  for (const GroupLayout& group : layout_.groups) {
    tiers += uint64_t{group.hot_sets + group.warm_sets} * kWays * group.record_bytes();
  }
  const ColdStoreStats store = store_->stats();
  for (const TableLayout& table : layout_.tables) {
    const uint64_t rows = store.table_rows[table.id];
    log += rows * table.format.record_bytes();
    if (table.resident) residents += rows;
  }
  const bool by_key = residents * kBytesForARead < log;
  const bool pass = log <= kMostPasses * tiers || !by_key;
  const bool placed = pass && take_placement();
  if (pass && (residents > 0 || placed)) {
    ROWTIDE_TRY(load_by_pass(residents));
  } else if (residents > 0) {
    ROWTIDE_TRY(load_residents());
  }
  if (placed) drop_unloaded();
  return {};
}

// Of rows that do not verify only resident ones are an error now.
Status Runtime::Engine::load_by_pass(uint64_t residents) {
  uint64_t loaded = 0, skipped = 0;
  ROWTIDE_TRY(store_->scan(
      [&](Key key, uint32_t, std::span<const std::byte> payload) {
        loaded += load_row(key, payload.data());
        return Status();
      },
      &skipped));
  if (loaded < residents) ROWTIDE_TRY(load_residents());
  if (skipped > 0 && options_.log) {
    options_.log(
        std::to_string(skipped) +
        " rows of the log cannot be read or do not verify: steps that need them will fail");
  }
  return {};
}

// Reads resident rows through the index.  Errors: kIo, kCorrupt, naming the row.
Status Runtime::Engine::load_residents() {
  const auto for_each_written = [&](auto&& visit) {
    for (const TableLayout& table : layout_.tables) {
      for (uint64_t row = 0; table.resident && row < table.rows; ++row) {
        const Key key = make_key(table.id, row);
        if (store_->contains(key)) visit(table.group, key, table.base + static_cast<Slot>(row));
      }
    }
  };
  for_each_written([&](uint32_t group, Key key, Slot slot) {
    fetch_->read(key, group, slot, evaluation_placed_);
  });
  fetch_->settle(evaluation_placed_);
  if (fetch_->failed_reads() > 0) return fetch_->read_error();
  for_each_written(
      [&](uint32_t group, Key, Slot slot) { tiers_[group].set_flags(slot, kPresent | kUsed); });
  return {};
}

// Whether it is a resident row.
bool Runtime::Engine::load_row(Key key, const std::byte* record) {
  const TableLayout* table = table_of_key(key);
  if (table == nullptr) return false;
  const GroupTier& tier = tiers_[table->group];
  if (table->resident) {
    const Slot slot = table->base + static_cast<Slot>(row_of(key));
    tier.store(slot, record);
    tier.set_flags(slot, kPresent | kUsed);
    return true;
  }
  const auto [place, slot] = directories_[table->group].find(key);
  if (place == Place::kLog) return false;
  if (place == Place::kHot) tier.store(slot, record);
  if (place == Place::kWarm) std::memcpy(tier.warm_record(slot), record, tier.record_bytes);
  flags_of(table->group, place, slot) = 0;
  return false;
}

// Rows that the last commit does not have are new again.
void Runtime::Engine::drop_unloaded() {
  uint64_t hot = 0, warm = 0;
  for (uint32_t g = 0; g < directories_.size(); ++g) {
    directories_[g].keep_rows([&](Place place, Slot slot) {
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
