#include "runtime/layout.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_set>

#include "runtime/admission.h"
#include "runtime/budgets.h"

namespace rowtide {
namespace {

// Of the hot budget, resident tables may take half unless all tables fit: the rest serves the sets
// of the large tables.
constexpr uint64_t kResidentShare = 2;
constexpr int kMostThreads = 4096;
constexpr uint32_t kMostParts = 4096;

Status invalid(const std::string& what) { return {Code::kInvalid, what}; }

Status check_tables(const RuntimeOptions& o) {
  if (o.tables.empty()) return invalid("no tables");
  if (o.tables.size() >= kMaxTables) return invalid("more than 65534 tables");
  std::unordered_set<std::string_view> names;
  for (size_t t = 0; t < o.tables.size(); ++t) {
    const TableOptions& table = o.tables[t];
    const std::string name = "table " + (table.name.empty() ? std::to_string(t) : table.name);
    if (table.name.empty()) return invalid(name + " has no name");
    if (!names.insert(table.name).second) return invalid(name + " is given twice");
    if (table.rows == 0 || table.rows > kMaxRows) {
      return invalid(name + ": rows = " + std::to_string(table.rows) + ", must be 1 to 2^48");
    }
    if (table.width == 0 || table.width > 4096) {
      return invalid(name + ": width = " + std::to_string(table.width) + ", must be 1 to 4096");
    }
    if (!(table.init_scale >= 0) || !std::isfinite(table.init_scale)) {
      return invalid(name + ": init_scale must be finite and not negative");
    }
  }
  return {};
}

Status check_options(const RuntimeOptions& o) {
  if (o.device != "cpu") {
    return {Code::kUnavailable, "device \"" + o.device + "\": this build has the devices: cpu"};
  }
  ROWTIDE_TRY(check_tables(o));
  if (o.features.empty()) return invalid("no features");
  for (const FeatureOptions& feature : o.features) {
    if (feature.table >= o.tables.size()) {
      return invalid("feature " + feature.name + " names table " + std::to_string(feature.table) +
                     " of " + std::to_string(o.tables.size()));
    }
  }
  if (o.max_samples == 0) return invalid("max_samples must be at least 1");
  if (o.max_ids == 0) return invalid("max_ids must be at least 1");
  if (o.max_ids >= kSkipped) return invalid("max_ids must be below 2^32 - 1");
  if (o.max_samples >= kSkipped / o.features.size()) {
    return invalid("max_samples = " + std::to_string(o.max_samples) + " x " +
                   std::to_string(o.features.size()) + " features must be below 2^32 - 1");
  }
  if (o.threads < 0 || o.threads > kMostThreads) {
    return invalid("threads = " + std::to_string(o.threads) + ", must be 0 to " +
                   std::to_string(kMostThreads));
  }
  if (o.gradient_parts > kMostParts) {
    return invalid("gradient_parts = " + std::to_string(o.gradient_parts) + ", must be 0 to " +
                   std::to_string(kMostParts));
  }
  if (o.open_steps == 0) return invalid("open_steps must be at least 1");
  if (o.placed_batches + 1 < o.open_steps) {
    return invalid("placed_batches = " + std::to_string(o.placed_batches) +
                   ", must be at least open_steps - 1 = " + std::to_string(o.open_steps - 1));
  }
  if (o.known_batches < o.placed_batches || o.known_batches > 65536) {
    return invalid("known_batches = " + std::to_string(o.known_batches) +
                   ", must be placed_batches = " + std::to_string(o.placed_batches) + " to 65536");
  }
  if (find_policy(o.policy) == nullptr) {
    std::string names;
    for (std::string_view name : policy_names())
      names += (names.empty() ? "" : ", ") + std::string(name);
    return invalid("policy \"" + o.policy + "\" is none of " + names);
  }
  if (o.io_engine != "auto" && o.io_engine != "io_uring" && o.io_engine != "threads") {
    return invalid("io_engine \"" + o.io_engine + "\" is none of auto, io_uring, threads");
  }
  return check_admission(o);
}

void make_tables(const RuntimeOptions& o, Layout& layout) {
  for (const TableOptions& table : o.tables) {
    TableLayout t;
    t.name = table.name;
    t.id = static_cast<uint32_t>(layout.tables.size());
    t.rows = table.rows;
    t.format = {table.width, table.precision, table.optimizer};
    t.init_scale = table.init_scale;
    const auto same = std::find_if(layout.groups.begin(), layout.groups.end(), [&](auto& g) {
      return g.weight_bytes == t.format.weight_bytes() && g.state_bytes == t.format.state_bytes();
    });
    t.group = static_cast<uint32_t>(same - layout.groups.begin());
    if (same == layout.groups.end()) {
      layout.groups.emplace_back();
      layout.groups.back().weight_bytes = t.format.weight_bytes();
      layout.groups.back().state_bytes = t.format.state_bytes();
    }
    layout.tables.push_back(t);
  }
}

void make_features(const RuntimeOptions& o, Layout& layout) {
  for (uint32_t f = 0; f < o.features.size(); ++f) {
    const FeatureOptions& feature = o.features[f];
    FeatureLayout l;
    l.table = feature.table;
    l.pooling = feature.pooling;
    l.width = o.tables[feature.table].width;
    l.most_ids = o.max_ids;
    if (feature.max_ids_per_sample > 0) {
      l.most_ids = std::min(o.max_ids, o.max_samples * feature.max_ids_per_sample);
    }
    if (feature.pooling == Pooling::kNone) {
      l.sequence = layout.sequence_count++;
    } else {
      l.column = layout.pooled_width;
      layout.pooled_width += l.width;
    }
    layout.tables[l.table].features.push_back(f);
    layout.features.push_back(l);
  }
}

// At most 2^48 * 49153, so one fits 64 bits and any number of them, each cut at kHuge, as well.
constexpr uint64_t kHuge = uint64_t{1} << 47;
uint64_t resident_bytes(const TableLayout& table) {
  return table.rows * (table.format.record_bytes() + 1);
}

// Those that must be: asked for, or, without a store, all; and those whose rows take no more room
// than the transit and evaluation slots that they would need.
void choose_certain_residents(const RuntimeOptions& o, Layout& layout) {
  for (uint32_t t = 0; t < layout.tables.size(); ++t) {
    TableLayout& table = layout.tables[t];
    uint64_t ids = 0;
    for (uint32_t f : table.features) ids += layout.features[f].most_ids;
    const bool small = table.rows <= ids * (o.open_steps + 1);
    table.resident = layout.store.directories.empty() ||
                     o.tables[t].placement == Placement::kResident ||
                     (o.tables[t].placement == Placement::kAuto && small);
  }
}

// Then the smallest of the others, within their share of the budget and of what is left beyond the
// least: a table that may be cached is never the reason that a budget does not suffice.
void choose_more_residents(const RuntimeOptions& o, uint64_t least, Layout& layout) {
  std::vector<uint32_t> order;
  uint64_t all = 0;
  bool any_cached = false;
  for (uint32_t t = 0; t < layout.tables.size(); ++t) {
    all += std::min(resident_bytes(layout.tables[t]), kHuge);
    any_cached |= o.tables[t].placement == Placement::kCached;
    if (o.tables[t].placement == Placement::kAuto && !layout.tables[t].resident) order.push_back(t);
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return resident_bytes(layout.tables[a]) < resident_bytes(layout.tables[b]);
  });
  uint64_t taken = 0;
  for (const TableLayout& table : layout.tables) {
    taken += table.resident ? resident_bytes(table) : 0;
  }
  const uint64_t rounding = 1024 * layout.groups.size();
  const uint64_t share = o.hbm_bytes / kResidentShare;
  uint64_t left = std::min(share - std::min(share, taken),
                           o.hbm_bytes - std::min(o.hbm_bytes, least + rounding));
  const bool all_fit = !any_cached && all + rounding <= o.hbm_bytes;
  if (all_fit) left = all;
  for (uint32_t t : order) {
    TableLayout& table = layout.tables[t];
    GroupLayout& group = layout.groups[table.group];
    table.resident = resident_bytes(table) <= left && group.hot_slots() + table.rows < kNoSlot / 2;
    if (!table.resident) continue;
    left -= resident_bytes(table);
    group.resident_rows += table.rows;
  }
}

// B of each group: what its cached features can name in one batch; and the least slots for it.
// Errors: kInvalid, more slots than a Slot can number.
Status count_rows(const RuntimeOptions& o, Layout& layout) {
  for (GroupLayout& group : layout.groups) {
    group.most_rows = group.cached_rows = group.resident_rows = 0;
  }
  for (const TableLayout& table : layout.tables) {
    GroupLayout& group = layout.groups[table.group];
    if (table.resident) {
      group.resident_rows += table.rows;
      if (group.resident_rows < kNoSlot / 2) continue;
      return invalid("table " + table.name + ": with its " + std::to_string(table.rows) +
                     " rows a group has more than 2^31 rows that lie whole in the hot tier" +
                     (layout.store.directories.empty() ? ", as all do without `ssd`" : ""));
    }
    uint64_t ids = 0;
    for (uint32_t f : table.features) ids += layout.features[f].most_ids;
    group.most_rows += std::min(ids, table.rows);
    group.cached_rows += table.rows;
  }
  for (GroupLayout& group : layout.groups) {
    group.most_rows = std::min(group.most_rows, o.max_ids);
    const uint64_t needed = group.most_rows * o.open_steps;
    if (needed + group.most_rows >= kMostTransit) {
      return invalid("max_ids = " + std::to_string(o.max_ids) +
                     " x (open_steps + 1) must be below " + std::to_string(kMostTransit));
    }
    group.transit_slots = static_cast<uint32_t>(needed > kWays ? needed - kWays : 0);
    // One more than an evaluation needs: rows by key pass through it, also while one is open.
    group.eval_slots = group.cached_rows > 0 ? static_cast<uint32_t>(group.most_rows) + 1 : 0;
    group.hot_sets = group.most_rows > 0 ? 1 : 0;
  }
  return {};
}

void make_bases(Layout& layout) {
  for (uint32_t g = 0; g < layout.groups.size(); ++g) {
    uint64_t base = layout.groups[g].resident_base();
    for (TableLayout& table : layout.tables) {
      if (table.group != g || !table.resident) continue;
      table.base = static_cast<Slot>(base);
      base += table.rows;
    }
  }
}

// Ids and record types go on from what the store was made with.
Status meet_store(const RuntimeOptions& o, Layout& layout) {
  auto summary = ColdStore::summary(layout.store.directories);
  if (!summary.ok()) return summary.status();
  auto list = TableList::of_store(*summary, &layout.last_commit);
  if (!list.ok()) return list.status();
  layout.table_list = std::move(*list);
  ROWTIDE_TRY(layout.table_list.assign_ids(o.seed, &layout));
  layout.store.tables = layout.table_list.all_rows();
  for (const TableRows& table : layout.store.tables) layout.store.max_rows += table.rows;
  std::vector<uint32_t>& types = layout.store.payload_bytes;
  types = summary->payload_bytes;
  for (GroupLayout& group : layout.groups) {
    const auto type = std::find(types.begin(), types.end(), group.record_bytes());
    group.record_type = static_cast<uint32_t>(type - types.begin());
    if (type == types.end()) types.push_back(group.record_bytes());
  }
  return {};
}

void make_store_options(const RuntimeOptions& o, Layout& layout) {
  for (const SsdDirectory& d : o.ssd) {
    layout.store.directories.push_back({d.directory, d.bytes});
    layout.plan.ssd_bytes += d.bytes;
  }
  layout.store.engine = o.io_engine == "io_uring"  ? IoEngine::kUring
                        : o.io_engine == "threads" ? IoEngine::kThreads
                                                   : IoEngine::kAuto;
  layout.store.log = o.log;
}

}  // namespace

