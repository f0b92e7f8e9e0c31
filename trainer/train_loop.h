#pragma once
// TrainLoop — the steps of a run: read, submit ahead, forward, dense part, update.
//
//     fill      batches are read and submitted until known_batches wait
//     step      the oldest is looked up, trained on and applied
//     between   metrics, evaluation and commit, each after so many steps
//
// It knows nothing of files but the readers that it opens, and nothing of tiers.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/console.h"
#include "trainer/evaluation.h"
#include "trainer/metrics_log.h"
#include "trainer/trained_model.h"
#include "trainer/wait_watch.h"

namespace rowtide {

struct TrainLoopOptions {
  uint64_t stop_after = 0;  // stop at this step, as if the run ended there; 0: as the config says
  LogLine log;
};

class TrainLoop {
 public:
  // All must outlive it.
  TrainLoop(TrainedModel& model, MetricsLog& metrics, Console& console, TrainLoopOptions options);

  // Trains until the configured end, stop_after, the first Ctrl-C, or a failure, then commits and
  // evaluates (after Ctrl-C only commits).  After a failure of data, evaluation or metrics it
  // commits as well; after one of a step the last commit stays.
  Failure run();

  // What the last line of metrics says; its event is "end", "interrupted" or "failed".
  EndRecord end_record(const Failure& failure) const;

 private:
  // A batch that was submitted; only what its step needs is kept.
  struct Pending {
    std::optional<Step> step;
    uint64_t samples = 0, epoch = 0, next_row = 0;
    std::vector<float> labels, dense;
  };

  Failure split_rows();
  Failure open_reader();
  Failure train();
  Failure fill();
  Failure submit_next(bool& ended);
  Failure step();
  Failure learn(Pending& pending, float rate);
  Failure no_number(double loss, float rate) const;
  Failure between_steps();
  Failure finish();
  Failure evaluate_now();
  Failure commit_now();
  Failure write_metrics();
  StepRecord step_record() const;
  uint64_t last_step() const;
  bool due(uint64_t every) const { return every != 0 && model_.position.steps % every == 0; }
  void show_progress();
  double now() const;

  TrainedModel& model_;
  const Config& config_;
  MetricsLog& metrics_;
  Console& console_;
  TrainLoopOptions options_;
  WaitWatch watch_;

  uint64_t train_rows_ = ~uint64_t{0};  // of data.files; the rest is held out
  std::optional<EvalRows> held_out_;
  std::unique_ptr<CriteoReader> reader_;
  Position read_;  // what was read; model_.position is what was trained on
  ClickBatch batch_;
  std::vector<Pending> ring_;  // of known_batches
  size_t first_ = 0, count_ = 0;
  bool input_ended_ = false;
  Failure data_failure_;  // met while reading ahead
  std::vector<float> logits_, pooled_, pooled_gradient_;

  StageSeconds stages_;
  double began_ = 0;
  uint64_t first_sample_ = 0, skipped_lines_ = 0;
  uint64_t committed_at_ = ~uint64_t{0}, evaluated_at_ = ~uint64_t{0};
  bool committed_early_ = false;  // has been said
  Quality quality_;
};

}  // namespace rowtide
