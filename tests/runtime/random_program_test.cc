// Legal but wild callers: several open steps, drops before and after forward, repeated forwards,
// gradient parts, evaluations, commits, rows by key, over tiny tiers and batches that crowd one
// set. Every output is compared with plain tables that go through the same calls.
//
// A failure names its seed; ROWTIDE_SEED=n runs that case alone.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "tests/support/fake_disk_scope.h"
#include "tests/support/numbers.h"
#include "tests/support/plain_tables.h"
#include "tests/support/random_case.h"
#include "tests/support/toy_training.h"
#include "tests/support/watchdog.h"

namespace rowtide {
namespace {

// Over all cases, to see that they are worth something.
struct Totals {
  uint64_t from_ssd = 0, from_ddr = 0, transit = 0, lowered = 0, dropped = 0, crashes = 0,
           grown = 0;
  void add(const Stats& stats) {
    from_ssd += stats.ssd.unique_hits;
    from_ddr += stats.ddr.unique_hits;
    transit += stats.transit_rows;
    lowered += stats.placed_lowered;
    dropped += stats.ssd_tier.dropped;
  }
};

class Program {
 public:
  Program(uint64_t seed, uint64_t steps, Totals& totals)
      : scope_(seed),
        random_(seed),
        totals_(totals),
        options_(draw_options(random_)),
        batches_(options_, random_),
        plain_(options_),
        end_(steps),
        eager_(random_.chance(60)) {}

  void run() {
    faults_ = {.delay = random_.pick({0.0, 0.3, 0.9}),
               .short_transfer = random_.pick({0.0, 0.3}),
               .read_error = random_.pick({0.0, 0.0, 0.2}),
               .write_error = random_.pick({0.0, 0.0, 0.3}),
               .sync_error = random_.pick({0.0, 0.0, 0.3}),
               .capacity = random_.pick({kDiskBytes, kDiskBytes, uint64_t{32} << 10})};
    open();
    while ((base_ < end_ || evaluation_) && !testing::Test::HasFailure()) {
      if (known_ < end_ && known_ <= base_ + options_.known_batches &&
          (eager_ || random_.chance(40))) {
        submit();
      } else {
        call(random_.below(100));
      }
    }
    if (!testing::Test::HasFailure()) check_all();
  }

 private:
  static constexpr uint64_t kDiskBytes = 128 << 20;  // more than the budget

  struct Flight {
    Step step;
    ToyBatch batch;
    PlainValues forward;
    std::vector<PlainValues> parts;
    bool forwarded = false;
  };

  // The caller's state at a commit, or at an attempt that may or may not have reached the disk.
  struct Snapshot {
    PlainTables plain;
    uint64_t step;
  };

  void open() {
    runtime_ = open_or_fail(options_);
    ASSERT_NE(runtime_, nullptr);
    scope_.disk.faults = faults_;
  }

  void call(uint64_t what) {
    if (what < 2) return crash();
    if (what < 12) return evaluate();
    if (what < 40) return forward_next();
    if (what < 44) return drop_ahead();
    if (what < 47) return commit();
    if (what < 51) return read_some();
    if (what < 53) return write_some();
    if (what < 55) return runtime_->end_of_input();
    if (what < 56) return check_digest();
    if (evaluation_ && what < 66) return end_evaluation();
    return continue_one();
  }

  // What the disk refuses now it may do later.
  template <typename Call>
  Status until_done(Call&& call) {
    Status status;
    for (int tries = 0; tries < 1000; ++tries) {
      status = call();
      if (status.code() == Code::kNoSpace) grow_disk();
      if (status.code() != Code::kIo && status.code() != Code::kNoSpace) break;
    }
    return status;
  }
  void grow_disk() {
    ASSERT_LT(faults_.capacity, kDiskBytes) << "no space on a disk that never fills";
    faults_.capacity = 2 * faults_.capacity;
    scope_.disk.faults.capacity = faults_.capacity;
    ++totals_.grown;
  }

