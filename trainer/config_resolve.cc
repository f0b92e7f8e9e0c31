#include "trainer/config_resolve.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>

#include "trainer/config_keys.h"

namespace rowtide {
namespace {

struct KnownTables {
  const char* name;
  std::vector<uint64_t> rows;
};

// Published cardinalities of C1 .. C26.
const std::vector<KnownTables>& all_known_tables() {
  static const std::vector<KnownTables> all = {
      {"criteo-kaggle", {1460,  583,  10131227, 2202608, 305, 24,     12517,   633,   3,
                         93145, 5683, 8351593,  3194,    27,  14992,  5461306, 10,    5652,
                         2173,  4,    7046547,  18,      15,  286181, 105,     142572}},
      {"criteo-terabyte",
       {227605432, 39060,     17295,    7424,      20265,  3,     7122, 1543, 63,
        130229467, 3067956,   405282,   10,        2209,   11938, 155,  4,    976,
        14,        292775614, 40790948, 187188510, 590152, 12973, 108,  36}},
  };
  return all;
}

Status invalid(const std::string& message) { return {Code::kInvalid, message}; }

constexpr size_t kCriteoColumns = 26;

Status check_tables(const Config& config) {
  const ModelConfig& model = config.model;
  if (model.tables.size() != kCriteoColumns) {
    return invalid("model.tables has " + std::to_string(model.tables.size()) +
                   " tables; data.format = \"criteo\" has 26 columns of ids");
  }
  std::set<std::string> names;
  for (const TableConfig& table : model.tables) {
    if (table.name.empty() || !names.insert(table.name).second) {
      return invalid("model.tables: the name \"" + table.name + "\" is empty or given twice");
    }
    if (table.rows == 0) return invalid("model.tables: " + table.name + " has no rows");
    if (table.width != model.dim) {
      return invalid("model.tables: " + table.name + " has width " + std::to_string(table.width) +
                     "; the dot products of kind = \"dlrm\" need model.dim = " +
                     std::to_string(model.dim) + " everywhere");
    }
  }
  return {};
}

Status check_model(const Config& config) {
  const ModelConfig& model = config.model;
  if (model.bottom.empty() || model.bottom.back() != model.dim) {
    return invalid("model.bottom must end in model.dim = " + std::to_string(model.dim));
  }
  if (model.top.empty() || model.top.back() != 1) return invalid("model.top must end in 1");
  return check_tables(config);
}

Status check_rest(const Config& config) {
  if (!config.data.eval_files.empty() && config.data.eval_fraction != 0) {
    return invalid("data.eval_files and data.eval_fraction exclude each other");
  }
  const uint64_t ids = config.data.batch * config.model.tables.size();
  if (config.data.max_ids_per_batch < ids) {
    return invalid("data.max_ids_per_batch = " + std::to_string(config.data.max_ids_per_batch) +
                   ": a batch of data.batch = " + std::to_string(config.data.batch) + " has " +
                   std::to_string(ids));
  }
  if (config.tiers.placed_batches > config.tiers.known_batches) {
    return invalid(
        "tiers.placed_batches = " + std::to_string(config.tiers.placed_batches) +
        ": must be at most tiers.known_batches = " + std::to_string(config.tiers.known_batches));
  }
  if (config.optimizer.decay != "none" && config.optimizer.decay_steps == 0) {
    return invalid("optimizer.decay = \"" + config.optimizer.decay +
                   "\" needs optimizer.decay_steps");
  }
  if ((config.tiers.admission == "profile") == config.tiers.profile.empty()) {
    return invalid("tiers.admission = \"profile\" and tiers.profile need each other");
  }
  return {};
}

void fill(std::string& word, const std::string& common) {
  if (word.empty()) word = common;
}

void fill_tables(Config& config) {
  for (TableConfig& table : config.model.tables) {
    if (config.model.cap_rows != 0) table.rows = std::min(table.rows, config.model.cap_rows);
    if (table.width == 0) table.width = config.model.dim;
    if (table.init_scale < 0) table.init_scale = config.model.init_scale;
    fill(table.mapping, config.model.mapping);
    fill(table.precision, config.model.precision);
    fill(table.pooling, config.model.pooling);
    fill(table.placement, config.tiers.placement);
    fill(table.optimizer, config.optimizer.embedding);
  }
}

}  // namespace

Result<std::vector<TableConfig>> known_tables(const std::string& name) {
  for (const KnownTables& known : all_known_tables()) {
    if (known.name != name) continue;
    std::vector<TableConfig> tables;
    for (const uint64_t rows : known.rows) {
      tables.push_back({.name = "C" + std::to_string(tables.size() + 1), .rows = rows});
    }
    return tables;
  }
  const std::string near = nearest_word(name, known_table_names());
  return {Code::kNotFound, "no tables are known by this name" +
                               (near.empty() ? "" : "; did you mean \"" + near + "\"?")};
}

std::vector<std::string> known_table_names() {
  std::vector<std::string> names;
  for (const KnownTables& known : all_known_tables()) names.emplace_back(known.name);
  return names;
}

Result<uint64_t> parse_size(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string unit(end, text.data() + text.size());
  unit.erase(0, std::min(unit.find_first_not_of(' '), unit.size()));
  static const std::pair<const char*, double> kUnits[] = {{"", 1},
                                                          {"B", 1},
                                                          {"KB", 1e3},
                                                          {"MB", 1e6},
                                                          {"GB", 1e9},
                                                          {"TB", 1e12},
                                                          {"KiB", 1ull << 10},
                                                          {"MiB", 1ull << 20},
                                                          {"GiB", 1ull << 30},
                                                          {"TiB", 1ull << 40}};
  for (const auto& [name, factor] : kUnits) {
    if (error == std::errc{} && unit == name && value >= 0 && value * factor < 1e18) {
      return static_cast<uint64_t>(value * factor);
    }
  }
  return {Code::kInvalid, "\"" + std::string(text) + "\" is no size such as \"64MiB\""};
}

std::string readable_size(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 4) bytes /= 1024, ++unit;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.4g %s", bytes, units[unit]);
  return text;
}