Result<Layout> make_layout(const RuntimeOptions& options) {
  ROWTIDE_TRY(check_options(options));
  Layout layout;
  layout.max_samples = options.max_samples;
  layout.max_ids = options.max_ids;
  layout.known = options.known_batches;
  layout.placed = options.placed_batches;
  layout.open_steps = options.open_steps;
  layout.policy = find_policy(options.policy);
  make_tables(options, layout);
  make_features(options, layout);
  make_store_options(options, layout);
  ROWTIDE_TRY(meet_store(options, layout));
  choose_certain_residents(options, layout);
  ROWTIDE_TRY(count_rows(options, layout));

  // Host memory depends on the warm sets alone, whatever the hot tier's size.
  std::vector<PlanLine> fixed = fixed_ddr(options, layout);
  uint64_t fixed_bytes = sum_bytes(fixed);
  const TierBytes least = measure_groups(layout);
  layout.plan.least_hbm_bytes = least.hbm;
  layout.plan.least_ddr_bytes = least.ddr + fixed_bytes;
  if (least.hbm <= options.hbm_bytes && layout.plan.least_ddr_bytes <= options.ddr_bytes) {
    choose_more_residents(options, least.hbm, layout);
    ROWTIDE_TRY(count_rows(options, layout));
    fixed = fixed_ddr(options, layout);
    fixed_bytes = sum_bytes(fixed);
    grow_transit(options, layout);
    share_sets(layout, options.hbm_bytes, &TierBytes::hbm, &GroupLayout::hot_sets);
    share_sets(layout, options.ddr_bytes - fixed_bytes, &TierBytes::ddr, &GroupLayout::warm_sets);
  }
  make_bases(layout);
  write_plan(options, fixed, layout);
  return layout;
}

}  // namespace rowtide
