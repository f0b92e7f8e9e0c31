#include "runtime/budgets.h"

#include <algorithm>

#include "runtime/admission.h"
#include "runtime/fetch.h"
#include "runtime/gradients.h"
#include "runtime/known_batches.h"
#include "runtime/next_uses.h"
#include "runtime/place.h"
#include "runtime/placed_batch.h"
#include "runtime/tiers.h"

namespace rowtide {
namespace {

constexpr uint64_t kTransitExtra = 90;  // bytes of a transit slot beside its record, about

std::string bytes_text(uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

TierBytes measure_group(const Layout& layout, uint32_t g) {
  Carver hbm, ddr;
  GroupTier tier(layout.groups[g], hbm, ddr);
  GroupDirectory directory(layout, g, hbm, ddr);
  return {hbm.used(), ddr.used()};
}

void list_hbm(Layout& layout) {
  for (uint32_t g = 0; g < layout.groups.size(); ++g) {
    const GroupLayout& group = layout.groups[g];
    const uint64_t slot = group.record_bytes() + 1;
    uint64_t listed = 0;
    auto line = [&](const std::string& what, uint64_t bytes) {
      if (bytes > 0) layout.plan.lines.push_back({"hbm", what, bytes});
      listed += bytes;
    };
    for (const TableLayout& table : layout.tables) {
      if (table.group == g && table.resident) line("resident " + table.name, table.rows * slot);
    }
    const std::string of = " of " + group.name();
    line(std::to_string(group.hot_sets) + " sets" + of, uint64_t{group.hot_sets} * kWays * slot);
    line("transit slots" + of, group.transit_slots * slot);
    line("evaluation slots" + of, group.eval_slots * slot);
    line("directory and moves" + of, measure_group(layout, g).hbm - listed);
  }
}

void list_ddr(Layout& layout, const std::vector<PlanLine>& fixed) {
  for (uint32_t g = 0; g < layout.groups.size(); ++g) {
    const GroupLayout& group = layout.groups[g];
    const uint64_t records = uint64_t{group.warm_sets} * kWays * (group.record_bytes() + 1);
    const std::string of = " of " + group.name();
    if (group.warm_sets > 0) {
      layout.plan.lines.push_back(
          {"ddr", std::to_string(group.warm_sets) + " warm sets" + of, records});
    }
    const uint64_t all = measure_group(layout, g).ddr;
    if (all > records) layout.plan.lines.push_back({"ddr", "warm directory" + of, all - records});
  }
  layout.plan.lines.insert(layout.plan.lines.end(), fixed.begin(), fixed.end());
}

// The P that the hot tier can hold for every batch, whatever its rows.
uint32_t fitting_p(const Layout& layout) {
  uint64_t p = layout.placed;
  for (const GroupLayout& group : layout.groups) {
    if (group.most_rows == 0) continue;
    const uint64_t slots = uint64_t{group.hot_sets} * kWays + group.transit_slots;
    const uint64_t batches = slots / group.most_rows;
    p = std::min(p, batches > 0 ? batches - 1 : 0);
  }
  return static_cast<uint32_t>(std::max<uint64_t>(p, layout.open_steps - 1));
}

void judge_budgets(const RuntimeOptions& o, Layout& layout) {
  Plan& plan = layout.plan;
  std::string short_of;
  const auto add = [&](const std::string& name, uint64_t least, uint64_t budget) {
    short_of += short_of.empty() ? "" : "; ";
    short_of += name + ": the least that works is " + bytes_text(least) + ", the budget is " +
                bytes_text(budget);
  };
  if (plan.least_hbm_bytes > o.hbm_bytes) add("hbm_bytes", plan.least_hbm_bytes, o.hbm_bytes);
  if (plan.least_ddr_bytes > o.ddr_bytes) add("ddr_bytes", plan.least_ddr_bytes, o.ddr_bytes);
  if (!layout.store.directories.empty()) {
    const DiskBudget disk = ColdStore::judge_budget(layout.store);
    plan.least_ssd_bytes = disk.least_bytes;
    const size_t count = layout.store.directories.size();
    const std::string shared =
        count > 1 ? " (however its " + std::to_string(count) + " directories share it)" : "";
    if (disk.status.code() == Code::kNoSpace) {
      add("ssd" + shared, plan.least_ssd_bytes, plan.ssd_bytes);
    }
  }
  if (!short_of.empty()) plan.status = {Code::kNoSpace, short_of};
  if (plan.placed_batches < layout.placed) {
    plan.warnings.push_back("hbm_bytes holds every batch of " + std::to_string(layout.max_ids) +
                            " ids for placed_batches = " + std::to_string(plan.placed_batches) +
                            ", not for " + std::to_string(layout.placed) +
                            ": larger batches are placed later");
  }
}

}  // namespace

TierBytes measure_groups(const Layout& layout) {
  TierBytes sum;
  for (uint32_t g = 0; g < layout.groups.size(); ++g) {
    const TierBytes bytes = measure_group(layout, g);
    sum.hbm += bytes.hbm;
    sum.ddr += bytes.ddr;
  }
  return sum;
}

// Bytes of host memory that do not depend on the warm sets, line by line.
std::vector<PlanLine> fixed_ddr(const RuntimeOptions& o, const Layout& layout) {
  std::vector<PlanLine> lines;
  auto line = [&](const std::string& what, auto&& carve) {
    Carver carver;
    carve(carver);
    lines.push_back({"ddr", what, carver.used()});
  };
  const bool admission = o.admission != "always";
  line("known batches (" + std::to_string(layout.known + 1) + ")", [&](Carver& c) {
    for (uint32_t i = 0; i <= layout.known; ++i) carve_known_batch(layout, o.weighted, c);
    BatchCopier::measure(layout, o.skip_bad_ids, c);
  });
  line("next uses", [&](Carver& c) { NextUses uses(layout, c, /*salt=*/0); });
  line("placed batches (" + std::to_string(layout.placed + 2) + ")", [&](Carver& c) {
    for (uint32_t i = 0; i < layout.placed + 2; ++i) PlacedBatch::carve(layout, admission, c);
  });
  line("evaluation batch", [&](Carver& c) {
    carve_known_batch(layout, o.weighted, c);
    PlacedBatch::carve(layout, false, c);
  });
  line("gradients", [&](Carver& c) { Gradients gradients(layout, o, c); });
  if (admission) line("admission", [&](Carver& c) { Admission a(o, layout, c); });
  if (!layout.store.directories.empty()) {
    std::vector<GroupTier> none;
    line("read staging", [&](Carver& c) { Fetch fetch(layout, 0, none, nullptr, c); });
    for (const MemoryLine& m : ColdStore::predict(layout.store)) {
      lines.push_back({"ddr", "log: " + m.name, m.bytes});
    }
  }
  return lines;
}

uint64_t sum_bytes(const std::vector<PlanLine>& lines) {
  uint64_t sum = 0;
  for (const PlanLine& line : lines) sum += line.bytes;
  return sum;
}

// Gives the budget beyond what is measured now to sets, by traffic: a group's distinct rows of a
// batch times its record, and never more sets than a third above its rows.
void share_sets(Layout& layout, uint64_t budget, uint64_t TierBytes::*tier,
                uint32_t GroupLayout::*sets) {
  const uint32_t groups = static_cast<uint32_t>(layout.groups.size());
  std::vector<uint64_t> per_set(groups), most(groups);
  for (uint32_t g = 0; g < groups; ++g) {
    GroupLayout& group = layout.groups[g];
    if (group.most_rows == 0) continue;
    const uint64_t before = measure_group(layout, g).*tier;
    group.*sets += 64;
    per_set[g] = (measure_group(layout, g).*tier - before + 63) / 64;
    group.*sets -= 64;
    const uint64_t enough = (group.cached_rows + group.cached_rows / 3) / kWays + 2;
    const bool hot = tier == &TierBytes::hbm;
    const uint64_t taken = hot ? group.hot_slots() - uint64_t{group.hot_sets} * kWays : 0;
    most[g] = std::min<uint64_t>(enough, (kNoSlot - taken) / kWays - 1);
  }
  for (int round = 0; round < 8; ++round) {
    const uint64_t used = measure_groups(layout).*tier;
    // The arrays' ends are rounded up: keep a little back from the last rounds.
    const uint64_t left = budget > used + 1024 * groups ? budget - used - 1024 * groups : 0;
    double weights = 0;
    for (uint32_t g = 0; g < groups; ++g) {
      if (layout.groups[g].*sets < most[g]) {
        weights += double(layout.groups[g].most_rows) * layout.groups[g].record_bytes();
      }
    }
    bool grew = false;
    for (uint32_t g = 0; g < groups && weights > 0; ++g) {
      GroupLayout& group = layout.groups[g];
      if (group.*sets >= most[g]) continue;
      const double share =
          double(left) * (double(group.most_rows) * group.record_bytes()) / weights;
      const uint64_t more = std::min<uint64_t>(static_cast<uint64_t>(share / double(per_set[g])),
                                               most[g] - group.*sets);
      group.*sets += static_cast<uint32_t>(more);
      grew |= more > 0;
    }
    if (!grew) break;
  }
}

// Transit slots beyond the least, so that a busy set rarely lowers P: a sixteenth of what is left.
void grow_transit(const RuntimeOptions& o, Layout& layout) {
  for (GroupLayout& group : layout.groups) {
    if (group.most_rows == 0) continue;
    const uint32_t least = group.transit_slots;
    const uint64_t left = o.hbm_bytes - measure_groups(layout).hbm;
    const uint64_t wanted = group.most_rows * (layout.placed + 1);
    uint64_t more =
        std::min({left / 16 / (group.record_bytes() + kTransitExtra) / layout.groups.size(),
                  wanted > least + kWays ? wanted - kWays - least : 0, kMostTransit - least});
    // Arrays end at lines and the hash at a power of two, so a few slots may cost far more.
    for (; more > 0; more /= 2) {
      group.transit_slots = least + static_cast<uint32_t>(more);
      if (measure_groups(layout).hbm <= o.hbm_bytes) break;
      group.transit_slots = least;
    }
  }
}

void write_plan(const RuntimeOptions& o, const std::vector<PlanLine>& fixed, Layout& layout) {
  list_hbm(layout);
  list_ddr(layout, fixed);
  const TierBytes all = measure_groups(layout);
  layout.plan.hbm_bytes = all.hbm;
  layout.plan.ddr_bytes = all.ddr + sum_bytes(fixed);
  layout.plan.placed_batches = fitting_p(layout);
  judge_budgets(o, layout);
}

}  // namespace rowtide
