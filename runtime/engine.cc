#include "runtime/engine.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/stopwatch.h"

namespace rowtide {
namespace {

constexpr std::chrono::seconds kSayWhoWaits{5};

}  // namespace

Result<uint32_t> Runtime::Engine::submit(const Batch& batch) {
  ROWTIDE_TRY(check_batch(layout_, options_, batch));
  uint32_t step;
  {
    std::unique_lock lock(mutex_);
    if (schedule_.full()) {
      return {Code::kBusy, std::to_string(layout_.known + 1) +
                               " batches are submitted and not ended; known_batches is " +
                               std::to_string(layout_.known)};
    }
    // Only steps that were dropped before place saw them are waited for, and not for the disk.
    if (schedule_.entry_in_use()) {
      if (!blocked_.ok()) {  // perhaps no step is left whose forward would try again
        retry_ = true;
        mover_wakes_.notify_all();
        return blocked_;
      }
      return {Code::kBusy, "dropped batches are still being placed"};
    }
    step = schedule_.known();
  }
  {
    std::lock_guard lock(submit_mutex_);
    known_of(step).step = step;
    copier_->copy(batch, known_of(step));
  }
  std::lock_guard lock(mutex_);
  skipped_ids_ += known_of(step).skipped;
  schedule_.submit();
  mover_wakes_.notify_all();
  return step;
}

Step::State* Runtime::Engine::start(uint32_t step) {
  Step::State& state = step_states_[step % step_states_.size()];
  state.step = step;
  state.forwarded = state.has_weights_gradient = false;
  return &state;
}

void Runtime::Engine::end_of_input() {
  std::lock_guard lock(mutex_);
  schedule_.end_of_input();
  mover_wakes_.notify_all();
}

Status Runtime::Engine::forward(uint32_t step, const Values<float>& out) {
  const KnownBatch& known = known_of(step);
  PlacedBatch& placed = placed_of(step);
  ROWTIDE_TRY(ops_->check_shapes(known, out));
  bool failed_reads;
  {
    std::unique_lock lock(mutex_);
    const bool first = !schedule_.forwarded(step);
    // Of one whose rows the log refused place may still be to come, and it rests meanwhile.
    if (evaluation_open_ && (first || schedule_.placed() <= step)) {
      return {Code::kBusy, "an evaluation is open"};
    }
    if (first) ROWTIDE_TRY(schedule_.forward(step));
    retry_ = true;  // of a move that the log refused
    mover_wakes_.notify_all();
    Stopwatch watch(&stall_s_);
    const auto over = [&] { return arrived_ > step || (!blocked_.ok() && !retry_); };
    if (!caller_wakes_.wait_for(lock, kSayWhoWaits, over)) {
      log_wait(step);
      caller_wakes_.wait(lock, over);
    }
    if (arrived_ <= step) return blocked_;
    failed_reads = failed_reads_ > 0;
  }
  ROWTIDE_TRY(placed.status);
  if (failed_reads) {
    ROWTIDE_TRY(request([&] { return reread_void_rows(known, placed); }));
  }
  Stopwatch watch(&forward_s_);
  ops_->forward(known, placed, out);
  return {};
}

// REQUIRES: mutex_ held.
void Runtime::Engine::log_wait(uint32_t step) const {
  if (!options_.log) return;
  const std::string who = "step " + std::to_string(first_step_ + step) + " waits for ";
  options_.log(who + (schedule_.placed() > step
                          ? "its rows from the cold store"
                          : "place, which stands at step " +
                                std::to_string(first_step_ + schedule_.placed())));
}

Status Runtime::Engine::check_gradient(uint32_t step, const Values<const float>& gradient,
                                       std::span<float> weights_gradient) const {
  const KnownBatch& known = known_of(step);
  ROWTIDE_TRY(ops_->check_shapes(known, gradient));
  if (!weights_gradient.empty() && weights_gradient.size() != known.ids) {
    return {Code::kInvalid, "weights_gradient has " + std::to_string(weights_gradient.size()) +
                                " floats, the batch has " + std::to_string(known.ids) + " ids"};
  }
  return {};
}

void Runtime::Engine::weights_gradient(Step::State& state, const Values<const float>& gradient,
                                       std::span<float> out) {
  if (out.empty()) return;
  ops_->weights_gradient(known_of(state.step), placed_of(state.step), gradient, out.data(),
                         /*add=*/state.has_weights_gradient);
  state.has_weights_gradient = true;
}

void Runtime::Engine::copy_gradient(uint32_t step, const Values<const float>& gradient,
                                    Gradients::Part* part) {
  const KnownBatch& known = known_of(step);
  std::copy(gradient.pooled.begin(), gradient.pooled.end(), part->pooled);
  for (uint32_t f = 0; f < layout_.features.size(); ++f) {
    const FeatureLayout& feature = layout_.features[f];
    if (feature.pooling != Pooling::kNone) continue;
    const uint64_t ids = known.offsets[(f + 1) * known.samples] - known.offsets[f * known.samples];
    std::copy_n(gradient.sequences[feature.sequence], ids * feature.width,
                part->sequences[feature.sequence]);
  }
}

Values<const float> Runtime::Engine::view(uint32_t step, const Gradients::Part& part) const {
  return {
      .pooled = {part.pooled, known_of(step).samples * layout_.pooled_width},
      .sequences = {const_cast<const float* const*>(part.sequences.data()), part.sequences.size()}};
}

void Runtime::Engine::apply(Step::State& state, const Values<const float>* last,
                            const ApplyOptions& options) {
  const KnownBatch& known = known_of(state.step);
  {
    Stopwatch watch(&apply_s_);
    state.values.clear();
    for (Gradients::Part* part : state.parts) state.values.push_back(view(state.step, *part));
    if (last != nullptr) state.values.push_back(*last);
    ops_->apply(known, placed_of(state.step), state.values, options, first_step_ + state.step);
  }
  count_updated(known);
  ++applied_steps_;
  applied_samples_ += known.samples;
  end(state);
}

void Runtime::Engine::end(Step::State& state) {
  for (Gradients::Part* part : state.parts) gradients_->give_back(part);
  state.parts.clear();
  std::lock_guard lock(mutex_);
  schedule_.end(state.step);
  mover_wakes_.notify_all();
}

Status Runtime::Engine::evaluate(const Batch& batch) {
  ROWTIDE_TRY(check_batch(layout_, options_, batch));
  {
    std::lock_guard lock(mutex_);
    if (evaluation_open_) return {Code::kBusy, "an evaluation is open"};
    evaluation_open_ = true;
  }
  Stopwatch watch(&evaluate_s_);
  {
    std::lock_guard lock(submit_mutex_);
    copier_->copy(batch, evaluation_known_);
  }
  Status status = request([&] { return place_evaluation(); });
  if (!status.ok()) end_evaluation();
  return status;
}

Status Runtime::Engine::evaluation_forward(const Values<float>& out) {
  ROWTIDE_TRY(ops_->check_shapes(evaluation_known_, out));
  Stopwatch watch(&evaluate_s_);
  ops_->forward(evaluation_known_, evaluation_placed_, out);
  return {};
}

void Runtime::Engine::end_evaluation() {
  std::lock_guard lock(mutex_);
  evaluation_open_ = false;
  mover_wakes_.notify_all();
}

uint64_t Runtime::Engine::next_step() {
  std::lock_guard lock(mutex_);
  return first_step_ + schedule_.known();
}

}  // namespace rowtide
