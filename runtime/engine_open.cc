#include <algorithm>

#include "runtime/base/salt.h"
#include "runtime/engine.h"

namespace rowtide {
namespace {

// Debug builds fill slots with NaN, so that a record that nobody brought is noticed.  Not those of
// huge tiers, whose pages would all be touched.
void poison([[maybe_unused]] const GroupLayout& group, [[maybe_unused]] const GroupTier& tier) {
#ifdef ROWTIDE_DEBUG
  constexpr uint64_t kMost = 64 << 20;
  const uint64_t warm_slots = uint64_t{group.warm_sets} * kWays;
  if ((group.hot_slots() + warm_slots) * tier.record_bytes > kMost) return;
  std::fill_n(tier.hot.weights, group.hot_slots() * group.weight_bytes, std::byte{0xFF});
  std::fill_n(tier.hot.state, group.hot_slots() * group.state_bytes, std::byte{0xFF});
  std::fill_n(tier.warm, warm_slots * tier.record_bytes, std::byte{0xFF});
#endif
}

}  // namespace

Runtime::Engine::Engine(RuntimeOptions options, Layout layout)
    : options_(std::move(options)),
      layout_(std::move(layout)),
      parallel_(options_.threads),
      schedule_(layout_.known, layout_.placed, layout_.open_steps, layout_.policy->foresees) {}

Runtime::Engine::~Engine() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  mover_wakes_.notify_all();
  if (!mover_.joinable()) return;
  mover_.join();
  save_placement();
}

Result<std::unique_ptr<Runtime::Engine>> Runtime::Engine::open(RuntimeOptions options) {
  auto layout = make_layout(options);
  if (!layout.ok()) return layout.status();
  ROWTIDE_TRY(layout->plan.status);
  std::unique_ptr<Engine> engine(new Engine(std::move(options), std::move(*layout)));
  if (engine->options_.log) {
    for (const std::string& warning : engine->layout_.plan.warnings) {
      engine->options_.log(warning);
    }
  }
  ROWTIDE_TRY(engine->open_store());
  ROWTIDE_TRY(engine->reserve());
  ROWTIDE_TRY(engine->load_rows());
  engine->mover_ = std::thread([e = engine.get()] { e->run_mover(); });
  return engine;
}

Status Runtime::Engine::open_store() {
  if (!layout_.store.directories.empty()) {
    auto store = ColdStore::open(layout_.store);
    if (!store.ok()) return store.status();
    store_ = std::move(*store);
    for (const NamedArray& array : store_->last_commit().arrays) {
      arrays_.push_back({array.name, array.dtype, array.shape, array.bytes});
    }
    epoch_ = store_->next_epoch();
  }
  first_step_ = layout_.last_commit.step;
  schedule_.set_first(first_step_);
  commits_ = layout_.last_commit.commits;
  for (uint32_t t = 0; t < layout_.tables.size(); ++t) {
    const uint32_t id = layout_.tables[t].id;
    if (id >= index_of_id_.size()) index_of_id_.resize(id + 1, kNoTable);
    index_of_id_[id] = t;
  }
  return {};
}

Status Runtime::Engine::reserve() {
  // Arenas take pages as they are touched, so that each alone would be granted.
  const Plan& plan = layout_.plan;
  const uint64_t need = plan.hbm_bytes + plan.ddr_bytes, there = available_host_bytes();
  if (need > there) {
    const auto largest =
        std::max_element(plan.lines.begin(), plan.lines.end(),
                         [](const PlanLine& a, const PlanLine& b) { return a.bytes < b.bytes; });
    const TableLayout& table = *std::max_element(
        layout_.tables.begin(), layout_.tables.end(), [](const auto& a, const auto& b) {
          return a.rows * a.format.record_bytes() < b.rows * b.format.record_bytes();
        });
    return {Code::kNoSpace, "the tables need " + std::to_string(need) + " bytes of host memory (" +
                                std::to_string(plan.hbm_bytes) + " hot, " +
                                std::to_string(plan.ddr_bytes) + " warm and buffers; most of all " +
                                largest->what + ", " + std::to_string(largest->bytes) +
                                "; the largest table is " + table.name + "), " +
                                std::to_string(there) + " are there"};
  }
  auto hbm = HostArena::reserve(layout_.plan.hbm_bytes, "the hot tier");
  if (!hbm.ok()) return hbm.status();
  hbm_ = std::move(*hbm);
  uint64_t own = layout_.plan.ddr_bytes;
  if (store_ != nullptr) {
    for (const MemoryLine& line : ColdStore::predict(layout_.store)) own -= line.bytes;
  }
  auto ddr = HostArena::reserve(own, "the warm tier");
  if (!ddr.ok()) return ddr.status();
  ddr_ = std::move(*ddr);

  Carver hot(hbm_.bytes()), host(ddr_.bytes());
  const bool admission = options_.admission != "always";
  for (uint32_t i = 0; i <= layout_.known; ++i) {
    known_.push_back(carve_known_batch(layout_, options_.weighted, host));
  }
  copier_ = std::make_unique<BatchCopier>(layout_, options_.skip_bad_ids, host);
  next_uses_ = std::make_unique<NextUses>(layout_, host, process_salt());
  for (uint32_t i = 0; i < layout_.placed + 2; ++i) {
    placed_.push_back(PlacedBatch::carve(layout_, admission, host));
  }
  evaluation_known_ = carve_known_batch(layout_, options_.weighted, host);
  evaluation_placed_ = PlacedBatch::carve(layout_, false, host);
  gradients_ = std::make_unique<Gradients>(layout_, options_, host);
  if (admission) admission_ = std::make_unique<Admission>(options_, layout_, host);
  uint32_t record_bytes = 0;
  for (uint32_t g = 0; g < layout_.groups.size(); ++g) {
    tiers_.emplace_back(layout_.groups[g], hot, host);
    poison(layout_.groups[g], tiers_.back());
    directories_.emplace_back(layout_, g, hot, host);
    record_bytes = std::max(record_bytes, layout_.groups[g].record_bytes());
  }
  fetch_ = std::make_unique<Fetch>(layout_, options_.seed, tiers_, store_.get(), host);
  fetch_->set_epoch(epoch_);
  ops_ = std::make_unique<StepOps>(layout_, options_, tiers_, parallel_);
  record_.resize(record_bytes);
  moves_.resize(layout_.groups.size());
  next_eval_slot_.resize(layout_.groups.size());
  step_states_.resize(layout_.known + 1);
  for (Step::State& state : step_states_) {
    state.engine = this;
    state.parts.reserve(options_.gradient_parts);
    state.values.reserve(options_.gradient_parts + 1);
  }
  evaluation_state_.engine = this;
  hits_.resize(layout_.tables.size());
  updated_.resize(layout_.groups.size());
  owed_.resize(layout_.store.payload_bytes.size());
  ROWTIDE_CHECK(hot.used() <= hbm_.size() && host.used() <= ddr_.size());
  return {};
}

}  // namespace rowtide
