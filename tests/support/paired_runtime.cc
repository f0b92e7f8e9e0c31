#include "tests/support/paired_runtime.h"

#include <numeric>

#include "tests/support/numbers.h"

namespace rowtide {
namespace {

void compare(const PlainValues& expected, const PlainValues& is, const std::string& what) {
  EXPECT_EQ(first_difference(expected.pooled, is.pooled), "") << what;
  for (size_t s = 0; s < expected.sequences.size(); ++s) {
    EXPECT_EQ(first_difference(expected.sequences[s], is.sequences[s]), "")
        << what << ", sequence " << s;
  }
}

}  // namespace

ToyBatch batch_of(const std::vector<std::vector<std::vector<int64_t>>>& bags) {
  ToyBatch batch;
  batch.samples = bags.empty() ? 0 : bags[0].size();
  batch.offsets.push_back(0);
  for (const auto& feature : bags) {
    for (const auto& bag : feature) {
      batch.ids.insert(batch.ids.end(), bag.begin(), bag.end());
      batch.offsets.push_back(static_cast<int64_t>(batch.ids.size()));
    }
  }
  return batch;
}

ToyBatch one_hot(const std::vector<int64_t>& ids) {
  ToyBatch batch;
  batch.samples = ids.size();
  batch.ids = ids;
  batch.offsets.resize(ids.size() + 1);
  std::iota(batch.offsets.begin(), batch.offsets.end(), 0);
  return batch;
}

std::vector<int64_t> range(int64_t first, int64_t end) {
  std::vector<int64_t> ids(static_cast<size_t>(end - first));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

RuntimeOptions one_table(const std::string& directory, uint64_t rows, uint32_t width) {
  RuntimeOptions o;
  o.tables = {{.name = "t", .rows = rows, .width = width, .placement = Placement::kCached}};
  o.features = {{.name = "f", .table = 0}};
  o.ssd = {{directory, 64 << 20}};
  o.known_batches = 8;
  o.placed_batches = 2;
  o.max_samples = o.max_ids = 64;
  o.threads = 1;
  return o;
}

void set_budgets(RuntimeOptions& options, uint64_t hbm_beyond, uint64_t ddr_beyond) {
  options.hbm_bytes = options.ddr_bytes = 1;
  const Plan plan = Runtime::plan(options);
  options.hbm_bytes = plan.least_hbm_bytes + hbm_beyond;
  options.ddr_bytes = plan.least_ddr_bytes + ddr_beyond;
}

PairedRuntime::PairedRuntime(const RuntimeOptions& options)
    : plain_(options), runtime_(open_or_fail(options)) {}

Step PairedRuntime::submit(const ToyBatch& batch) {
  auto step = runtime_->submit(batch.view());
  EXPECT_TRUE(step.ok()) << step.status().to_string();
  return step.ok() ? std::move(*step) : Step();
}

void PairedRuntime::forward(Step& step, const ToyBatch& batch) {
  PlainValues out = plain_.shaped(batch.view(), -99);
  const Status status = step.forward(out.out());
  ASSERT_TRUE(status.ok()) << status.to_string();
  compare(plain_.forward(batch.view()), out, "forward of " + std::to_string(step.number()));
}

void PairedRuntime::apply(Step& step, const ToyBatch& batch, const ApplyOptions& options) {
  PlainValues gradient = plain_.forward(batch.view());
  const auto bend = [](std::vector<float>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = 0.5f * values[i] + static_cast<float>(i % 7) / 8 - 0.25f;
    }
  };
  bend(gradient.pooled);
  for (auto& sequence : gradient.sequences) bend(sequence);
  const Status status = step.backward_and_apply(gradient.gradient(), options);
  ASSERT_TRUE(status.ok()) << status.to_string();
  plain_.apply(batch.view(), {gradient}, options, step.number());
}

void PairedRuntime::train(const ToyBatch& batch, const ApplyOptions& options) {
  Step step = submit(batch);
  forward(step, batch);
  if (!testing::Test::HasFatalFailure()) apply(step, batch, options);
}

void PairedRuntime::evaluate(const ToyBatch& batch) {
  auto evaluation = runtime_->evaluate(batch.view());
  ASSERT_TRUE(evaluation.ok()) << evaluation.status().to_string();
  PlainValues out = plain_.shaped(batch.view(), -99);
  const Status status = evaluation->forward(out.out());
  ASSERT_TRUE(status.ok()) << status.to_string();
  compare(plain_.forward(batch.view()), out, "evaluation");
}

void PairedRuntime::check_row(uint32_t table, int64_t row) {
  const std::vector<float> expected = plain_.row(table, row);
  const uint32_t width = plain_.options().tables[table].width;
  std::vector<float> is(expected.size());
  const std::span<float> all = is;
  const int64_t rows[] = {row};
  const Status status = runtime_->read_rows(table, rows, all.first(width), all.subspan(width));
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(first_difference(expected, is), "") << "table " << table << ", row " << row;
}

}  // namespace rowtide
