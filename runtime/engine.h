#pragma once
// Runtime::Engine — what stands behind rowtide.h on the cpu device.
//
// The caller's threads submit and compute; one thread of its own, the mover, places batches ahead,
// carries out their moves and owns the cold store.  Everything that needs the directories or the
// store (evaluation, commit, digest, rows by key) is a request that the mover runs between two
// steps.  The two meet in `mutex_` alone: what the mover changes of a slot it changes before the
// step that uses it is announced as placed and arrived, or after all steps that used it ended.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/admission.h"
#include "runtime/base/host_arena.h"
#include "runtime/base/parallel.h"
#include "runtime/fetch.h"
#include "runtime/gradients.h"
#include "runtime/known_batches.h"
#include "runtime/layout.h"
#include "runtime/next_uses.h"
#include "runtime/place.h"
#include "runtime/placed_batch.h"
#include "runtime/rowtide.h"
#include "runtime/schedule.h"
#include "runtime/step_ops.h"
#include "runtime/tiers.h"

namespace rowtide {

// What a Step of the caller's refers to; one for each step that may be submitted and not ended.
struct Step::State {
  Runtime::Engine* engine = nullptr;
  uint32_t step = 0;  // counted from the runtime's first
  bool forwarded = false, has_weights_gradient = false;
  std::vector<Gradients::Part*> parts;      // handed over by backward()
  std::vector<Values<const float>> values;  // of the parts, for apply()
};

struct Evaluation::State {
  Runtime::Engine* engine = nullptr;
};

class Runtime::Engine {
 public:
  static Result<std::unique_ptr<Engine>> open(RuntimeOptions options);
  ~Engine();

  // Those of a step just submitted, and of the evaluation.
  Step::State* start(uint32_t step);
  Evaluation::State* evaluation() { return &evaluation_state_; }

  // As in rowtide.h; steps are counted from first_step().
  Result<uint32_t> submit(const Batch& batch);
  void end_of_input();
  Status forward(uint32_t step, const Values<float>& out);
  void log_wait(uint32_t step) const;
  Status check_gradient(uint32_t step, const Values<const float>& gradient,
                        std::span<float> weights_gradient) const;
  // Writes it for the first part that asks for it, adds for later ones.
  void weights_gradient(Step::State& state, const Values<const float>& gradient,
                        std::span<float> out);
  void copy_gradient(uint32_t step, const Values<const float>& gradient, Gradients::Part* part);
  // With the parts handed over and, if it is not null, `last`.
  void apply(Step::State& state, const Values<const float>* last, const ApplyOptions& options);
  // The state may be another step's afterwards.
  void end(Step::State& state);
  Gradients& gradients() { return *gradients_; }
  const RuntimeOptions& options() const { return options_; }

  Status evaluate(const Batch& batch);
  Status evaluation_forward(const Values<float>& out);
  void end_evaluation();

  Status read_rows(uint32_t table, std::span<const int64_t> rows, std::span<float> weights,
                   std::span<float> state);
  Status write_rows(uint32_t table, std::span<const int64_t> rows, std::span<const float> weights,
                    std::span<const float> state);
  Status commit(std::vector<CommitArray> arrays);
  Result<Digest> digest(std::span<const CommitArray> dense);
  Stats stats();

  const std::vector<CommitArray>& arrays() const { return arrays_; }
  uint64_t commits() const { return commits_; }
  bool commit_wanted();
  uint64_t first_step() const { return first_step_; }
  uint64_t next_step();

 private:
  Engine(RuntimeOptions options, Layout layout);

  Values<const float> view(uint32_t step, const Gradients::Part& part) const;

  // Opening (engine_open.cc).
  Status open_store();
  Status reserve();

  // What the tiers hold at the start and at the end (engine_placement.cc).
  Status load_rows();
  Status load_by_pass(uint64_t residents);
  Status load_residents();
  bool load_row(Key key, const std::byte* record);
  bool take_placement();
  void drop_unloaded();
  void save_placement();
  bool put_back(Key key, uint32_t word, Place place);
  uint8_t& flags_of(uint32_t group, Place place, Slot slot);

  // The mover (engine_mover.cc).
  void run_mover();
  PlaceBatch place_batch(uint32_t step);
  void prepare(uint32_t step);  // occurrences, and the P with which the batch fits
  void place(uint32_t step, uint32_t window_end);
  void move_window(const KnownBatch& placing, uint32_t window_end);
  template <typename Visit>
  void for_each_cached(const KnownBatch& batch, Visit&& visit) const;
  bool finish_moves();  // false: the log refused; blocked_ says why
  void place_residents(uint32_t step);
  void fill_resident(const TableLayout& table, Key key, Slot slot);
  void count_hits(const KnownBatch& known, const PlacedBatch& placed);
  void publish_arrivals();  // REQUIRES: mutex_ held
  Status write_error();     // the log's last, which has been said
  // Calls attempt() until the log takes the record.  A disk that fails now and then is waited for;
  // one that only fails is an error, and the record stays where it is.
  template <typename Attempt>
  Status until_accepted(Attempt&& attempt) {
    constexpr int kMostErrors = 16;
    for (int errors = 0;;) {
      const Result<bool> accepted = attempt();
      if (!accepted.ok()) {
        fetch_->poll(/*wait=*/false);  // a full disk is asked again before the next attempt
        return accepted.status();
      }
      if (*accepted) return {};
      fetch_->poll(/*wait=*/true);
      if (Status error = write_error(); !error.ok() && ++errors == kMostErrors) return error;
    }
  }
  // Runs `work` in the mover between two steps and waits for it.  After the moves of the steps
  // placed so far, whose error, if the log refuses them, is its own; or `any_time`.
  struct Request {
    Status (*call)(void*);
    void* work;
    bool any_time;
  };
  template <typename Work>
  Status request(Work&& work, bool any_time = false) {
    using Pointer = std::remove_reference_t<Work>*;
    return run_request({[](void* w) { return (*static_cast<Pointer>(w))(); },
                        const_cast<void*>(static_cast<const void*>(&work)), any_time});
  }
  Status run_request(const Request& request);
  Status place_evaluation();
  Status reread_void_rows(const KnownBatch& known, PlacedBatch& placed);

