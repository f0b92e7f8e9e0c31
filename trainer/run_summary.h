#pragma once
// run_summary — the short table that a run ends with.

#include <string>

#include "trainer/run_record.h"

namespace rowtide {

std::string describe_run(const EndRecord& record, const StartRecord& start);
std::string describe_quality(const Quality& quality);

}  // namespace rowtide
