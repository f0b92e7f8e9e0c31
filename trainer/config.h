#pragma once
// Config — everything that a run depends on, as one plain struct with defaults.
//
// A TOML file fills it (config_toml.h); the keys, their ranges and their meanings stand in one
// table (config_keys.h).  Choices are kept as the words that the file uses; config_options.h turns
// them into the options of the parts.

#include <cstdint>
#include <string>
#include <vector>

namespace rowtide {

struct TableConfig {
  std::string name;
  uint64_t rows = 0;   // its cardinality
  uint64_t width = 0;  // 0: model.dim.  The empty words stand for [model]'s and [optimizer]'s
  std::string mapping, precision, pooling, placement, optimizer;
  double init_scale = -1;  // below 0: model.init_scale
  bool operator==(const TableConfig&) const = default;
};

struct SsdConfig {
  std::string directory;  // relative: below the run directory
  uint64_t bytes = 0;
  bool operator==(const SsdConfig&) const = default;
};

struct DataConfig {
  std::vector<std::string> files;
  std::string format = "criteo";
  std::vector<std::string> eval_files;
  double eval_fraction = 0;
  uint64_t batch = 2048;
  uint64_t max_ids_per_batch = 0;
  std::string dense_transform = "log1p";
  std::string on_error = "fail";
  bool operator==(const DataConfig&) const = default;
};

struct ModelConfig {
  std::string kind = "dlrm";
  uint64_t dim = 16;
  std::vector<uint64_t> bottom = {512, 256, 64, 16};
  std::vector<uint64_t> top = {512, 256, 1};
  std::vector<TableConfig> tables;
  uint64_t cap_rows = 0;
  std::string mapping = "modulo";
  std::string precision = "fp32";
  std::string pooling = "sum";
  double init_scale = 0.01;
  uint64_t seed = 1;
  bool operator==(const ModelConfig&) const = default;
};

struct OptimizerConfig {
  std::string embedding = "rowwise_adagrad";
  std::string dense = "adagrad";
  double learning_rate = 0.01;
  uint64_t warmup = 0;
  std::string decay = "none";
  uint64_t decay_start = 0;
  uint64_t decay_steps = 0;
  double eps = 1e-8;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double weight_decay = 0;
  bool decoupled = false;
  bool operator==(const OptimizerConfig&) const = default;
};

struct TiersConfig {
  std::string device = "cpu";
  uint64_t hbm_bytes = uint64_t{1} << 30;
  uint64_t ddr_bytes = uint64_t{1} << 30;
  std::vector<SsdConfig> ssd = {{"store", uint64_t{16} << 30}};
  std::string io_engine = "auto";
  std::string policy = "lookahead";
  std::string admission = "always";
  std::string profile;
  uint64_t known_batches = 64;
  uint64_t placed_batches = 4;
  std::string placement = "auto";
  bool operator==(const TiersConfig&) const = default;
};

struct RunConfig {
  std::string directory;
  uint64_t steps = 0;
  uint64_t epochs = 1;
  uint64_t commit_every = 0;
  uint64_t eval_every = 0;
  uint64_t metrics_every = 100;
  uint64_t threads = 0;
  bool digest = false;
  bool operator==(const RunConfig&) const = default;
};

struct Config {
  DataConfig data;
  ModelConfig model;
  OptimizerConfig optimizer;
  TiersConfig tiers;
  RunConfig run;
  bool operator==(const Config&) const = default;
};

}  // namespace rowtide
