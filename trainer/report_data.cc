#include "trainer/report_data.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "trainer/metrics_log.h"

namespace rowtide {
namespace {

using Json = nlohmann::ordered_json;

const Json& at(const Json& object, const char* name) {
  static const Json kNothing;
  return object.is_object() && object.contains(name) ? object.at(name) : kNothing;
}
double number(const Json& json) { return json.is_number() ? json.get<double>() : NAN; }
double number(const Json& object, const char* name) { return number(at(object, name)); }
double count(const Json& object, const char* name) {
  const double value = number(object, name);
  return std::isnan(value) ? 0 : value;
}
std::string word(const Json& object, const char* name) {
  const Json& json = at(object, name);
  return json.is_string() ? json.get<std::string>() : json.is_null() ? "" : json.dump();
}

std::array<double, 4> hits_of(const Json& tiers, const char* field) {
  std::array<double, 4> hits;
  for (size_t i = 0; i < 4; ++i) hits[i] = count(at(tiers, kHitTiers[i]), field);
  return hits;
}

std::array<double, 4> moves_of(const Json& line) {
  const Json& tiers = at(line, "tiers");
  return {count(at(tiers, "hbm"), "rows_in"), count(at(tiers, "ddr"), "written"),
          count(line, "rows_read_from_ssd"), count(at(tiers, "ssd"), "written")};
}

std::array<double, 4> minus(std::array<double, 4> a, const std::array<double, 4>& b) {
  for (size_t i = 0; i < 4; ++i) a[i] -= b[i];
  return a;
}

// Builds the report line by line; counters restart where a run was resumed.
class Builder {
 public:
  void add(const Json& line) {
    const std::string event = word(line, "event");
    if (event == "start" || event == "resume") add_start(line, event == "resume");
    if (event == "metrics") add_step(line);
    if (event == "eval") add_eval(line);
    if (event == "commit") data_.commits.push_back(count(line, "steps"));
    if (event == "end" || event == "interrupted" || event == "failed") add_end(line, event);
  }
  ReportData take() { return std::move(data_); }

 private:
  void add_start(const Json& line, bool resume) {
    if (resume) data_.resumes.push_back(count(line, "steps"));
    data_.event = "running";
    data_.message.clear();
    hits_ = {}, moves_ = {}, step_ = count(line, "steps");
    data_.facts.clear();
    for (const char* name :
         {"version", "time", "cpu", "cores", "instruction_set", "io_engine", "file_system"}) {
      data_.facts.emplace_back(name, word(line, name));
    }
    add_plan(at(line, "plan"));
    add_config(at(line, "config"));
  }

  void add_plan(const Json& plan) {
    data_.plan.clear();
    data_.process_predicted = 0;
    for (ReportTier& tier : data_.tiers) tier.bytes_predicted = 0;
    for (const Json& line : plan) {
      const std::string tier = word(line, "tier");
      const double bytes = count(line, "bytes");
      data_.plan.push_back({tier, {word(line, "what"), bytes}});
      for (size_t i = 0; i < 3; ++i) {
        if (tier == kHitTiers[i]) data_.tiers[i].bytes_predicted += bytes;
      }
      if (tier != "ssd") data_.process_predicted += bytes;
    }
  }

  void add_config(const Json& config) {
    data_.config.clear();
    for (const auto& [section, keys] : config.items()) {
      data_.config += "[" + section + "]\n";
      for (const auto& [key, value] : keys.items()) {
        if (key != "tables") data_.config += key + " = " + value.dump() + "\n";
      }
      data_.config += "\n";
    }
    const Json& tables = at(at(config, "model"), "tables");
    data_.config += "# tables\n";
    double bytes = 0;
    for (const Json& table : tables) {
      data_.config += table.dump() + "\n";
      bytes += record_bytes(table);
    }
    data_.record_bytes = tables.empty() ? 0 : bytes / double(tables.size());
  }

  static double record_bytes(const Json& table) {
    const double width = count(table, "width");
    const std::string optimizer = word(table, "optimizer");
    const double state = optimizer == "adam"      ? 8 * width
                         : optimizer == "adagrad" ? 4 * width
                         : optimizer == "sgd"     ? 0
                                                  : 4;
    return width * (word(table, "precision") == "fp32" ? 4 : 2) + state;
  }

  void add_totals(const Json& line) {
    data_.step_count = count(line, "steps");
    data_.samples = count(line, "samples");
    data_.seconds = count(line, "seconds");
    data_.samples_per_s = count(line, "samples_per_s");
    data_.loss = number(line, "loss");
    data_.stall_s = count(line, "stall_s");
    data_.reader_wait_s = count(line, "reader_wait_s");
    data_.placed_lowered = count(line, "placed_lowered");
    data_.transit_rows = count(line, "transit_rows");
    data_.rows_on_ssd = count(line, "rows_on_ssd");
    data_.hits = hits_of(at(line, "tiers"), "hits");
    data_.unique_hits = hits_of(at(line, "tiers"), "unique_hits");
    for (size_t i = 0; i < 3; ++i) {
      const Json& tier = at(at(line, "tiers"), kHitTiers[i]);
      data_.tiers[i].bytes_used = count(tier, "bytes_used");
      data_.tiers[i].bytes_budget = count(tier, "bytes_budget");
    }
    data_.process_peak = std::max(data_.process_peak, count(line, "resident_bytes"));
    data_.stages.clear();
    for (const auto& [name, seconds] : at(line, "stages").items()) {
      data_.stages.emplace_back(name, number(seconds));
    }
  }

  void add_step(const Json& line) {
    add_totals(line);
    const auto hits = hits_of(at(line, "tiers"), "hits");
    const auto moves = moves_of(line);
    data_.steps.push_back({.step = data_.step_count,
                           .loss = number(line, "loss"),
                           .ne = number(line, "ne"),
                           .samples_per_s = data_.samples_per_s,
                           .hits = minus(hits, hits_),
                           .moved = minus(moves, moves_),
                           .steps = data_.step_count - step_});
    hits_ = hits, moves_ = moves, step_ = data_.step_count;
  }

  void add_eval(const Json& line) {
    data_.evals.push_back({.step = count(line, "steps"),
                           .loss = number(line, "loss"),
                           .ne = number(line, "ne"),
                           .auc = number(line, "auc"),
                           .calibration = number(line, "calibration"),
                           .samples = count(line, "samples")});
  }

  void add_end(const Json& line, const std::string& event) {
    add_totals(line);
    data_.event = event;
    data_.message = word(line, "message");
    data_.digest = word(line, "digest");
    data_.process_peak = count(line, "peak_resident_bytes");
    data_.tables.clear();
    for (const Json& table : at(line, "tables")) {
      const Json& resident = at(table, "resident");
      data_.tables.push_back({.name = word(table, "name"),
                              .resident = resident.is_boolean() && resident.get<bool>(),
                              .hits = hits_of(table, "hits")});
    }
  }

  ReportData data_;
  std::array<double, 4> hits_ = {}, moves_ = {};
  double step_ = 0;
};

}  // namespace

Result<ReportData> read_report_data(const std::string& metrics_path) {
  std::ifstream in(metrics_path, std::ios::binary);
  if (!in) return {Code::kNotFound, "cannot read " + metrics_path};
  Builder builder;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object()) {
      builder.add(json);
    } else if (!in.eof()) {  // a cut last line is what a killed run leaves
      return {Code::kFormat, metrics_path + ":" + std::to_string(number) + ": no JSON object"};
    }
  }
  return builder.take();
}

}  // namespace rowtide