  void submit() {
    ToyBatch batch = batches_.next(), handed = batch;
    auto step = runtime_->submit(handed.view());
    // Steps dropped unseen are still being placed, and while an evaluation is open nothing is.
    while (!step.ok() && dropped_ahead_ && step.status().code() != Code::kInvalid) {
      // What it says may be older than the room that it was given.
      const bool full = step.status().code() == Code::kNoSpace;
      if (full && faults_.capacity < kDiskBytes) grow_disk();
      if (evaluation_) end_evaluation();
      std::this_thread::yield();
      step = runtime_->submit(handed.view());
    }
    ASSERT_TRUE(step.ok()) << step.status().to_string();
    ASSERT_EQ(step->number(), known_);
    handed = {};  // the runtime has its own copy
    flights_[known_] = {std::move(*step), std::move(batch)};
    if (++known_ == end_) runtime_->end_of_input();
  }

  void forward_next() {
    while (ended_.contains(next_)) ++next_;
    if (next_ == known_) return;
    Flight& flight = flights_[next_];
    const bool legal = !evaluation_ && next_ - base_ < options_.open_steps;
    flight.forward = plain_.shaped(flight.batch.view(), -99);
    const Status status = until_done([&] { return flight.step.forward(flight.forward.out()); });
    ASSERT_EQ(status.code(), legal ? Code::kOk : Code::kBusy) << status.to_string();
    if (!legal) return;
    flight.forwarded = true;
    compare(flight, "forward");
    ++next_;
  }

  void compare(Flight& flight, const char* what) {
    compare(plain_.forward(flight.batch.view()), flight.forward,
            std::string(what) + " of step " + std::to_string(flight.step.number()));
  }
  static void compare(const PlainValues& expected, const PlainValues& is, const std::string& what) {
    ASSERT_EQ(first_difference(expected.pooled, is.pooled), "") << what;
    for (size_t s = 0; s < expected.sequences.size(); ++s) {
      ASSERT_EQ(first_difference(expected.sequences[s], is.sequences[s]), "")
          << what << ", sequence " << s;
    }
  }

  void drop_ahead() {
    if (next_ >= known_) return;
    const uint64_t n = next_ + random_.below(known_ - next_);
    if (ended_.contains(n)) return;
    dropped_ahead_ = true;
    finish(n, [](Flight& flight) { flight.step.drop(); });
  }

  template <typename End>
  void finish(uint64_t n, End&& end) {
    end(flights_[n]);
    flights_.erase(n);
    ended_.insert(n);
    while (ended_.contains(base_)) ++base_;
  }

  // A repeated forward, a backward, an apply or a drop of some open step.
  void continue_one() {
    std::vector<uint64_t> open;
    for (const auto& [n, flight] : flights_) {
      if (flight.forwarded) open.push_back(n);
    }
    if (open.empty()) return;
    const uint64_t n = random_.chance(70) ? open[0] : open[random_.below(open.size())];
    Flight& flight = flights_[n];
    if (random_.chance(20)) return repeat_forward(flight);
    if (flight.parts.size() < options_.gradient_parts && random_.chance(50))
      return backward(flight);
    if (random_.chance(10)) return finish(n, [](Flight& f) { f.step.drop(); });
    apply(n, flight);
  }

  void repeat_forward(Flight& flight) {
    flight.forward = plain_.shaped(flight.batch.view(), -99);
    const Status status = until_done([&] { return flight.step.forward(flight.forward.out()); });
    ASSERT_TRUE(status.ok()) << status.to_string();
    compare(flight, "repeated forward");
  }

  // A function of what was looked up, so that one wrong bit spreads.
  PlainValues gradient(const Flight& flight) {
    PlainValues g = flight.forward;
    const auto bend = [&](std::vector<float>& values) {
      for (float& x : values) x = 0.25f * x + static_cast<float>(random_.below(9)) / 16 - 0.25f;
    };
    bend(g.pooled);
    for (auto& sequence : g.sequences) bend(sequence);
    return g;
  }

  void backward(Flight& flight) {
    flight.parts.push_back(gradient(flight));
    const Status status = flight.step.backward(flight.parts.back().gradient());
    ASSERT_TRUE(status.ok()) << status.to_string();
  }

