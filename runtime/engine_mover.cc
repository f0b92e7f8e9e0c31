#include <pthread.h>

#include "runtime/base/signals.h"
#include "runtime/engine.h"
#include "runtime/stopwatch.h"

namespace rowtide {

void Runtime::Engine::run_mover() {
  pthread_setname_np(pthread_self(), "rowtide-mover");
  leave_signals_to_others();
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (request_ != nullptr) {
      const Request& request = *request_;
      lock.unlock();
      const bool run = finish_moves() || request.any_time;
      Status status = run ? request.call(request.work) : Status();
      lock.lock();
      request_status_ = run ? status : blocked_;
      request_ = nullptr;
      request_done_ = true;
      publish_arrivals();
      caller_wakes_.notify_all();
    } else if (!blocked_.ok()) {
      mover_wakes_.wait(lock, [&] { return stop_ || retry_ || request_ != nullptr; });
      if (!retry_) continue;
      retry_ = false;
      lock.unlock();
      finish_moves();
      lock.lock();
      publish_arrivals();
      caller_wakes_.notify_all();
    } else if (schedule_.has_unplaced() && !evaluation_open_ &&
               (prepared_ != schedule_.placed() || schedule_.ready(p_))) {
      const uint32_t step = schedule_.placed();
      const uint32_t window_end = schedule_.window_end();
      const bool prepare_first = prepared_ != step;
      lock.unlock();
      prepare_first ? prepare(step) : place(step, window_end);
      lock.lock();
      publish_arrivals();
      caller_wakes_.notify_all();
    } else if (fetch_->pending() > 0) {
      lock.unlock();
      fetch_->poll(/*wait=*/true);
      lock.lock();
      publish_arrivals();
      caller_wakes_.notify_all();
    } else {
      mover_wakes_.wait(lock);
    }
  }
}

void Runtime::Engine::publish_arrivals() {
  failed_reads_ = fetch_->failed_reads();
  commit_wanted_ = store_ != nullptr && log_wants_commit();
  const uint32_t placed = blocked_.ok() ? schedule_.placed() : moving_step_;
  while (arrived_ < placed && placed_of(arrived_).reads_pending == 0) ++arrived_;
}

Status Runtime::Engine::run_request(const Request& request) {
  std::unique_lock lock(mutex_);
  request_ = &request;
  request_done_ = false;
  mover_wakes_.notify_all();
  caller_wakes_.wait(lock, [&] { return request_done_; });
  return request_status_;
}

PlaceBatch Runtime::Engine::place_batch(uint32_t step) {
  const PlacedBatch& placed = placed_of(step);
  return {.step = step,
          .known = &known_of(step),
          .occurrence_begin = placed.occurrence_begin,
          .slots = placed.slots,
          .found = placed.found,
          .refused = placed.refused};
}

// All that can be done before the steps that place must wait for have ended.
void Runtime::Engine::prepare(uint32_t step) {
  Stopwatch watch(&place_s_);
  const KnownBatch& known = known_of(step);
  PlacedBatch& placed = placed_of(step);
  fetch_->settle(placed);  // a dropped step's reads may still come
  placed.arrange(layout_, known);
  placed.status = {};
  const uint32_t floor = layout_.open_steps - 1;
  for (uint32_t p = layout_.placed;; --p) {
    const uint32_t over = step > p ? step - p : 0;
    const PlaceBatch batch = place_batch(step);
    uint64_t missing = 0;
    for (uint32_t g = 0; g < directories_.size(); ++g) {
      if (directories_[g].probe(batch, over)) continue;
      missing = std::max(missing, directories_[g].demand() - directories_[g].had());
    }
    p_ = p;
    if (missing == 0) break;
    if (p == floor) {
      for (GroupDirectory& directory : directories_) directory.forget();
      placed.status = {Code::kNoSpace,
                       "step " + std::to_string(first_step_ + step) + " does not fit: " +
                           std::to_string(missing) + " transit slots are missing; hbm_bytes = " +
                           std::to_string(layout_.plan.least_hbm_bytes) + " always suffices"};
      break;
    }
  }
  prepared_ = step;
}

// Calls visit(table, begin, end) for the rows of each feature of a cached table.
template <typename Visit>
void Runtime::Engine::for_each_cached(const KnownBatch& batch, Visit&& visit) const {
  for (uint32_t f = 0; f < layout_.features.size(); ++f) {
    const TableLayout& table = layout_.tables[layout_.features[f].table];
    if (table.resident) continue;
    visit(table, batch.rows.feature_rows[f], batch.rows.feature_rows[f + 1]);
  }
}