  // Rows by key (engine_rows.cc).  In the mover.
  Status read_row(const TableLayout& table, Key key, std::byte* record);
  Status write_row(const TableLayout& table, Key key, const std::byte* record);
  Status check_row_call(uint32_t table, std::span<const int64_t> rows, size_t weights, size_t state,
                        bool with_state) const;

  // Commits (engine_commit.cc).  In the mover.
  Status sweep();
  Status append_record(uint32_t group, Key key, std::span<const std::byte> weights,
                       std::span<const std::byte> state);
  bool dirty_in_memory(Key key);
  void count_updated(const KnownBatch& known);
  bool log_wants_commit();  // REQUIRES: mutex_ held

  static constexpr uint32_t kNoTable = ~0u;
  // Null if the key belongs to a table that was dropped.
  const TableLayout* table_of_key(Key key) const {
    const uint32_t id = table_of(key);
    const uint32_t t = id < index_of_id_.size() ? index_of_id_[id] : kNoTable;
    return t == kNoTable ? nullptr : &layout_.tables[t];
  }
  KnownBatch& known_of(uint32_t step) { return known_[step % known_.size()]; }
  PlacedBatch& placed_of(uint32_t step) { return placed_[step % placed_.size()]; }
  const KnownBatch& known_of(uint32_t step) const { return known_[step % known_.size()]; }

  RuntimeOptions options_;
  Layout layout_;
  Parallel parallel_;
  HostArena hbm_, ddr_;

  // The caller's side.
  std::mutex submit_mutex_;  // the copier serves submit and evaluate
  std::unique_ptr<BatchCopier> copier_;
  std::unique_ptr<Gradients> gradients_;
  std::unique_ptr<StepOps> ops_;
  std::vector<Step::State> step_states_;  // (L + 1) by step
  Evaluation::State evaluation_state_;
  std::vector<CommitArray> arrays_;
  uint64_t commits_ = 0, first_step_ = 0;
  uint64_t applied_steps_ = 0, applied_samples_ = 0;
  double stall_s_ = 0, forward_s_ = 0, apply_s_ = 0, commit_s_ = 0, evaluate_s_ = 0;

  // Shared, under mutex_.
  std::mutex mutex_;
  std::condition_variable mover_wakes_, caller_wakes_;
  Schedule schedule_;
  uint32_t arrived_ = 0;  // all rows of all steps below are in place
  bool evaluation_open_ = false;
  bool stop_ = false;
  uint64_t skipped_ids_ = 0;
  const Request* request_ = nullptr;
  bool request_done_ = false;
  Status request_status_;
  Status blocked_;  // why the log takes no more; the mover waits for a retry
  bool retry_ = false;
  uint64_t failed_reads_ = 0;
  std::vector<uint64_t> updated_;  // (groups) rows updated since the last commit, each time anew
  bool commit_wanted_ = false;

  // The mover's.
  std::unique_ptr<ColdStore> store_;
  std::vector<KnownBatch> known_;  // written by submit before the step is known
  std::vector<PlacedBatch> placed_;
  KnownBatch evaluation_known_;
  PlacedBatch evaluation_placed_;
  std::vector<Slot> next_eval_slot_;  // (groups)
  std::vector<GroupTier> tiers_;
  std::vector<GroupDirectory> directories_;
  std::unique_ptr<Fetch> fetch_;
  std::unique_ptr<NextUses> next_uses_;
  std::unique_ptr<Admission> admission_;
  uint32_t window_end_ = 0;  // batches below have entered the known window
  uint32_t prepared_ = ~0u;  // the step that prepare() looked at last
  uint32_t p_ = 0;           // with which it fits
  struct GroupMoves {
    std::span<const Move> moves;
    size_t next = 0;
  };
  std::vector<GroupMoves> moves_;
  uint32_t moving_step_ = 0;
  std::vector<uint32_t> index_of_id_;  // (table ids) index into layout_.tables
  std::vector<std::byte> record_;      // scratch of one record
  struct Hits {
    TierHits hbm, ddr, ssd, fresh;
  };
  std::vector<Hits> hits_;  // (tables)
  uint64_t placed_lowered_ = 0;
  double place_s_ = 0, fetch_s_ = 0;
  uint32_t epoch_ = 1;
  bool commit_begun_ = false;
  std::vector<uint64_t> owed_;  // (record types) scratch

  std::thread mover_;
};

}  // namespace rowtide
