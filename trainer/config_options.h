#pragma once
// config_options — a resolved Config as the options of the parts, in one place.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/rowtide.h"
#include "trainer/config.h"
#include "trainer/criteo_reader.h"
#include "trainer/dlrm.h"

namespace rowtide {

using LogLine = std::function<void(const std::string&)>;

// Relative SSD directories lie below `directory`.
RuntimeOptions runtime_options(const Config& config, const std::string& directory, LogLine log);
DlrmOptions dlrm_options(const Config& config);
// A reader of rows [first_row, end_row) of `files`.
CriteoReaderOptions reader_options(const Config& config, const std::vector<std::string>& files,
                                   uint64_t first_row, uint64_t end_row, LogLine log);

}  // namespace rowtide
