#pragma once
// synth — Criteo-format files from a planted model, so that a run's AUC has a known ceiling.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace rowtide {

struct SynthOptions {
  uint64_t rows = 0;
  uint64_t seed = 1;
  std::string out;  // ".gz": compressed; with several files NAME-0 .. NAME-(files - 1),
                    // before the ".gz" and ".tsv" endings
  uint32_t files = 1;
  double scale = 1;  // of the cardinalities
  int threads = 0;
  std::function<void(double fraction)> progress;  // called from one thread; may be empty
};

// Writes the files and beside each FILE.truth.json with rows, positives, and the hidden model's
// AUC, logloss and NE on it.  The same bytes whatever the number of threads.
// Errors: kInvalid, kIo, kNoSpace.  A half-written file is removed.
Status write_synthetic_criteo(const SynthOptions& options);

}  // namespace rowtide
