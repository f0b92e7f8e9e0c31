#include "trainer/config_options.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <thread>
#include <utility>

namespace rowtide {
namespace {

template <typename Choice>
using Words = std::initializer_list<std::pair<std::string_view, Choice>>;

// REQUIRES: the word is there; config_keys.h has let only those pass.
template <typename Choice>
Choice choice(const std::string& word, Words<Choice> words) {
  for (const auto& [name, value] : words) {
    if (name == word) return value;
  }
  ROWTIDE_CHECK(!"a word of the configuration without a meaning");
  return {};
}

Precision precision(const std::string& word) {
  return choice<Precision>(
      word, {{"fp32", Precision::kFp32}, {"fp16", Precision::kFp16}, {"bf16", Precision::kBf16}});
}

OptimizerKind optimizer(const std::string& word) {
  return choice<OptimizerKind>(word, {{"sgd", OptimizerKind::kSgd},
                                      {"adagrad", OptimizerKind::kAdagrad},
                                      {"rowwise_adagrad", OptimizerKind::kRowwiseAdagrad},
                                      {"adam", OptimizerKind::kAdam}});
}

Placement placement(const std::string& word) {
  return choice<Placement>(word, {{"auto", Placement::kAuto},
                                  {"resident", Placement::kResident},
                                  {"cached", Placement::kCached}});
}

Pooling pooling(const std::string& word) {
  return choice<Pooling>(word, {{"sum", Pooling::kSum}, {"mean", Pooling::kMean}});
}

TableOptions table_options(const TableConfig& table) {
  return {.name = table.name,
          .rows = table.rows,
          .width = static_cast<uint32_t>(table.width),
          .precision = precision(table.precision),
          .optimizer = optimizer(table.optimizer),
          .init_scale = static_cast<float>(table.init_scale),
          .placement = placement(table.placement)};
}

void add_tables(const Config& config, RuntimeOptions& options) {
  for (const TableConfig& table : config.model.tables) {
    const uint32_t index = static_cast<uint32_t>(options.tables.size());
    options.tables.push_back(table_options(table));
    options.features.push_back({.name = table.name,
                                .table = index,
                                .pooling = pooling(table.pooling),
                                .max_ids_per_sample = 1});  // Criteo: one id a column
  }
}

}  // namespace

RuntimeOptions runtime_options(const Config& config, const std::string& directory, LogLine log) {
  RuntimeOptions options;
  add_tables(config, options);
  const TiersConfig& tiers = config.tiers;
  options.device = tiers.device;
  options.hbm_bytes = tiers.hbm_bytes;
  options.ddr_bytes = tiers.ddr_bytes;
  for (const SsdConfig& ssd : tiers.ssd) {
    options.ssd.push_back({std::filesystem::path(directory) / ssd.directory, ssd.bytes});
  }
  options.io_engine = tiers.io_engine;
  options.policy = tiers.policy;
  options.admission = tiers.admission;
  options.profile = tiers.profile;
  options.known_batches = static_cast<uint32_t>(tiers.known_batches);
  options.placed_batches = static_cast<uint32_t>(tiers.placed_batches);
  options.max_samples = config.data.batch;
  options.max_ids = config.data.max_ids_per_batch;
  options.threads = static_cast<int>(config.run.threads);
  options.seed = config.model.seed;
  options.log = std::move(log);
  return options;
}

DlrmOptions dlrm_options(const Config& config) {
  DlrmOptions options;
  options.embeddings = static_cast<uint32_t>(config.model.tables.size());
  options.dim = static_cast<uint32_t>(config.model.dim);
  options.bottom.assign(config.model.bottom.begin(), config.model.bottom.end());
  options.top.assign(config.model.top.begin(), config.model.top.end());
  options.max_samples = config.data.batch;
  options.optimizer =
      choice<DenseOptimizer>(config.optimizer.dense, {{"sgd", DenseOptimizer::kSgd},
                                                      {"adagrad", DenseOptimizer::kAdagrad},
                                                      {"adam", DenseOptimizer::kAdam}});
  options.eps = static_cast<float>(config.optimizer.eps);
  options.beta1 = static_cast<float>(config.optimizer.beta1);
  options.beta2 = static_cast<float>(config.optimizer.beta2);
  options.weight_decay = static_cast<float>(config.optimizer.weight_decay);
  options.decoupled = config.optimizer.decoupled;
  options.seed = config.model.seed;
  return options;
}

CriteoReaderOptions reader_options(const Config& config, const std::vector<std::string>& files,
                                   uint64_t first_row, uint64_t end_row, LogLine log) {
  CriteoReaderOptions options;
  options.files = files;
  for (const TableConfig& table : config.model.tables) {
    options.tables.push_back({table.name, table.rows,
                              choice<IdMapping>(table.mapping, {{"modulo", IdMapping::kModulo},
                                                                {"hash", IdMapping::kHash}})});
  }
  options.batch = config.data.batch;
  options.first_row = first_row;
  options.end_row = end_row;
  options.dense_transform =
      choice<DenseTransform>(config.data.dense_transform,
                             {{"log1p", DenseTransform::kLog1p}, {"none", DenseTransform::kNone}});
  options.on_error =
      choice<OnError>(config.data.on_error, {{"fail", OnError::kFail}, {"skip", OnError::kSkip}});
  // Parsing takes about a quarter of what a step takes.
  const uint64_t threads =
      config.run.threads != 0 ? config.run.threads : std::thread::hardware_concurrency();
  options.threads = static_cast<int>(std::max<uint64_t>(1, threads / 4));
  options.log = std::move(log);
  return options;
}

}  // namespace rowtide