// Batches below `window_end` enter the known window, and the one to be placed leaves it.
void Runtime::Engine::move_window(const KnownBatch& placing, uint32_t window_end) {
  // known_of() without a division: no step of the window is before the one that is placed.
  const uint32_t first = static_cast<uint32_t>(placing.step), size = uint32_t(known_.size());
  const auto batch_of = [this, size, first, at = first % size](uint32_t s) -> KnownBatch& {
    const uint32_t i = at + (s - first);
    return known_[i < size ? i : i - size];
  };
  for (; window_end_ < window_end; ++window_end_) {
    KnownBatch& entering = known_of(window_end_);
    for_each_cached(entering, [&](const TableLayout& table, uint32_t begin, uint32_t end) {
      next_uses_->enter(entering, begin, end, batch_of, [&](std::span<const Key> keys) {
        directories_[table.group].foresee(keys, window_end_);
      });
    });
  }
  for_each_cached(placing, [&](const TableLayout&, uint32_t begin, uint32_t end) {
    next_uses_->leave(placing, begin, end, batch_of);
  });
}

void Runtime::Engine::place(uint32_t step, uint32_t window_end) {
  KnownBatch& known = known_of(step);
  PlacedBatch& placed = placed_of(step);
  const uint32_t over = step > p_ ? step - p_ : 0;
  {
    Stopwatch watch(&place_s_);
    if (layout_.policy->foresees) move_window(known, window_end);
    if (admission_ != nullptr) {
      for_each_cached(known, [&](const TableLayout&, uint32_t begin, uint32_t end) {
        admission_->judge(known.rows.keys, begin, end, placed.refused);
      });
    }
    if (placed.status.ok()) {
      const PlaceBatch batch = place_batch(step);
      for (uint32_t g = 0; g < directories_.size(); ++g) {
        moves_[g] = {.moves = directories_[g].place(batch, over)};
      }
      placed_lowered_ += p_ < layout_.placed;
      place_residents(step);
      count_hits(known, placed);
    }
  }
  hbm_.join_pages();
  ddr_.join_pages();
  moving_step_ = step;
  // A source slot may still wait for a read only if the step that asked for it was dropped.
  for (uint32_t s = step > layout_.placed + 1 ? step - layout_.placed - 1 : 0; s < over; ++s) {
    fetch_->settle(placed_of(s));
  }
  {
    std::lock_guard lock(mutex_);
    schedule_.place();
  }
  finish_moves();
}

bool Runtime::Engine::finish_moves() {
  Stopwatch watch(&fetch_s_);
  constexpr size_t kAhead = 6;
  PlacedBatch& placed = placed_of(moving_step_);
  for (uint32_t g = 0; g < moves_.size(); ++g) {
    auto& [moves, next] = moves_[g];
    for (; next < moves.size(); ++next) {
      if (next + kAhead < moves.size()) fetch_->prefetch(moves[next + kAhead], g);
      const Move& move = moves[next];
      const uint64_t fresh = fetch_->counters().never_written;
      const Status done = until_accepted([&] { return fetch_->run(move, g, placed); });
      if (!done.ok()) {
        std::lock_guard lock(mutex_);
        blocked_ = done;
        return false;
      }
      if (move.from == Place::kLog && placed.found[move.row] == Found::kBelow) {
        const uint32_t count =
            placed.occurrence_begin[move.row + 1] - placed.occurrence_begin[move.row];
        Hits& hits = hits_[index_of_id_[table_of(move.key)]];
        TierHits& tier = fetch_->counters().never_written > fresh ? hits.fresh : hits.ssd;
        tier.hits += count;
        tier.unique_hits += 1;
      }
    }
    moves = {};
    next = 0;
  }
  fetch_->poll(/*wait=*/false);
  (void)write_error();
  std::lock_guard lock(mutex_);
  blocked_ = {};
  return true;
}

// Writes that failed stay in the write buffer and are tried again; the user should know.
Status Runtime::Engine::write_error() {
  if (store_ == nullptr) return {};
  const Status status = store_->take_write_error();
  if (!status.ok() && options_.log) options_.log("retrying: " + status.to_string());
  return status;
}

