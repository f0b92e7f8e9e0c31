#pragma once
// report — a run's metrics.jsonl as one HTML page that needs nothing else.
//
// Written at the end of a run, however it ends; light or dark as the reader's machine is.

#include <string>

#include "runtime/base/status.h"

namespace rowtide {

// Errors: kNotFound, kFormat (of the metrics), kIo, kNoSpace.
Status write_report(const std::string& metrics_path, const std::string& html_path);

}  // namespace rowtide