  void apply(uint64_t n, Flight& flight) {
    const ApplyOptions options = {.learning_rate = random_.chance(50) ? 0.05f : 0.2f,
                                  .weight_decay = random_.chance(30) ? 0.01f : 0,
                                  .decoupled = random_.chance(50)};
    Status status;
    if (flight.parts.empty() || random_.chance(50)) {
      flight.parts.push_back(gradient(flight));
      status = flight.step.backward_and_apply(flight.parts.back().gradient(), options);
    } else {
      status = flight.step.apply(options);
    }
    ASSERT_TRUE(status.ok()) << status.to_string();
    plain_.apply(flight.batch.view(), std::move(flight.parts), options, n);
    finish(n, [](Flight&) {});
  }

  void evaluate() {
    if (!evaluation_) {
      evaluated_ = batches_.next();
      const Status status = until_done([&] {
        auto evaluation = runtime_->evaluate(evaluated_.view());
        if (evaluation.ok()) evaluation_ = std::move(*evaluation);
        return evaluation.status();
      });
      ASSERT_TRUE(status.ok()) << status.to_string();
    } else {
      EXPECT_EQ(runtime_->evaluate(evaluated_.view()).status().code(), Code::kBusy);
    }
    PlainValues out = plain_.shaped(evaluated_.view(), -99);
    const Status status = evaluation_->forward(out.out());
    ASSERT_TRUE(status.ok()) << status.to_string();
    compare(plain_.forward(evaluated_.view()), out, "evaluation");
  }
  void end_evaluation() { evaluation_.reset(); }

  void commit() {
    bool open = evaluation_.has_value();
    for (const auto& [n, flight] : flights_) open |= flight.forwarded;
    const bool freeze = !open && random_.chance(20);
    if (freeze) scope_.disk.freeze_after(random_.below(40));
    const uint64_t attempt = attempts_++;
    const CommitArray array = {
        "attempt", "uint64", {1}, std::vector<std::byte>(sizeof attempt, std::byte(attempt))};
    const Status status = runtime_->commit({array});
    if (open) {
      EXPECT_EQ(status.code(), Code::kBusy);
      return;
    }
    if (status.ok()) snapshots_.clear();
    snapshots_.emplace(static_cast<uint8_t>(attempt), Snapshot{plain_, base_});
    if (!status.ok()) {
      EXPECT_TRUE(status.code() == Code::kIo || status.code() == Code::kNoSpace)
          << status.to_string();
    }
    if (status.code() == Code::kNoSpace && !freeze && random_.chance(50)) grow_disk();
    if (freeze) crash();
  }

  // The process and all that the disk did not sync are lost; the run goes on from a commit.
  void crash() {
    end_evaluation();
    flights_.clear();
    runtime_.reset();
    scope_.disk.faults = {};
    scope_.disk.crash();
    runtime_ = open_or_fail(options_);
    ASSERT_NE(runtime_, nullptr);
    Snapshot at{PlainTables(options_), 0};
    if (runtime_->commits() > 0) {
      const auto attempt = std::to_integer<uint8_t>(runtime_->arrays().at(0).bytes.at(0));
      ASSERT_TRUE(snapshots_.contains(attempt)) << "commit of attempt " << int{attempt};
      at = snapshots_.at(attempt);
      snapshots_ = {{attempt, at}};
    }
    plain_ = at.plain;
    known_ = next_ = base_ = at.step;
    ended_.clear();
    dropped_ahead_ = false;
    ASSERT_EQ(runtime_->next_step(), at.step);
    check_digest();
    scope_.disk.faults = faults_;
    ++totals_.crashes;
    if (known_ == end_) runtime_->end_of_input();
  }

  int64_t any_row(uint32_t table) {
    return static_cast<int64_t>(random_.below(options_.tables[table].rows));
  }

  void read_some() {
    const auto t = static_cast<uint32_t>(random_.below(options_.tables.size()));
    const std::vector<int64_t> rows = {any_row(t), any_row(t), any_row(t)};
    check_rows(t, rows);
  }

