#pragma once
// memory_plan — all memory of a run, by name, before it is taken.

#include "runtime/rowtide.h"
#include "trainer/config.h"

namespace rowtide {

// The plan of the runtime, with lines of the tier "process" for what is no table: the dense part,
// the reader, batches that wait, and the process as it is now.
Plan plan_run(const Config& config, const std::string& directory);

// The plan as text, for `rowtide plan`.
std::string describe_plan(const Plan& plan, const Config& config);

}  // namespace rowtide
