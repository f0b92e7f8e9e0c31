#pragma once
// budgets — what a layout costs, and how what is left of the budgets is spent.
//
// Bytes are measured by laying every component out over no memory (runtime/base/carver.h), so what
// is predicted is what open() reserves.

#include <cstdint>
#include <vector>

#include "runtime/layout.h"

namespace rowtide {

inline constexpr uint64_t kMostTransit = 1u << 30;  // transit slots of a group

struct TierBytes {
  uint64_t hbm = 0, ddr = 0;
};

// Slots and directories of all groups as they are laid out now.
TierBytes measure_groups(const Layout& layout);

// Bytes of host memory that do not depend on the warm sets, line by line.
std::vector<PlanLine> fixed_ddr(const RuntimeOptions& options, const Layout& layout);
uint64_t sum_bytes(const std::vector<PlanLine>& lines);

// Gives groups transit slots beyond the least.
void grow_transit(const RuntimeOptions& options, Layout& layout);

// Gives the budget beyond what is measured now to sets: hot ones of hbm, warm ones of ddr.
void share_sets(Layout& layout, uint64_t budget, uint64_t TierBytes::*tier,
                uint32_t GroupLayout::*sets);

// Lists all lines, and says whether the budgets suffice and which P fits.
void write_plan(const RuntimeOptions& options, const std::vector<PlanLine>& fixed, Layout& layout);

}  // namespace rowtide