Status resolve_config(Config& config, const std::string& name) {
  if (config.model.tables.empty()) config.model.tables = *known_tables("criteo-kaggle");
  fill_tables(config);
  if (config.data.max_ids_per_batch == 0) {
    config.data.max_ids_per_batch = config.data.batch * config.model.tables.size();
  }
  if (config.run.directory.empty()) {
    config.run.directory = "runs/" + std::filesystem::path(name).stem().string();
  }
  if (!config.tiers.profile.empty()) {
    config.tiers.profile = std::filesystem::absolute(config.tiers.profile).lexically_normal();
  }
  ROWTIDE_TRY(check_model(config));
  return check_rest(config);
}

namespace {

Status changed(const std::string& key, const std::string& before, const std::string& after) {
  return invalid(key + " was " + before + " and is now " + after +
                 ": it may not change when a run is resumed");
}

Status check_resume_tables(std::vector<TableConfig> before, std::vector<TableConfig> after) {
  if (before.size() != after.size()) {
    return changed("the number of model.tables", std::to_string(before.size()),
                   std::to_string(after.size()));
  }
  for (size_t i = 0; i < before.size(); ++i) {
    for (const auto& key : table_keys()) {
      const std::string was = toml_of(key.field(before[i])), is = toml_of(key.field(after[i]));
      if (was != is && !key.may_change) {
        return changed("model.tables: " + before[i].name + "'s " + key.path(), was, is);
      }
    }
  }
  return {};
}

}  // namespace

Status check_resume(const Config& before, const Config& after) {
  Config was = before, is = after;
  for (const auto& key : config_keys()) {
    if (key.may_change || key.path() == "model.tables") continue;
    const std::string old_value = toml_of(key.field(was)), value = toml_of(key.field(is));
    if (old_value != value) return changed(key.path(), old_value, value);
  }
  return check_resume_tables(before.model.tables, after.model.tables);
}

}  // namespace rowtide
