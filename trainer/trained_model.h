#pragma once
// TrainedModel — tables and dense part of a run, at its last commit.
//
// Training, evaluation and inspection all begin here.  What a commit keeps beside the rows:
//     dense/...         float32   weights, biases and optimizer state of the dense part
//     trainer/run       uint8     the id of the run (run_directory.h)
//     trainer/position  int64     epoch, row, steps, samples, rows of the files (-1: not counted)
//     trainer/meters    float64   loss sum, samples, positives of the window; last loss, last NE

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/parallel.h"
#include "runtime/rowtide.h"
#include "trainer/config.h"
#include "trainer/config_options.h"
#include "trainer/dlrm.h"
#include "trainer/exit_code.h"

namespace rowtide {

// Where in the data a run is, after `steps` steps.
struct Position {
  uint64_t epoch = 0, row = 0;  // the next row to train on
  uint64_t steps = 0, samples = 0;
  int64_t file_rows = -1;  // rows of data.files once they were counted
};

// The loss since the last line of metrics.
struct LossWindow {
  double loss_sum = 0, samples = 0, positives = 0;
  double last_loss = 0, last_ne = 0;  // of the window before

  void add(double mean_loss, std::span<const float> labels);
  // Closes the window: last_loss and last_ne become its own, if it has samples.
  void close();
};

class TrainedModel {
 public:
  // Opens the store of the run in `directory` and returns to its last commit.  A store that holds
  // commits of another run is refused: kInvalid, naming both.
  static Failure open(const Config& config, const std::string& directory, LogLine log,
                      std::unique_ptr<TrainedModel>& model);

  // What a commit keeps beside the rows.
  std::vector<CommitArray> arrays();
  Result<Digest> digest();

  Config config;
  std::string run_id;
  Parallel parallel;
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<Dlrm> dense;
  Position position;
  LossWindow window;

 private:
  explicit TrainedModel(const Config& config)
      : config(config), parallel(static_cast<int>(config.run.threads)) {}
  Status check_owner(const std::string& directory) const;
  Status restore();
};

}  // namespace rowtide
