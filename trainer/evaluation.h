#pragma once
// evaluation — the quality of a model on rows that it was not trained on.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/console.h"
#include "trainer/exit_code.h"
#include "trainer/metrics.h"
#include "trainer/trained_model.h"
#include "trainer/wait_watch.h"

namespace rowtide {

// Rows [first_row, end) of the files.
struct EvalRows {
  std::vector<std::string> files;
  uint64_t first_row = 0;
};

struct EvalProgress {
  uint64_t samples = 0;
  double fraction = 0;  // of the files' bytes
};
void show(Console& console, const EvalProgress& progress);

// Looks up and predicts batch by batch, while `progress` says true; changes nothing in the model.
// REQUIRES: no step is forwarded and not ended.
// Errors: of data (also rows without labels, and no rows at all) and of the runtime; kInterrupted.
Failure evaluate(TrainedModel& model, const EvalRows& rows, LogLine log, WaitWatch& watch,
                 const std::function<bool(const EvalProgress&)>& progress, Quality& quality);

}  // namespace rowtide
