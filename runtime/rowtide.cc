#include "runtime/rowtide.h"

#include <cinttypes>

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

struct Step::State {
  Runtime::Engine* engine;
  uint32_t step;
  bool forwarded = false, ended = false;
  std::vector<Gradients::Part*> parts;
  std::vector<Values<const float>> values;

  void end() {
    for (Gradients::Part* part : parts) engine->gradients().give_back(part);
    parts.clear();
    ended = true;
  }
};

Step::Step(std::unique_ptr<State> state) : state_(std::move(state)) {}
Step::Step(Step&&) noexcept = default;
Step& Step::operator=(Step&& other) noexcept {
  drop();
  state_ = std::move(other.state_);
  return *this;
}
Step::~Step() { drop(); }

uint64_t Step::number() const { return state_->engine->first_step() + state_->step; }

Status Step::forward(const Values<float>& out) {
  if (state_->ended) return {Code::kBusy, "the step has ended"};
  ROWTIDE_TRY(state_->engine->forward(state_->step, out));
  state_->forwarded = true;
  return {};
}

namespace {

Status must_be_open(bool forwarded, bool ended) {
  if (ended) return {Code::kBusy, "the step has ended"};
  if (!forwarded) return {Code::kBusy, "the step was not forwarded"};
  return {};
}

}  // namespace

Status Step::backward(const Values<const float>& gradient, std::span<float> weights_gradient) {
  State& s = *state_;
  ROWTIDE_TRY(must_be_open(s.forwarded, s.ended));
  ROWTIDE_TRY(s.engine->check_gradient(s.step, gradient, weights_gradient));
  const uint32_t most = s.engine->options().gradient_parts;
  if (s.parts.size() == most) {
    return {Code::kBusy, std::to_string(most) + " parts were handed over, gradient_parts is " +
                             std::to_string(most)};
  }
  if (!weights_gradient.empty()) {
    s.engine->add_weights_gradient(s.step, gradient, weights_gradient, !s.parts.empty());
  }
  Gradients::Part* part = s.engine->gradients().take();
  s.engine->copy_gradient(s.step, gradient, part);
  s.parts.push_back(part);
  return {};
}

Status Step::apply(const ApplyOptions& options) {
  State& s = *state_;
  ROWTIDE_TRY(must_be_open(s.forwarded, s.ended));
  s.values.clear();
  for (Gradients::Part* part : s.parts) s.values.push_back(s.engine->view(s.step, *part));
  s.engine->apply(s.step, s.values, options);
  s.end();
  return {};
}

Status Step::backward_and_apply(const Values<const float>& gradient, const ApplyOptions& options,
                                std::span<float> weights_gradient) {
  State& s = *state_;
  ROWTIDE_TRY(must_be_open(s.forwarded, s.ended));
  ROWTIDE_TRY(s.engine->check_gradient(s.step, gradient, weights_gradient));
  if (!weights_gradient.empty()) {
    s.engine->add_weights_gradient(s.step, gradient, weights_gradient, !s.parts.empty());
  }
  s.values.clear();
  for (Gradients::Part* part : s.parts) s.values.push_back(s.engine->view(s.step, *part));
  s.values.push_back(gradient);
  s.engine->apply(s.step, s.values, options);
  s.end();
  return {};
}

void Step::drop() {
  if (state_ == nullptr || state_->ended) return;
  state_->engine->end(state_->step);
  state_->end();
}

struct Evaluation::State {
  Runtime::Engine* engine;
  ~State() { engine->end_evaluation(); }
};

Evaluation::Evaluation(std::unique_ptr<State> state) : state_(std::move(state)) {}
Evaluation::Evaluation(Evaluation&&) noexcept = default;
Evaluation& Evaluation::operator=(Evaluation&&) noexcept = default;
Evaluation::~Evaluation() = default;

Status Evaluation::forward(const Values<float>& out) {
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
  auto state = std::make_unique<Step::State>();
  state->engine = engine_.get();
  state->step = *step;
  return Step(std::move(state));
}

void Runtime::end_of_input() { engine_->end_of_input(); }

Result<Evaluation> Runtime::evaluate(const Batch& batch) {
  ROWTIDE_TRY(engine_->evaluate(batch));
  return Evaluation(std::unique_ptr<Evaluation::State>(new Evaluation::State{engine_.get()}));
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
uint64_t Runtime::commits() const { return engine_->commits(); }
Result<Digest> Runtime::digest(std::span<const CommitArray> dense) {
  return engine_->digest(dense);
}
Stats Runtime::stats() const { return engine_->stats(); }
uint64_t Runtime::next_step() const { return engine_->next_step(); }

}  // namespace rowtide
