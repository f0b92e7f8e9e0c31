#include "trainer/metrics_log.h"

#include <cerrno>
#include <cmath>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "trainer/config_keys.h"
#include "trainer/disk_error.h"
#include "trainer/run_directory.h"

namespace rowtide {
namespace {

using Json = nlohmann::ordered_json;

// File names and messages may hold bytes that are no UTF-8.
std::string text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// JSON knows no NaN.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

template <typename Entry>
Json json_of_entries(std::vector<Entry>& entries, std::span<const ConfigKey<Entry>> keys);

Json json_of(const ConfigField& field) {
  return std::visit(
      [](auto* value) -> Json {
        using Value = std::remove_reference_t<decltype(*value)>;
        if constexpr (std::is_same_v<Value, std::vector<TableConfig>>) {
          return json_of_entries(*value, table_keys());
        } else if constexpr (std::is_same_v<Value, std::vector<SsdConfig>>) {
          return json_of_entries(*value, ssd_keys());
        } else {
          return *value;
        }
      },
      field);
}

template <typename Entry>
Json json_of_entries(std::vector<Entry>& entries, std::span<const ConfigKey<Entry>> keys) {
  Json list = Json::array();
  for (Entry& entry : entries) {
    Json object;
    for (const auto& key : keys) object[std::string(key.name)] = json_of(key.field(entry));
    list.push_back(std::move(object));
  }
  return list;
}

Json json_of(Config config) {
  Json out;
  for (const auto& key : config_keys()) {
    out[std::string(key.section)][std::string(key.name)] = json_of(key.field(config));
  }
  return out;
}

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(": ") + 2);
  }
  return "unknown";
}

std::string time_of_day() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%FT%TZ", &parts);
  return text;
}

Json hits_of(const TierHits& hits) {
  return {{"hits", hits.hits}, {"unique_hits", hits.unique_hits}};
}

Json tier_of(const TierHits& hits, const TierStats& tier) {
  Json out = hits_of(hits);
  out["rows_in"] = tier.rows_in;
  out["written"] = tier.written;
  out["dropped"] = tier.dropped;
  out["bytes_used"] = tier.bytes_used;
  out["bytes_budget"] = tier.bytes_budget;
  return out;
}

Json tiers_of(const Stats& stats) {
  return {{"hbm", tier_of(stats.hbm, stats.hbm_tier)},
          {"ddr", tier_of(stats.ddr, stats.ddr_tier)},
          {"ssd", tier_of(stats.ssd, stats.ssd_tier)},
          {"new", hits_of(stats.fresh)}};
}

Json tables_of(const Stats& stats) {
  Json out = Json::array();
  for (const TableStats& table : stats.tables) {
    out.push_back({{"name", table.name},
                   {"resident", table.resident},
                   {"hbm", hits_of(table.hbm)},
                   {"ddr", hits_of(table.ddr)},
                   {"ssd", hits_of(table.ssd)},
                   {"new", hits_of(table.fresh)}});
  }
  return out;
}

Json stages_of(const StageSeconds& stages) {
  Json out;
  for (size_t i = 0; i < kStageCount; ++i) out[kStageNames[i]] = stages.seconds[i];
  return out;
}

Json start_of(const StartRecord& record, bool resume) {
  Json out = {{"event", resume ? "resume" : "start"}};
  if (!resume) out["schema"] = kMetricsSchema;
  out["steps"] = record.step;
  out["version"] = version();
  out["time"] = time_of_day();
  out["cpu"] = cpu_name();
  out["cores"] = std::thread::hardware_concurrency();
  out["instruction_set"] = record.instruction_set;
  out["io_engine"] = record.io_engine;
  out["file_system"] = record.file_system;
  Json plan = Json::array();
  for (const PlanLine& line : record.plan) {
    plan.push_back({{"tier", line.tier}, {"what", line.what}, {"bytes", line.bytes}});
  }
  out["plan"] = std::move(plan);
  out["config"] = json_of(record.config);
  return out;
}

