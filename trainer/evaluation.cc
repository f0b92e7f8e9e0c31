#include "trainer/evaluation.h"

#include <algorithm>
#include <utility>

namespace rowtide {
namespace {

Failure predict(TrainedModel& model, const ClickBatch& batch, std::vector<float>& pooled,
                std::vector<float>& logits) {
  auto evaluation = model.runtime->evaluate(
      {.samples = batch.samples, .ids = batch.ids, .offsets = batch.offsets});
  ROWTIDE_TRY_PART(Part::kRuntime, evaluation.status());
  pooled.resize(batch.samples * model.config.model.tables.size() * model.config.model.dim);
  ROWTIDE_TRY_PART(Part::kRuntime, evaluation->forward({.pooled = pooled}));
  logits.resize(batch.samples);
  model.dense->forward(batch.samples, batch.dense.data(), pooled.data(), logits.data());
  return {};
}

}  // namespace

void show(Console& console, const EvalProgress& progress) {
  console.progress({"evaluate", progress.fraction, std::to_string(progress.samples) + " samples"});
}

Failure evaluate(TrainedModel& model, const EvalRows& rows, LogLine log, WaitWatch& watch,
                 const std::function<bool(const EvalProgress&)>& progress, Quality& quality) {
  auto reader = CriteoReader::open(
      reader_options(model.config, rows.files, rows.first_row, ~uint64_t{0}, std::move(log)));
  ROWTIDE_TRY_PART(Part::kData, reader.status());
  if (!(*reader)->has_labels()) {
    return {{Code::kInvalid, rows.files.front() + " has no labels to evaluate on"}, Part::kData};
  }
  QualityMeter meter;
  ClickBatch batch;
  std::vector<float> pooled, logits;
  uint64_t samples = 0;
  while (true) {
    {
      const WaitWatch::Wait wait(watch, "the evaluation waits for the reader");
      ROWTIDE_TRY_PART(Part::kData, (*reader)->next(batch));
    }
    if (batch.samples == 0) break;
    const Failure failure = predict(model, batch, pooled, logits);
    if (!failure.ok()) return failure;
    meter.add(logits, batch.labels);
    samples += batch.samples;
    const ReaderStats stats = (*reader)->stats();
    const double all = static_cast<double>(std::max<uint64_t>(stats.total_file_bytes, 1));
    if (!progress({samples, static_cast<double>(stats.file_bytes) / all})) {
      return {{Code::kInterrupted, "the evaluation was stopped"}, Part::kRuntime};
    }
  }
  if (samples == 0) {
    return {{Code::kInvalid, rows.files.front() + ": no rows are left to evaluate on"},
            Part::kData};
  }
  quality = meter.quality();
  return {};
}

}  // namespace rowtide
