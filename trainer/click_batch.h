#pragma once
// ClickBatch — labelled samples as a reader hands them to the trainer.

#include <cstdint>
#include <string>
#include <vector>

namespace rowtide {

// Capacities are kept between uses: a steady reader allocates nothing.
struct ClickBatch {
  uint64_t samples = 0;
  std::vector<float> labels;     // (samples), empty if the file has none
  std::vector<float> dense;      // (samples, dense features), transformed
  std::vector<int64_t> ids;      // feature-major, mapped to rows of the tables
  std::vector<int64_t> offsets;  // (features * samples + 1)
  uint64_t first_row = 0;        // number of its first sample since the beginning of the files
  uint64_t skipped_lines = 0;    // malformed lines passed over in this batch (on_error = skip)
};

}  // namespace rowtide