  void check_rows(uint32_t t, const std::vector<int64_t>& rows) {
    const TableOptions& table = options_.tables[t];
    const uint32_t width = table.width;
    const size_t state_floats = plain_.row(t, rows[0]).size() - width;
    std::vector<float> weights(rows.size() * width), state(rows.size() * state_floats);
    const Status status = until_done([&] { return runtime_->read_rows(t, rows, weights, state); });
    ASSERT_TRUE(status.ok()) << status.to_string();
    for (size_t i = 0; i < rows.size(); ++i) {
      std::vector<float> is(weights.begin() + i * width, weights.begin() + (i + 1) * width);
      is.insert(is.end(), state.begin() + i * state_floats, state.begin() + (i + 1) * state_floats);
      ASSERT_EQ(first_difference(plain_.row(t, rows[i]), is), "")
          << "table " << table.name << ", row " << rows[i];
    }
  }

  void write_some() {
    const auto t = static_cast<uint32_t>(random_.below(options_.tables.size()));
    const std::vector<int64_t> rows = {any_row(t)};
    std::vector<float> weights, state;
    for (float x : plain_.row(t, rows[0])) {
      (weights.size() < options_.tables[t].width ? weights : state).push_back(0.5f * x + 0.125f);
    }
    const Status status = until_done([&] { return runtime_->write_rows(t, rows, weights, state); });
    const bool legal = base_ == known_ && !evaluation_;
    ASSERT_EQ(status.code(), legal ? Code::kOk : Code::kBusy) << status.to_string();
    if (legal) plain_.write(t, rows[0], weights, state);
  }

  void check_digest() {
    Digest digest;
    const Status status = until_done([&] {
      auto is = runtime_->digest();
      if (is.ok()) digest = *is;
      return is.status();
    });
    EXPECT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(digest.to_string(), plain_.digest());
  }

  void check_all() {
    check_digest();
    for (uint32_t t = 0; t < options_.tables.size(); ++t) {
      const auto rows = static_cast<int64_t>(options_.tables[t].rows);
      for (int64_t row = 0; row < rows; row += 2) check_rows(t, {row, std::min(row + 1, rows - 1)});
    }
    const Stats stats = runtime_->stats();
    EXPECT_LE(stats.rows_on_ssd, plain_.rows_written());
    totals_.add(stats);
  }

  FakeDiskScope scope_;
  Random random_;
  storage::DiskFaults faults_;
  std::map<uint8_t, Snapshot> snapshots_;
  uint64_t attempts_ = 0;
  Totals& totals_;
  RuntimeOptions options_;
  BatchMaker batches_;
  PlainTables plain_;
  uint64_t end_;
  bool eager_;
  std::unique_ptr<Runtime> runtime_;
  std::map<uint64_t, Flight> flights_;
  std::optional<Evaluation> evaluation_;
  ToyBatch evaluated_;
  std::set<uint64_t> ended_;
  uint64_t known_ = 0, next_ = 0, base_ = 0;
  bool dropped_ahead_ = false;
};

void run_case(uint64_t seed, Totals& totals) {
  SCOPED_TRACE("ROWTIDE_SEED=" + std::to_string(seed));
  Watchdog watchdog("ROWTIDE_SEED=" + std::to_string(seed));
  Program(seed, /*steps=*/5 + seed % 31, totals).run();
}

void run_cases(uint64_t first, uint64_t count) {
  Totals totals;
  if (const char* seed = std::getenv("ROWTIDE_SEED")) {
    return run_case(std::strtoull(seed, nullptr, 10), totals);
  }
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
    run_case(seed, totals);
  }
  EXPECT_GT(totals.from_ssd, count);
  EXPECT_GT(totals.from_ddr, count);
  EXPECT_GT(totals.transit, count);
  EXPECT_GT(totals.lowered, 0u);
  EXPECT_GT(totals.dropped, count);
  EXPECT_GT(totals.crashes, count);
  EXPECT_GT(totals.grown, count / 8);
}

TEST(RandomProgramTest, I3_I6_I8_EveryOutputIsThatOfPlainTables) { run_cases(0, 150); }
TEST(RandomProgramTest, SlowI3_I6_I8_EveryOutputIsThatOfPlainTables) { run_cases(1000, 600); }

}  // namespace
}  // namespace rowtide
