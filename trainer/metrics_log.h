#pragma once
// MetricsLog — metrics.jsonl, one JSON object a line; README.md documents the fields.
//
// A line is complete when its call returns.  A run that is resumed drops the lines past its commit,
// also a line that was cut when the process died.

#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "trainer/run_record.h"

namespace rowtide {

inline constexpr int kMetricsSchema = 1;

class MetricsLog {
 public:
  // Begins a file, or with `resume` goes on after the lines of steps <= record.step, and writes
  // the "start" or "resume" line.  Errors: kIo, kNoSpace.
  static Result<MetricsLog> open(const std::string& path, bool resume, const StartRecord& record);

  // Errors: kIo, kNoSpace.
  Status step(const StepRecord& record);
  Status evaluation(const EvalRecord& record);
  Status commit(uint64_t steps, uint64_t commits, double seconds);
  Status end(const EndRecord& record);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Status write(const std::string& line);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace rowtide
