#pragma once
// memory_plan — all memory of a run, by name, before it is taken.

#include "runtime/rowtide.h"
#include "trainer/config.h"

namespace rowtide {

// The plan of the runtime, with lines of the tier "process" for what is no table: the dense part,
// the reader, batches that wait, and the process as it is now.
Plan plan_run(const Config& config, const std::string& directory);

// Whether all of a plan's memory together is there; each part alone may be.  `available` is
// available_host_bytes().  Errors: kNoSpace: need, have and the largest lines.
Status check_host_memory(const Plan& plan, uint64_t available);

// The plan as text, for `rowtide plan`.
std::string describe_plan(const Plan& plan, const Config& config);

}  // namespace rowtide
