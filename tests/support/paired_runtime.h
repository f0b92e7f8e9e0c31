#pragma once
// PairedRuntime — a runtime beside plain tables: every output of the one is compared with the
// other.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/rowtide.h"
#include "tests/support/plain_tables.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/toy_training.h"
#include "tests/support/watchdog.h"

namespace rowtide {

// bags[f][s] are the ids of feature f in sample s.
ToyBatch batch_of(const std::vector<std::vector<std::vector<int64_t>>>& bags);
// One feature, one id a sample.
ToyBatch one_hot(const std::vector<int64_t>& ids);
std::vector<int64_t> range(int64_t first, int64_t end);

// One cached table "t" of one pooled feature "f", over a store in `directory`; no budgets yet.
RuntimeOptions one_table(const std::string& directory, uint64_t rows = 1000, uint32_t width = 4);
// The least budgets of these options, and so many bytes beyond.
void set_budgets(RuntimeOptions& options, uint64_t hbm_beyond = 0, uint64_t ddr_beyond = 0);

class PairedRuntime {
 public:
  explicit PairedRuntime(const RuntimeOptions& options);

  Runtime* operator->() { return runtime_.get(); }
  Runtime& runtime() { return *runtime_; }
  PlainTables& plain() { return plain_; }

  Step submit(const ToyBatch& batch);
  void forward(Step& step, const ToyBatch& batch);  // and compares
  void apply(Step& step, const ToyBatch& batch, const ApplyOptions& options = kOptions);
  // The four calls of a step.
  void train(const ToyBatch& batch, const ApplyOptions& options = kOptions);
  void evaluate(const ToyBatch& batch);
  void check_row(uint32_t table, int64_t row);
  void check_digest() { EXPECT_EQ(digest_of(*runtime_), plain_.digest()); }

  static constexpr ApplyOptions kOptions = {.learning_rate = 0.1f};

 private:
  PlainTables plain_;
  std::unique_ptr<Runtime> runtime_;
  Watchdog watchdog_{"a runtime beside plain tables"};
};

}  // namespace rowtide
