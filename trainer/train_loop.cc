#include "trainer/train_loop.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "trainer/interrupt.h"
#include "trainer/learning_rate.h"
#include "trainer/steady_seconds.h"

namespace rowtide {
namespace {

// Adds the time of its life to a stage.
class Timer {
 public:
  explicit Timer(double& total) : total_(total), began_(steady_seconds()) {}
  ~Timer() { total_ += steady_seconds() - began_; }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  double& total_;
  double began_;
};

ApplyOptions apply_options(const OptimizerConfig& optimizer, float rate) {
  return {.learning_rate = rate,
          .eps = static_cast<float>(optimizer.eps),
          .beta1 = static_cast<float>(optimizer.beta1),
          .beta2 = static_cast<float>(optimizer.beta2),
          .weight_decay = static_cast<float>(optimizer.weight_decay),
          .decoupled = optimizer.decoupled};
}

}  // namespace

TrainLoop::TrainLoop(TrainedModel& model, MetricsLog& metrics, Console& console,
                     TrainLoopOptions options)
    : model_(model),
      config_(model.config),
      metrics_(metrics),
      console_(console),
      options_(std::move(options)),
      watch_(options_.log),
      read_(model.position),
      ring_(config_.tiers.known_batches + 1),  // the step at hand, and L ahead
      began_(steady_seconds()),
      first_sample_(model.position.samples) {
  const uint64_t pooled = config_.data.batch * config_.model.tables.size() * config_.model.dim;
  logits_.resize(config_.data.batch);
  pooled_.resize(pooled);
  pooled_gradient_.resize(pooled);
  if (model.runtime->commits() > 0) committed_at_ = model.position.steps;
}

double TrainLoop::now() const { return steady_seconds() - began_; }

Failure TrainLoop::run() {
  Failure failure = split_rows();
  began_ = steady_seconds();  // counting rows is no training
  if (failure.ok()) failure = train();
  ring_.clear();  // what was only read is read again by whoever goes on
  if (failure.ok()) {
    failure = data_failure_.ok() ? finish() : commit_now();
    if (failure.ok()) failure = data_failure_;
  }
  console_.finish_progress();
  return failure;
}

// Which rows are trained on and which are held out.
Failure TrainLoop::split_rows() {
  if (config_.data.files.empty()) {
    return {{Code::kInvalid, "data.files names no file to train on"}, Part::kConfig};
  }
  if (!config_.data.eval_files.empty()) held_out_ = EvalRows{config_.data.eval_files, 0};
  if (config_.data.eval_fraction == 0) return {};
  if (model_.position.file_rows < 0) {
    console_.say("counting rows, to hold out the last " +
                 std::to_string(config_.data.eval_fraction * 100).substr(0, 4) + " %");
    const WaitWatch::Wait wait(watch_, "the trainer waits for its rows to be counted");
    const auto rows =
        count_criteo_rows(reader_options(config_, config_.data.files, 0, ~uint64_t{0}, /*log=*/{}));
    ROWTIDE_TRY_PART(Part::kData, rows.status());
    model_.position.file_rows = static_cast<int64_t>(*rows);
  }
  const auto rows = static_cast<uint64_t>(model_.position.file_rows);
  train_rows_ = rows - static_cast<uint64_t>(double(rows) * config_.data.eval_fraction);
  if (train_rows_ == rows) {
    return {{Code::kInvalid, "data.eval_fraction holds out none of " + std::to_string(rows) +
                                 " rows: make it larger, or 0"},
            Part::kConfig};
  }
  held_out_ = EvalRows{config_.data.files, train_rows_};
  return {};
}

Failure TrainLoop::train() {
  while (true) {
    if (const Failure failure = fill(); !failure.ok()) return failure;
    if (count_ == 0) return {};
    if (const Failure failure = step(); !failure.ok()) return failure;
    if (const Failure failure = between_steps(); !failure.ok()) return failure;
    if (interrupt_requested()) return {};
  }
}

// The step after which this run is over.
uint64_t TrainLoop::last_step() const {
  uint64_t last = ~uint64_t{0};
  if (config_.run.steps != 0) last = config_.run.steps;
  if (options_.stop_after != 0) last = std::min(last, options_.stop_after);
  return last;
}

Failure TrainLoop::open_reader() {
  auto reader = CriteoReader::open(
      reader_options(config_, config_.data.files, read_.row, train_rows_, options_.log));
  ROWTIDE_TRY_PART(Part::kData, reader.status());
  reader_ = std::move(*reader);
  if (!reader_->has_labels()) {
    return {{Code::kInvalid, config_.data.files.front() + " has no labels to train on"},
            Part::kData};
  }
  return {};
}

// Broken data ends the input: what came before it is still trained on, and committed.
Failure TrainLoop::fill() {
  while (!input_ended_ && count_ < ring_.size()) {
    bool ended = read_.steps >= last_step() || read_.epoch >= config_.run.epochs;
    Failure failure;
    if (!ended) failure = submit_next(ended);
    if (!failure.ok() && failure.part != Part::kData) return failure;
    if (!failure.ok()) data_failure_ = failure;
    if (ended || !failure.ok()) {
      input_ended_ = true;
      model_.runtime->end_of_input();
    }
  }
  return {};
}

// Reads a batch and submits it; at the end of the files the next epoch begins.
Failure TrainLoop::submit_next(bool& ended) {
  if (reader_ == nullptr) {
    if (const Failure failure = open_reader(); !failure.ok()) return failure;
  }
  {
    const Timer timer(stages_[Stage::kRead]);
    const WaitWatch::Wait wait(watch_, "the trainer waits for the reader");
    ROWTIDE_TRY_PART(Part::kData, reader_->next(batch_));
  }
  skipped_lines_ += batch_.skipped_lines;
  if (batch_.samples == 0) {
    ended = read_.row == 0;  // no rows at all: another epoch would not find any
    read_.epoch += 1;
    read_.row = 0;
    reader_.reset();
    return {};
  }
  const Timer timer(stages_[Stage::kKnown]);
  Pending& pending = ring_[(first_ + count_) % ring_.size()];
  auto step = model_.runtime->submit(
      {.samples = batch_.samples, .ids = batch_.ids, .offsets = batch_.offsets});
  ROWTIDE_TRY_PART(Part::kRuntime, step.status());
  pending.step = std::move(*step);
  pending.samples = batch_.samples;
  std::swap(pending.labels, batch_.labels);
  std::swap(pending.dense, batch_.dense);
  read_.row = batch_.first_row + batch_.samples;
  read_.steps += 1;
  pending.epoch = read_.epoch;
  pending.next_row = read_.row;
  ++count_;
  return {};
}

Failure TrainLoop::step() {
  Pending& pending = ring_[first_];
  const float rate = learning_rate_of(config_.optimizer, model_.position.steps);
  if (const Failure failure = learn(pending, rate); !failure.ok()) return failure;
  Position& position = model_.position;
  position.epoch = pending.epoch;
  position.row = pending.next_row;
  position.steps += 1;
  position.samples += pending.samples;
  pending.step.reset();
  first_ = (first_ + 1) % ring_.size();
  --count_;
  return {};
}

Failure TrainLoop::learn(Pending& pending, float rate) {
  const uint64_t samples = pending.samples;
  const size_t pooled = samples * config_.model.tables.size() * config_.model.dim;
  // Of a long wait for rows the runtime says more than the watch could.
  ROWTIDE_TRY_PART(Part::kRuntime,
                   pending.step->forward({.pooled = std::span(pooled_.data(), pooled)}));
  {
    const Timer timer(stages_[Stage::kDense]);
    model_.dense->forward(samples, pending.dense.data(), pooled_.data(), logits_.data());
  }
  double loss = 0;
  {
    const Timer timer(stages_[Stage::kBackward]);
    loss = model_.dense->backward(pending.labels.data(), pooled_gradient_.data());
  }
  if (!std::isfinite(loss)) return no_number(loss, rate);
  ROWTIDE_TRY_PART(Part::kRuntime, pending.step->backward_and_apply(
                                       {.pooled = std::span(pooled_gradient_.data(), pooled)},
                                       apply_options(config_.optimizer, rate)));
  const Timer timer(stages_[Stage::kDense]);
  model_.dense->update(rate);
  model_.window.add(loss, pending.labels);
  return {};
}

Failure TrainLoop::no_number(double loss, float rate) const {
  char text[160];
  std::snprintf(text, sizeof text, "the loss of step %llu is %s at learning rate %g; ",
                static_cast<unsigned long long>(model_.position.steps),
                std::isnan(loss) ? "NaN" : "infinite", static_cast<double>(rate));
  const std::string commit =
      model_.runtime->commits() == 0
          ? "there is no commit yet"
          : "the last commit, at step " + std::to_string(committed_at_) + ", is kept";
  return {{Code::kInvalid, text + commit}, Part::kLoss};
}

// A failure beside the steps costs none of them: what was trained is committed before it is told.
Failure TrainLoop::between_steps() {
  show_progress();
  Failure failure;
  if (due(config_.run.metrics_every)) failure = write_metrics();
  if (failure.ok() && due(config_.run.eval_every) && held_out_) failure = evaluate_now();
  const bool early = model_.runtime->commit_wanted();
  if (failure.ok() && !due(config_.run.commit_every) && !early) return {};
  if (early && !std::exchange(committed_early_, true)) {
    options_.log(
        "tiers.ssd is short of room: committing more often than run.commit_every says, "
        "since the versions that older commits need go with them");
  }
  const Failure commit = commit_now();
  return failure.ok() ? commit : failure;
}

// Commits before the evaluation, which may fail, and take long enough to be killed.
// A window that a later resume goes on with stays open.
Failure TrainLoop::finish() {
  const bool stopped = options_.stop_after != 0 && model_.position.steps >= options_.stop_after;
  const bool paused = interrupt_requested() || stopped;
  Failure failure;
  if (!paused && model_.window.samples > 0) failure = write_metrics();
  const Failure commit = commit_now();
  if (failure.ok()) failure = commit;
  if (!failure.ok()) return failure;
  const bool evaluated = evaluated_at_ == model_.position.steps;
  return interrupt_requested() || !held_out_ || evaluated ? Failure{} : evaluate_now();
}

Failure TrainLoop::evaluate_now() {
  const double began = now();
  const auto progress = [this](const EvalProgress& progress) {
    show(console_, progress);
    return !interrupt_requested();
  };
  const Failure failure = evaluate(model_, *held_out_, options_.log, watch_, progress, quality_);
  if (failure.status.code() == Code::kInterrupted) return {};
  if (!failure.ok()) return failure;
  stages_[Stage::kEvaluate] += now() - began;
  evaluated_at_ = model_.position.steps;
  ROWTIDE_TRY_PART(Part::kRuntime,
                   metrics_.evaluation({model_.position.steps, quality_, now() - began}));
  return {};
}

Failure TrainLoop::commit_now() {
  if (config_.tiers.ssd.empty() || committed_at_ == model_.position.steps) return {};
  const double began = now();
  {
    const Timer timer(stages_[Stage::kCommit]);
    const WaitWatch::Wait wait(watch_, "the commit waits for the disk");
    ROWTIDE_TRY_PART(Part::kRuntime, model_.runtime->commit(model_.arrays()));
  }
  committed_at_ = model_.position.steps;
  ROWTIDE_TRY_PART(Part::kRuntime,
                   metrics_.commit(committed_at_, model_.runtime->commits(), now() - began));
  return {};
}

Failure TrainLoop::write_metrics() {
  ROWTIDE_TRY_PART(Part::kRuntime, metrics_.step(step_record()));
  model_.window.close();
  return {};
}

StepRecord TrainLoop::step_record() const {
  const Position& position = model_.position;
  LossWindow window = model_.window;
  window.close();
  StepRecord record{.steps = position.steps,
                    .samples = position.samples,
                    .seconds = now(),
                    .learning_rate = learning_rate_of(config_.optimizer, position.steps),
                    .loss = window.last_loss,
                    .ne = window.last_ne,
                    .stats = model_.runtime->stats(),
                    .stages = stages_,
                    .skipped_lines = skipped_lines_,
                    .resident_bytes = resident_bytes()};
  record.stages[Stage::kPlace] = record.stats.place_s;
  record.stages[Stage::kFetch] = record.stats.fetch_s;
  record.stages[Stage::kForward] = record.stats.forward_s;
  record.stages[Stage::kApply] = record.stats.apply_s;
  const double trained = record.seconds - record.stages[Stage::kEvaluate];
  record.samples_per_s = trained > 0 ? double(position.samples - first_sample_) / trained : 0;
  return record;
}

EndRecord TrainLoop::end_record(const Failure& failure) const {
  EndRecord record{.event = !failure.ok()           ? "failed"
                            : interrupt_requested() ? "interrupted"
                                                    : "end",
                   .last = step_record(),
                   .commits = model_.runtime->commits(),
                   .peak_resident_bytes = peak_resident_bytes()};
  if (!failure.ok()) record.message = failure.status.to_string();
  if (evaluated_at_ == model_.position.steps) record.quality = quality_;
  return record;
}

void TrainLoop::show_progress() {
  const Position& position = model_.position;
  const uint64_t last = last_step();
  double fraction = 0;
  if (train_rows_ != ~uint64_t{0}) {
    fraction = (double(position.epoch) + double(position.row) / double(train_rows_)) /
               double(config_.run.epochs);
  } else if (reader_ != nullptr) {
    const ReaderStats stats = reader_->stats();
    fraction =
        (double(position.epoch) + double(stats.file_bytes) / double(stats.total_file_bytes)) /
        double(config_.run.epochs);
  } else {
    fraction = input_ended_ ? 1 : double(position.epoch) / double(config_.run.epochs);
  }
  if (last != ~uint64_t{0}) fraction = std::max(fraction, double(position.steps) / double(last));
  char text[160];
  const LossWindow& window = model_.window;
  std::snprintf(text, sizeof text, "step %llu, loss %.4f, %.1f k samples/s",
                static_cast<unsigned long long>(position.steps),
                window.samples > 0 ? window.loss_sum / window.samples : window.last_loss,
                double(position.samples - first_sample_) /
                    std::max(now() - stages_.seconds[size_t(Stage::kEvaluate)], 1e-9) / 1e3);
  console_.progress({"train", std::min(fraction, 1.0), text});
}

}  // namespace rowtide
