#pragma once
// report_data — what a report shows, taken from metrics.jsonl.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace rowtide {

inline constexpr std::array<const char*, 4> kHitTiers = {"hbm", "ddr", "ssd", "new"};

// One line of metrics: figures over the steps since the line before.
struct ReportStep {
  double step = 0, loss = 0, ne = 0, samples_per_s = 0;  // loss and ne: NaN where there is none
  std::array<double, 4> hits = {};                       // as kHitTiers
  std::array<double, 4> moved = {};                      // records, as kMoves
  double steps = 0;                                      // how many steps these are
};
inline constexpr std::array<const char*, 4> kMoves = {"into HBM", "HBM to DDR", "read from SSD",
                                                      "written to SSD"};

struct ReportEval {
  double step = 0, loss = 0, ne = 0, auc = 0, calibration = 0, samples = 0;
};

struct ReportTier {
  double bytes_used = 0, bytes_budget = 0, bytes_predicted = 0;
};

struct ReportTable {
  std::string name;
  bool resident = false;
  std::array<double, 4> hits = {};
};

struct ReportData {
  std::vector<std::pair<std::string, std::string>> facts;  // of the machine and the version
  std::vector<ReportStep> steps;
  std::vector<ReportEval> evals;
  std::vector<double> commits;  // steps
  std::vector<double> resumes;  // steps
  std::vector<std::pair<std::string, double>> stages;
  std::vector<std::pair<std::string, std::pair<std::string, double>>> plan;  // tier, what, bytes
  std::array<ReportTier, 3> tiers;                                           // hbm, ddr, ssd
  double process_predicted = 0, process_peak = 0;
  std::vector<ReportTable> tables;
  std::string config;  // as TOML-like lines
  double record_bytes = 0;

  // Of the last line; a run that died has none and takes those of its last step.
  std::string event = "running", message, digest;
  double step_count = 0, samples = 0, samples_per_s = 0, seconds = 0, stall_s = 0, loss = 0;
  double reader_wait_s = 0, placed_lowered = 0, transit_rows = 0, rows_on_ssd = 0;
  std::array<double, 4> hits = {}, unique_hits = {};
};

// Errors: kNotFound, kFormat (names the line).
Result<ReportData> read_report_data(const std::string& metrics_path);

}  // namespace rowtide
