#pragma once
// rowtide.h — the one header a trainer includes.
//
// A Runtime serves embedding tables larger than GPU memory.  A trainer does this with a batch:
//
//     Step step = runtime->submit(batch).value();      // early: its rows start to move
//     step.forward({.pooled = pooled});                // waits for its rows, then pools them
//     step.backward({.pooled = gradient});             // hands over; may come in parts
//     step.apply({.learning_rate = 0.01f});            // sums, updates each row once, ends
//
// Submit several batches before the first forward: that is the lookahead.
// Results are bitwise those of a run with all rows in memory, for every budget, policy, number of
// batches ahead, I/O engine and number of threads, on a given device.
//
// Threads: submit() and end_of_input() from one thread, all other calls and all Steps from one, not
//          necessarily the same.
// Memory:  submit() copies the batch; outputs and gradients are touched only within the call.
//          A Step and an Evaluation must not outlive their Runtime.
// Errors:  returned as Status; nothing throws across this header.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/row_types.h"
#include "runtime/base/status.h"

namespace rowtide {

// The version of this library, such as "0.1.0".
const char* version();

enum class Placement {
  kAuto,      // resident if the whole table fits the hot tier beside the others, smallest first
  kResident,  // whole in the hot tier
  kCached,    // through the sets of its group
};

struct TableOptions {
  std::string name;    // known by it for ever; never reused with another meaning
  uint64_t rows = 0;   // 1 .. 2^48
  uint32_t width = 0;  // 1 .. 4096
  Precision precision = Precision::kFp32;
  OptimizerKind optimizer = OptimizerKind::kRowwiseAdagrad;
  float init_scale = 0.01f;  // a row never written is uniform in +- this
  Placement placement = Placement::kAuto;
};

// One column of ids of a batch.
struct FeatureOptions {
  std::string name;
  uint32_t table = 0;               // index into RuntimeOptions::tables; several may share one
  Pooling pooling = Pooling::kSum;  // kNone: sequence look-up
  uint32_t max_ids_per_sample = 0;  // 0: bounded by max_ids alone.  Smaller needs less memory
};

struct SsdDirectory {
  std::string directory;  // made if missing; refused if it holds anything else
  uint64_t bytes = 0;     // the most it may take
};

struct RuntimeOptions {
  std::vector<TableOptions> tables;
  std::vector<FeatureOptions> features;

  std::string device = "cpu";        // "cuda": an error that says which devices this build has
  uint64_t hbm_bytes = 1ull << 30;   // the hot arena and its directory; on cpu it lies in DDR
  uint64_t ddr_bytes = 1ull << 30;   // all host memory for tables (design.md, I7)
  std::vector<SsdDirectory> ssd;     // none: no commits; all tables lie whole in the hot tier
  std::string io_engine = "auto";    // auto, io_uring, threads
  std::string policy = "lookahead";  // a file of kernels/policies
  std::string admission = "always";  // always, count (the second use admits), profile
  std::string profile;               // file of keys "table:row" a line, for admission = profile
  uint32_t known_batches = 64;       // L: how far ahead the keys are known
  uint32_t placed_batches = 4;       // P: how far ahead rows are moved
  uint32_t open_steps = 1;           // steps that may be forwarded and not ended at once
  uint64_t max_samples = 0;          // of one batch
  uint64_t max_ids = 0;              // of one batch, all features together
  uint32_t gradient_parts = 1;       // the most backward() calls of one step before apply()
  bool weighted = false;             // batches may carry per-sample weights
  bool skip_bad_ids = false;         // ids out of range add nothing instead of failing submit
  int threads = 0;                   // 0: one for each core
  uint64_t seed = 1;                 // of initial values and stochastic rounding
  std::function<void(const std::string&)> log;  // one-line notices, from any thread; may be empty
};

// Feature f of sample s owns ids [offsets[f * samples + s], offsets[f * samples + s + 1]).
struct Batch {
  uint64_t samples = 0;
  std::span<const int64_t> ids;      // feature-major
  std::span<const int64_t> offsets;  // (features * samples + 1); from 0 to ids.size(), not falling
  std::span<const float> weights;    // (ids), or empty: all 1
};

// Arrays of one batch, (samples, sum of widths) or one pointer for each sequence feature in order,
// (its ids, width).  As outputs they are written whole; as gradients they are read.
// A pooled feature's columns begin after those of the pooled features before it.
template <typename Float>
struct Values {
  std::span<Float> pooled;
  std::span<Float* const> sequences;
};

// The optimizer kind belongs to a table; its numbers are given with each step.
struct ApplyOptions {
  float learning_rate = 0.01f;
  float eps = 1e-8f;
  float beta1 = 0.9f, beta2 = 0.999f;
  float weight_decay = 0;  // added to the gradient (L2), or
  bool decoupled = false;  // taken from the weights first (AdamW)
};

// A batch in flight.  The caller holds it; destroying it drops it.
class Step {
 public:
  Step() = default;  // as one that has ended
  Step(Step&&) noexcept;
  Step& operator=(Step&&) noexcept;
  ~Step();

