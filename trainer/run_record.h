#pragma once
// run_record — what a run tells about itself: the values behind the lines of metrics.jsonl.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/rowtide.h"
#include "trainer/config.h"
#include "trainer/metrics.h"

namespace rowtide {

// What the time of a run goes to, in the order of a batch's way.
enum class Stage {
  kRead,        // the trainer waited for the reader
  kDistribute,  // ranks swap ids; nothing with one rank
  kKnown,       // submit
  kPlace,       // beside the others
  kFetch,       // beside the others
  kForward,     // pooling, without the wait for rows
  kDense,       // forward of the dense part and its update
  kBackward,    // backward of the dense part
  kApply,       // gradients summed, rows updated
  kCommit,
  kEvaluate,
};
inline constexpr size_t kStageCount = 11;
inline constexpr const char* kStageNames[kStageCount] = {
    "read",  "distribute", "known", "place",  "fetch",   "forward",
    "dense", "backward",   "apply", "commit", "evaluate"};

struct StageSeconds {
  std::array<double, kStageCount> seconds = {};
  double& operator[](Stage stage) { return seconds[static_cast<size_t>(stage)]; }
};

// Memory that the run was predicted to take, by tier ("hbm", "ddr", "ssd", and "process" for what
// is no table: dense part, reader, the process itself).
struct StartRecord {
  Config config;
  std::vector<PlanLine> plan;
  std::string instruction_set, io_engine, file_system;
  uint64_t step = 0;  // at which it starts: 0, or that of the commit
};

// Counters since this process began; steps and samples since the run began.
struct StepRecord {
  uint64_t steps = 0, samples = 0;
  double seconds = 0;  // of this process
  double samples_per_s = 0;
  double learning_rate = 0;
  double loss = 0, ne = 0;  // over the steps since the line before
  Stats stats;
  StageSeconds stages;
  uint64_t skipped_lines = 0;
  uint64_t resident_bytes = 0;  // of the process
};

struct EvalRecord {
  uint64_t steps = 0;
  Quality quality;
  double seconds = 0;
};

struct EndRecord {
  std::string event = "end";  // or "interrupted", "failed"
  std::string message;        // why it failed, or how to go on
  StepRecord last;
  std::optional<Quality> quality;  // of the last evaluation, if that was after the last step
  std::string digest;              // empty: not asked for
  uint64_t commits = 0;
  uint64_t peak_resident_bytes = 0;
};

// Of this process, from the kernel.
uint64_t resident_bytes();
uint64_t peak_resident_bytes();

}  // namespace rowtide
