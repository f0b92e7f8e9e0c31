#include "runtime/rowtide.h"

#include <cinttypes>
#include <utility>

#include "runtime/engine.h"

#define ROWTIDE_TEXT_OF(x) #x
#define ROWTIDE_TEXT(x) ROWTIDE_TEXT_OF(x)

namespace rowtide {

const char* version() { return ROWTIDE_TEXT(ROWTIDE_VERSION); }

std::string Digest::to_string() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, high, low);
  return text;
}

namespace {

Status ended() { return {Code::kBusy, "the step has ended"}; }
Status not_forwarded() { return {Code::kBusy, "the step was not forwarded"}; }

}  // namespace

Step::Step(Step&& other) noexcept
    : state_(std::exchange(other.state_, nullptr)), number_(other.number_) {}
Step& Step::operator=(Step&& other) noexcept {
  if (this == &other) return *this;
  drop();
  state_ = std::exchange(other.state_, nullptr);
  number_ = other.number_;
  return *this;
}
Step::~Step() { drop(); }

Status Step::forward(const Values<float>& out) {
  if (state_ == nullptr) return ended();
  ROWTIDE_TRY(state_->engine->forward(state_->step, out));
  state_->forwarded = true;
  return {};
}

Status Step::backward(const Values<const float>& gradient, std::span<float> weights_gradient) {
  if (state_ == nullptr) return ended();
  State& s = *state_;
  if (!s.forwarded) return not_forwarded();
  ROWTIDE_TRY(s.engine->check_gradient(s.step, gradient, weights_gradient));
  const uint32_t most = s.engine->options().gradient_parts;
  if (s.parts.size() == most) {
    return {Code::kBusy, std::to_string(most) + " parts were handed over, gradient_parts is " +
                             std::to_string(most)};
  }
  s.engine->weights_gradient(s, gradient, weights_gradient);
  Gradients::Part* part = s.engine->gradients().take();
  s.engine->copy_gradient(s.step, gradient, part);
  s.parts.push_back(part);
  return {};
}

Status Step::apply(const ApplyOptions& options) {
  if (state_ == nullptr) return ended();
  if (!state_->forwarded) return not_forwarded();
  State& s = *std::exchange(state_, nullptr);
  s.engine->apply(s, nullptr, options);
  return {};
}

Status Step::backward_and_apply(const Values<const float>& gradient, const ApplyOptions& options,
                                std::span<float> weights_gradient) {
  if (state_ == nullptr) return ended();
  if (!state_->forwarded) return not_forwarded();
  ROWTIDE_TRY(state_->engine->check_gradient(state_->step, gradient, weights_gradient));
  State& s = *std::exchange(state_, nullptr);
  s.engine->weights_gradient(s, gradient, weights_gradient);
  s.engine->apply(s, &gradient, options);
  return {};
}

void Step::drop() {
  if (state_ == nullptr) return;
  State& s = *std::exchange(state_, nullptr);
  s.engine->end(s);
}

Evaluation::Evaluation(Evaluation&& other) noexcept
    : state_(std::exchange(other.state_, nullptr)) {}
Evaluation& Evaluation::operator=(Evaluation&& other) noexcept {
  if (this == &other) return *this;
  if (state_ != nullptr) state_->engine->end_evaluation();
  state_ = std::exchange(other.state_, nullptr);
  return *this;
}
Evaluation::~Evaluation() {
  if (state_ != nullptr) state_->engine->end_evaluation();
}

Status Evaluation::forward(const Values<float>& out) {
  if (state_ == nullptr) return {Code::kBusy, "the evaluation was moved away"};
  return state_->engine->evaluation_forward(out);
}

Runtime::Runtime(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
Runtime::~Runtime() = default;

Plan Runtime::plan(const RuntimeOptions& options) {
  auto layout = make_layout(options);
  if (layout.ok()) return std::move(layout->plan);
  Plan plan;
  plan.status = layout.status();
  return plan;
}

Result<std::unique_ptr<Runtime>> Runtime::open(RuntimeOptions options) {
  auto engine = Engine::open(std::move(options));
  if (!engine.ok()) return engine.status();
  return std::unique_ptr<Runtime>(new Runtime(std::move(*engine)));
}

Result<Step> Runtime::submit(const Batch& batch) {
  auto step = engine_->submit(batch);
  if (!step.ok()) return step.status();
  return Step(engine_->start(*step), engine_->first_step() + *step);
}

void Runtime::end_of_input() { engine_->end_of_input(); }

Result<Evaluation> Runtime::evaluate(const Batch& batch) {
  ROWTIDE_TRY(engine_->evaluate(batch));
  return Evaluation(engine_->evaluation());
}

Status Runtime::read_rows(uint32_t table, std::span<const int64_t> rows, std::span<float> weights,
                          std::span<float> state) {
  return engine_->read_rows(table, rows, weights, state);
}
Status Runtime::write_rows(uint32_t table, std::span<const int64_t> rows,
                           std::span<const float> weights, std::span<const float> state) {
  return engine_->write_rows(table, rows, weights, state);
}
Status Runtime::commit(std::vector<CommitArray> arrays) {
  return engine_->commit(std::move(arrays));
}
const std::vector<CommitArray>& Runtime::arrays() const { return engine_->arrays(); }
bool Runtime::commit_wanted() const { return engine_->commit_wanted(); }
uint64_t Runtime::commits() const { return engine_->commits(); }
Result<Digest> Runtime::digest(std::span<const CommitArray> dense) {
  return engine_->digest(dense);
}
Stats Runtime::stats() const { return engine_->stats(); }
uint64_t Runtime::next_step() const { return engine_->next_step(); }

}  // namespace rowtide