// A resident row stands at base + row; it gets its initial value when a batch first names it.
void Runtime::Engine::place_residents(uint32_t step) {
  const KnownBatch& known = known_of(step);
  PlacedBatch& placed = placed_of(step);
  for (uint32_t f = 0; f < layout_.features.size(); ++f) {
    const TableLayout& table = layout_.tables[layout_.features[f].table];
    if (!table.resident) continue;
    const GroupTier& tier = tiers_[table.group];
    const uint32_t end = known.rows.feature_rows[f + 1];
    for (uint32_t u = known.rows.feature_rows[f]; u < end; ++u) {
      const Slot slot = table.base + static_cast<Slot>(row_of(known.rows.keys[u]));
      placed.slots[u] = slot;
      placed.found[u] = Found::kHot;
      // Once it is used a step in flight may write the flags, so they are only read here.
      if ((tier.flags(slot) & kUsed) != 0) continue;
      placed.found[u] = Found::kBelow;
      fill_resident(table, known.rows.keys[u], slot);
      tier.set_flags(slot, tier.flags(slot) | kUsed);
    }
  }
}

void Runtime::Engine::fill_resident(const TableLayout& table, Key key, Slot slot) {
  const GroupTier& tier = tiers_[table.group];
  if ((tier.flags(slot) & kPresent) != 0) return;
  fetch_->initialise(key, table.group, slot);
  tier.set_flags(slot, tier.flags(slot) | kPresent);
}

// Rows found below are counted when their move knows whether they were ever written; resident ones
// that no step ever named are new.
void Runtime::Engine::count_hits(const KnownBatch& known, const PlacedBatch& placed) {
  for (uint32_t f = 0; f < layout_.features.size(); ++f) {
    const uint32_t t = layout_.features[f].table;
    for (uint32_t u = known.rows.feature_rows[f]; u < known.rows.feature_rows[f + 1]; ++u) {
      const Found found = placed.found[u];
      if (found == Found::kBelow && !layout_.tables[t].resident) continue;
      TierHits& tier = found == Found::kHot    ? hits_[t].hbm
                       : found == Found::kWarm ? hits_[t].ddr
                                               : hits_[t].fresh;
      tier.hits += placed.occurrence_begin[u + 1] - placed.occurrence_begin[u];
      tier.unique_hits += 1;
    }
  }
}

// Reads the directories and changes nothing in them: rows in hot slots are read in place, the
// others are copied to evaluation slots.
Status Runtime::Engine::place_evaluation() {
  KnownBatch& known = evaluation_known_;
  PlacedBatch& placed = evaluation_placed_;
  placed.arrange(layout_, known);
  std::vector<Slot>& next = next_eval_slot_;
  for (size_t g = 0; g < next.size(); ++g) next[g] = layout_.groups[g].eval_base();
  for (uint32_t f = 0; f < layout_.features.size(); ++f) {
    const TableLayout& table = layout_.tables[layout_.features[f].table];
    const GroupTier& tier = tiers_[table.group];
    for (uint32_t u = known.rows.feature_rows[f]; u < known.rows.feature_rows[f + 1]; ++u) {
      const Key key = known.rows.keys[u];
      if (table.resident) {
        placed.slots[u] = table.base + static_cast<Slot>(row_of(key));
        fill_resident(table, key, placed.slots[u]);
        continue;
      }
      const GroupDirectory::Address at = directories_[table.group].find(key);
      placed.slots[u] = at.place == Place::kHot ? at.slot : next[table.group]++;
      if (at.place == Place::kWarm && (tier.warm_flags[at.slot] & kVoid) == 0) {
        tier.store(placed.slots[u], tier.warm_record(at.slot));
        tier.hot_flags[placed.slots[u]] = 0;
      } else if (at.place != Place::kHot) {
        fetch_->read(key, table.group, placed.slots[u], placed);
      }
    }
  }
  while (fetch_->pending() > 0) fetch_->poll(/*wait=*/true);
  return fetch_->failed_reads() > 0 ? reread_void_rows(known, placed) : Status();
}

Status Runtime::Engine::reread_void_rows(const KnownBatch& known, PlacedBatch& placed) {
  for (uint32_t f = 0; f < layout_.features.size(); ++f) {
    const uint32_t group = layout_.tables[layout_.features[f].table].group;
    for (uint32_t u = known.rows.feature_rows[f]; u < known.rows.feature_rows[f + 1]; ++u) {
      ROWTIDE_TRY(fetch_->reread(known.rows.keys[u], group, placed.slots[u], placed));
    }
  }
  return {};
}

}  // namespace rowtide