// What step lines and the last line have in common.
void add_step(Json& out, const StepRecord& record) {
  out["steps"] = record.steps;
  out["samples"] = record.samples;
  out["seconds"] = record.seconds;
  out["samples_per_s"] = number(record.samples_per_s);
  out["learning_rate"] = record.learning_rate;
  out["loss"] = number(record.loss);
  out["stall_s"] = record.stats.stall_s;
  out["reader_wait_s"] = record.stages.seconds[static_cast<size_t>(Stage::kRead)];
  out["placed_lowered"] = record.stats.placed_lowered;
  out["transit_rows"] = record.stats.transit_rows;
  out["rows_read_from_ssd"] = record.stats.rows_read_from_ssd;
  out["rows_on_ssd"] = record.stats.rows_on_ssd;
  out["skipped_lines"] = record.skipped_lines;
  out["skipped_ids"] = record.stats.skipped_ids;
  out["resident_bytes"] = record.resident_bytes;
  out["tiers"] = tiers_of(record.stats);
  out["stages"] = stages_of(record.stages);
}

// The lines of the file that lie at or before the step of the commit.
std::string lines_up_to(const std::string& path, uint64_t step) {
  std::ifstream in(path, std::ios::binary);
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (in.eof() || !json.is_object()) break;  // cut when the process died
    if (json.value("steps", uint64_t{0}) > step) continue;
    kept += line + "\n";
  }
  return kept;
}

}  // namespace

Result<MetricsLog> MetricsLog::open(const std::string& path, bool resume,
                                    const StartRecord& record) {
  const std::string kept = resume ? lines_up_to(path, record.step) : "";
  ROWTIDE_TRY(replace_file(path, kept));
  MetricsLog log;
  log.path_ = path;
  log.file_.reset(std::fopen(path.c_str(), "ae"));
  if (log.file_ == nullptr) return disk_error(path, errno);
  ROWTIDE_TRY(log.write(text(start_of(record, !kept.empty()))));
  return log;
}

Status MetricsLog::write(const std::string& line) {
  if (std::fprintf(file_.get(), "%s\n", line.c_str()) < 0 || std::fflush(file_.get()) != 0) {
    return disk_error(path_, errno);
  }
  return {};
}

Status MetricsLog::step(const StepRecord& record) {
  Json out = {{"event", "metrics"}};
  add_step(out, record);
  out["ne"] = number(record.ne);
  return write(text(out));
}

Status MetricsLog::evaluation(const EvalRecord& record) {
  const Quality& quality = record.quality;
  return write(text({{"event", "eval"},
                     {"steps", record.steps},
                     {"samples", quality.samples},
                     {"positives", quality.positives},
                     {"seconds", record.seconds},
                     {"loss", number(quality.logloss)},
                     {"ne", number(quality.ne)},
                     {"auc", number(quality.auc)},
                     {"calibration", number(quality.calibration)}}));
}

Status MetricsLog::commit(uint64_t steps, uint64_t commits, double seconds) {
  return write(
      text({{"event", "commit"}, {"steps", steps}, {"commits", commits}, {"seconds", seconds}}));
}

Status MetricsLog::end(const EndRecord& record) {
  Json out = {{"event", record.event}};
  if (!record.message.empty()) out["message"] = record.message;
  add_step(out, record.last);
  out["ne"] = record.quality ? number(record.quality->ne) : Json(nullptr);
  out["auc"] = record.quality ? number(record.quality->auc) : Json(nullptr);
  out["calibration"] = record.quality ? number(record.quality->calibration) : Json(nullptr);
  if (record.quality) out["eval_loss"] = number(record.quality->logloss);
  out["digest"] = record.digest.empty() ? Json(nullptr) : Json(record.digest);
  out["commits"] = record.commits;
  out["peak_resident_bytes"] = record.peak_resident_bytes;
  out["tables"] = tables_of(record.last.stats);
  return write(text(out));
}

}  // namespace rowtide