  uint64_t number() const { return number_; }  // counts submits, across resumes

  // Waits for the rows and looks them up.  May be repeated, also while an evaluation is open.
  // Errors: kBusy (an evaluation is open; open_steps or more after the oldest step that has not
  // ended; a step before was neither forwarded nor dropped; it has ended), kNoSpace (the batch does
  // not fit: the number that would), kIo, kCorrupt (a row could not be read: table and row),
  // kInvalid (shapes).
  Status forward(const Values<float>& out);

  // Hands over a gradient of the same shapes; may come in several parts.  `weights_gradient`, if
  // not empty, is (ids) and gets the gradient of the per-sample weights, summed over parts.
  // Errors: kInvalid, kBusy (no forward yet, or more than gradient_parts).
  Status backward(const Values<const float>& gradient, std::span<float> weights_gradient = {});

  // Sums the gradients, updates each distinct row once, and ends the step.
  Status apply(const ApplyOptions& options);
  // backward() and apply() in one, without a copy of the gradient.
  Status backward_and_apply(const Values<const float>& gradient, const ApplyOptions& options,
                            std::span<float> weights_gradient = {});
  // Ends the step without an update.
  void drop();

 private:
  friend class Runtime;
  struct State;  // one of the runtime's, until the step ends
  Step(State* state, uint64_t number) : state_(state), number_(number) {}
  State* state_ = nullptr;
  uint64_t number_ = 0;
};

// A batch that is only looked up.  It sees every step applied so far and changes nothing (I5).
// While one is open the first forward of a step and commit() say busy.
class Evaluation {
 public:
  Evaluation(Evaluation&&) noexcept;
  Evaluation& operator=(Evaluation&&) noexcept;
  ~Evaluation();                             // ends it
  Status forward(const Values<float>& out);  // as Step::forward; may be repeated

 private:
  friend class Runtime;
  struct State;  // the runtime's, which has one
  explicit Evaluation(State* state) : state_(state) {}
  State* state_ = nullptr;
};

// An array of the caller's that is kept in commits beside the rows.
struct CommitArray {
  std::string name;   // "dense/...": digested and exported too
  std::string dtype;  // "float32", "int64", "uint8", ...
  std::vector<uint64_t> shape;
  std::vector<std::byte> bytes;  // row-major, little-endian
};

struct Digest {
  uint64_t low = 0, high = 0;
  std::string to_string() const;  // 32 hex digits, high half first
  bool operator==(const Digest&) const = default;
};

// Distinct rows and occurrences of all placed steps, by where place found the row.
struct TierHits {
  uint64_t hits = 0;         // by occurrences
  uint64_t unique_hits = 0;  // each distinct row of a batch once
};
struct TableStats {
  std::string name;
  TierHits hbm, ddr, ssd, fresh;  // fresh: never written before; the four sum to the look-ups
  bool resident = false;
  uint64_t rows_on_ssd = 0;  // ever written to the log
};
struct TierStats {
  uint64_t rows_in = 0;  // records that moved in
  uint64_t written = 0;  // ddr: from hot; ssd: appended
  uint64_t dropped = 0;  // records that left clean and were not written again
  uint64_t bytes_used = 0;
  uint64_t bytes_budget = 0;
};
struct Stats {
  TierHits hbm, ddr, ssd, fresh;
  TierStats hbm_tier, ddr_tier, ssd_tier;
  std::vector<TableStats> tables;
  uint64_t steps = 0;           // applied
  uint64_t samples = 0;         // of applied steps
  uint64_t placed_lowered = 0;  // batches for which P was lowered to fit
  uint64_t transit_rows = 0;    // rows that went through transit slots
  uint64_t rows_read_from_ssd = 0;
  uint64_t ssd_reads = 0;  // of the device: rows on one page may share one
  uint64_t rows_on_ssd = 0;
  double stall_s = 0;  // forward waited for its rows
  double place_s = 0, fetch_s = 0, forward_s = 0, apply_s = 0, commit_s = 0, evaluate_s = 0;
  uint64_t skipped_ids = 0;
  std::string instruction_set;  // "avx512", "avx2", "scalar"
  std::string io_engine, file_system;
};

// One line of memory: which tier, for which table or part, how much.
struct PlanLine {
  std::string tier;  // "hbm", "ddr", "ssd"
  std::string what;  // "resident C3", "sets of group 64+4", "index", ...
  uint64_t bytes = 0;
};
struct Plan {
  std::vector<PlanLine> lines;
  uint64_t hbm_bytes = 0, ddr_bytes = 0, ssd_bytes = 0;  // that open() would reserve
  uint64_t least_hbm_bytes = 0, least_ddr_bytes = 0;     // with which every batch fits
  // With which a store opens, however its directories share them.  It must also hold every row that
  // was ever written.
  uint64_t least_ssd_bytes = 0;
  uint32_t placed_batches = 0;  // the P that fits
  std::vector<std::string> warnings;
  Status status;  // what open() would say of the budgets
};

class Runtime {
 public:
  // What open() would reserve, in well under a second, whatever the tables' sizes.
  static Plan plan(const RuntimeOptions& options);

