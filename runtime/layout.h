#pragma once
// layout — from options to numbers: groups, slots, sets, and the bytes of every tier.
//
// plan() prints it and open() reserves it: one calculation, so predicted = reserved (design.md,
// I7).  It knows sizes, and what the store says of its tables; it touches no memory.

#include <string>
#include <vector>

#include "kernels/policies/policy.h"
#include "kernels/rows.h"
#include "runtime/rowtide.h"
#include "runtime/table_list.h"
#include "storage/cold_store.h"

namespace rowtide {

struct TableLayout {
  std::string name;
  uint32_t id = 0;  // in keys; the table's index until a store says otherwise
  uint64_t rows = 0;
  RowFormat format;
  float init_scale = 0;
  uint32_t group = 0;
  bool resident = false;
  Slot base = 0;  // of a resident table's row 0 in the group's hot arena
  std::vector<uint32_t> features;
};

// All tables whose records have the same weight bytes and the same state bytes.
// Hot slots in order: sets of 32, transit, evaluation, resident.
struct GroupLayout {
  uint32_t weight_bytes = 0, state_bytes = 0;
  uint64_t most_rows = 0;    // B: distinct non-resident rows of one batch, at most
  uint64_t cached_rows = 0;  // of all its cached tables
  uint32_t record_type = 0;  // in the log
  uint64_t resident_rows = 0;
  uint32_t hot_sets = 0, warm_sets = 0;
  uint32_t transit_slots = 0, eval_slots = 0;

  uint32_t record_bytes() const { return weight_bytes + state_bytes; }
  Slot transit_base() const { return hot_sets * kWays; }
  Slot eval_base() const { return transit_base() + transit_slots; }
  Slot resident_base() const { return eval_base() + eval_slots; }
  uint64_t hot_slots() const { return resident_base() + resident_rows; }
  std::string name() const {
    return "group " + std::to_string(weight_bytes) + "+" + std::to_string(state_bytes);
  }
};

struct FeatureLayout {
  uint32_t table = 0;
  Pooling pooling = Pooling::kSum;
  uint32_t width = 0;
  uint64_t column = 0;    // of the pooled output, in floats
  uint32_t sequence = 0;  // index among sequence features
  uint64_t most_ids = 0;  // of one batch
};

struct Layout {
  std::vector<TableLayout> tables;
  std::vector<GroupLayout> groups;
  std::vector<FeatureLayout> features;
  uint64_t pooled_width = 0;  // floats of a sample
  uint32_t sequence_count = 0;
  uint64_t max_samples = 0, max_ids = 0;
  uint32_t known = 0, placed = 0, open_steps = 1;  // L, P
  const Policy* policy = nullptr;
  ColdStoreOptions store;    // directories empty: no cold tier
  TableList table_list;      // what the store keeps, and new ones
  CommitHeader last_commit;  // of the store; zero if there is none
  Plan plan;

  uint64_t max_bags() const { return features.size() * max_samples; }
};

// Errors: kInvalid, naming the option or the table that the store keeps in another shape; kIo,
// kFormat, kCorrupt of the store.  Budgets that do not suffice are in plan.status.
Result<Layout> make_layout(const RuntimeOptions& options);

}  // namespace rowtide