  // Opens at the last commit of the SSD directories, or fresh.
  // Errors: kInvalid (options, named), kNoSpace (a budget: need and have; memory; disk), kLocked,
  // kFormat, kIo, kCorrupt, kUnavailable (device).
  static Result<std::unique_ptr<Runtime>> open(RuntimeOptions options);
  ~Runtime();

  // Copies the batch and lets its rows start to move.  Never blocks.
  // Errors: kBusy (known_batches are submitted beyond the oldest that has not ended; or one that
  // was dropped before its rows moved is not past: come again), kNoSpace, kIo (the log refuses rows
  // that such a one pushes out; each call tries again), kInvalid (shapes, offsets: names the
  // feature; ids out of range: names table, sample and id).
  Result<Step> submit(const Batch& batch);
  // No batch follows until the next submit: place need not wait for the known window to fill.
  void end_of_input();

  // Errors: kBusy (one is open), and those of submit.
  Result<Evaluation> evaluate(const Batch& batch);

  // Reads rows by key beside all steps: weights widened to fp32 (n, width), and the optimizer state
  // (n, state floats) unless `state` is empty.  Changes nothing.
  // Errors: kInvalid (table or row: named), kIo, kCorrupt.
  Status read_rows(uint32_t table, std::span<const int64_t> rows, std::span<float> weights,
                   std::span<float> state = {});
  // Overwrites rows by key.  REQUIRES: no step is submitted and not ended.
  Status write_rows(uint32_t table, std::span<const int64_t> rows, std::span<const float> weights,
                    std::span<const float> state = {});

  // Makes the state after all applied steps, with these arrays, the point to which a crash returns.
  // Submitted steps that were not forwarded stay.  Errors: kBusy (a forwarded step is not ended; an
  // evaluation is open), kIo, kNoSpace, kUnavailable (no SSD directory).
  Status commit(std::vector<CommitArray> arrays);
  // Whether the log fills up with row versions that only older commits need: a commit() soon gives
  // their room back, where a later one may find none.  Costs nothing to ask after each step.
  bool commit_wanted() const;
  // The arrays of the commit at which this runtime was opened or that it made last.
  const std::vector<CommitArray>& arrays() const;
  uint64_t commits() const;  // the number of the last one; 0: none

  // The digest of all rows ever written, and of the given dense arrays (design.md, Storage).
  Result<Digest> digest(std::span<const CommitArray> dense = {});

  Stats stats() const;
  // The number of the next step to submit; after a resume, that of the commit.
  uint64_t next_step() const;

 private:
  friend class Step;
  friend class Evaluation;
  class Engine;
  explicit Runtime(std::unique_ptr<Engine> engine);
  std::unique_ptr<Engine> engine_;
};

}  // namespace rowtide
