#include "trainer/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>

#include "trainer/chart.h"
#include "trainer/config_resolve.h"
#include "trainer/console.h"
#include "trainer/report_data.h"
#include "trainer/report_style.h"
#include "trainer/run_directory.h"

namespace rowtide {
namespace {

std::string row(const std::string& name, const std::string& value) {
  return "<tr><th>" + html_text(name) + "</th><td>" + html_text(value) + "</td></tr>";
}

std::string card(const std::string& title, const std::string& body, const char* more = "") {
  return "<section class='card" + std::string(more) + "'><h2>" + html_text(title) + "</h2>" + body +
         "</section>";
}

std::string fixed(double value, int digits) {
  if (!std::isfinite(value)) return "\xE2\x80\x93";
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string share(double part, double whole) {
  return whole > 0 ? fixed(part / whole * 100, 2) + " %" : "\xE2\x80\x93";
}

double sum(const std::array<double, 4>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// A bar of `part` of the width, before its label.
std::string bar(const char* color, double part, const char* more = "") {
  return "<div class='bar" + std::string(more) +
         "'><i style='width:" + fixed(std::clamp(part, 0.0, 1.0) * 100, 1) + "%;background:var(--" +
         color + ")'></i></div>";
}

std::string head(const ReportData& data, const std::string& name) {
  const char* const state = data.event == "end"           ? "finished"
                            : data.event == "interrupted" ? "interrupted"
                            : data.event == "failed"      ? "failed"
                                                          : "not ended";
  std::string out = "<header><h1>" + html_text(name) + " <span class='state " + data.event + "'>" +
                    state + "</span></h1>";
  if (!data.message.empty()) out += "<p class='message'>" + html_text(data.message) + "</p>";
  return out + "</header>";
}

std::string tiles(const ReportData& data) {
  const ReportEval* const last = data.evals.empty() ? nullptr : &data.evals.back();
  const std::pair<std::string, std::string> all[] = {
      {"AUC", last ? fixed(last->auc, 5) : "\xE2\x80\x93"},
      {"normalised entropy", last ? fixed(last->ne, 5) : "\xE2\x80\x93"},
      {"loss", fixed(last ? last->loss : data.loss, 5)},
      {"samples/s", short_number(data.samples_per_s)},
      {"steps", short_number(data.step_count)},
      {"hits in HBM", share(data.hits[0], sum(data.hits))}};
  std::string out = "<div class='tiles'>";
  for (const auto& [name, value] : all) {
    out += "<div><b>" + html_text(value) + "</b><span>" + html_text(name) + "</span></div>";
  }
  return out + "</div>";
}

std::vector<ChartPoint> points(const ReportData& data, double (*value)(const ReportStep&)) {
  std::vector<ChartPoint> out;
  for (const ReportStep& step : data.steps) out.emplace_back(step.step, value(step));
  return out;
}

std::vector<ChartPoint> eval_points(const ReportData& data, double ReportEval::*value) {
  std::vector<ChartPoint> out;
  for (const ReportEval& eval : data.evals) out.emplace_back(eval.step, eval.*value);
  return out;
}

std::string curves(const ReportData& data) {
  const ChartFrame frame{.x_label = "step", .marks = data.resumes};
  std::string out = card(
      "Loss",
      line_chart(frame,
                 {{"training", "train", points(data, [](const ReportStep& s) { return s.loss; })},
                  {"held out", "eval", eval_points(data, &ReportEval::loss), true}}));
  out += card("Normalised entropy",
              line_chart(frame, {{"training", "train",
                                  points(data, [](const ReportStep& s) { return s.ne; })},
                                 {"held out", "eval", eval_points(data, &ReportEval::ne), true}}));
  return out;
}

std::string tier_charts(const ReportData& data) {
  static constexpr const char* kNames[] = {"HBM", "DDR", "SSD", "new"};
  static constexpr const char* kMoveColors[] = {"hbm", "ddr", "ssd", "eval"};
  std::vector<ChartSeries> hits, moves;
  double most = 0;
  for (const ReportStep& step : data.steps) most = std::max(most, step.steps);
  for (size_t i = 0; i < 4; ++i) {
    ChartSeries hit{kNames[i], kHitTiers[i]}, move{kMoves[i], kMoveColors[i]};
    for (const ReportStep& step : data.steps) {
      // Rows move ahead of their step, so the last few steps of a run show nothing.
      if (step.steps * 2 < most) continue;
      hit.points.emplace_back(step.step, step.hits[i]);
      const double steps = std::max(step.steps, 1.0);
      move.points.emplace_back(step.step, step.moved[i] * data.record_bytes / steps / (1 << 20));
    }
    hits.push_back(std::move(hit));
    moves.push_back(std::move(move));
  }
  const ChartFrame parts{.x_label = "step", .y_unit = " %"};
  const ChartFrame bytes{.x_label = "step", .y_unit = " MiB", .from_zero = true};
  const ChartFrame speed{.x_label = "step", .from_zero = true, .marks = data.resumes};
  return card("Where look-ups found their rows", stacked_chart(parts, hits)) +
         card("Moved in a step", line_chart(bytes, moves)) +
         card("Samples per second",
              line_chart(speed, {{"since the start", "train", points(data, [](const ReportStep& s) {
                                    return s.samples_per_s;
                                  })}}));
}

std::string stage_bars(const ReportData& data) {
  auto stages = data.stages;
  stages.insert(stages.begin(), {"stall: waited for rows", data.stall_s});
  double most = 1e-9;
  for (const auto& stage : stages) most = std::max(most, stage.second);
  std::string out = "<table class='bars'>";
  for (const auto& [name, seconds] : stages) {
    const bool beside = name == "place" || name == "fetch";
    const bool waits = name == "read" || name[0] == 's';
    out += "<tr><th>" + html_text(name) + (beside ? " *" : "") + "</th><td>" +
           bar(waits ? "ssd" : "hbm", seconds / most, beside ? " pale" : "") + "</td><td>" +
           fixed(seconds, 2) + " s</td></tr>";
  }
  const char* const verdict = data.reader_wait_s > data.stall_s
                                  ? "Of the waits, the longer one was for the reader."
                                  : "Of the waits, the longer one was for rows.";
  return card("Time",
              out + "</table><p class='note'>* beside the other stages. " + verdict + "</p>");
}

std::string memory(const ReportData& data) {
  std::string out =
      "<table><tr><th></th><th>budget</th><th>predicted</th><th>used</th><th></th></tr>";
  static constexpr const char* kNames[] = {"HBM", "DDR", "SSD"};
  for (size_t i = 0; i < 3; ++i) {
    const ReportTier& tier = data.tiers[i];
    out += "<tr><th>" + std::string(kNames[i]) + "</th><td>" + readable_size(tier.bytes_budget) +
           "</td><td>" + readable_size(tier.bytes_predicted) + "</td><td>" +
           readable_size(tier.bytes_used) + "</td><td>" +
           bar(kHitTiers[i], tier.bytes_used / std::max(tier.bytes_budget, 1.0)) + "</td></tr>";
  }
  out += "<tr><th>process</th><td></td><td>" + readable_size(data.process_predicted) + "</td><td>" +
         readable_size(data.process_peak) + "</td><td>" +
         bar("train", data.process_peak / std::max(data.process_predicted, 1.0)) +
         "</td></tr></table><details><summary>Every part</summary><table>";
  for (const auto& [tier, part] : data.plan) {
    out += "<tr><th>" + html_text(tier) + "</th><td class='left'>" + html_text(part.first) +
           "</td><td>" + readable_size(part.second) + "</td></tr>";
  }
  return card("Memory", out + "</table></details>");
}

std::string quality(const ReportData& data) {
  std::string out =
      "<table><tr><th>step</th><th>loss</th><th>NE</th><th>AUC</th><th>calibration</th>"
      "<th>samples</th></tr>";
  for (const ReportEval& eval : data.evals) {
    out += "<tr>";
    for (const std::string& cell :
         {fixed(eval.step, 0), fixed(eval.loss, 5), fixed(eval.ne, 5), fixed(eval.auc, 5),
          fixed(eval.calibration, 4), short_number(eval.samples)}) {
      out += "<td>" + cell + "</td>";
    }
    out += "</tr>";
  }
  if (data.evals.empty()) out = "<p class='none'>No rows were held out.</p><table>";
  return card("Evaluations", out + "</table>");
}

std::string totals(const ReportData& data) {
  std::string out = "<table>";
  out += row("samples", short_number(data.samples));
  out += row("time", minutes_and_seconds(data.seconds));
  out += row("waited for rows (stall)", fixed(data.stall_s, 2) + " s");
  out += row("waited for the reader", fixed(data.reader_wait_s, 2) + " s");
  out += row("commits", std::to_string(data.commits.size()));
  out += row("rows on SSD", short_number(data.rows_on_ssd));
  out += row("rows through transit slots", short_number(data.transit_rows));
  out += row("batches placed less far ahead", short_number(data.placed_lowered));
  if (!data.digest.empty()) out += row("digest", data.digest);
  for (const auto& [name, value] : data.facts) out += row(name, value);
  return card("The run", out + "</table>");
}

std::string table_hits(const ReportData& data) {
  if (data.tables.empty()) return "";
  std::string out =
      "<div class='legend'><span><i style='background:var(--hbm)'></i>HBM</span>"
      "<span><i style='background:var(--ddr)'></i>DDR</span>"
      "<span><i style='background:var(--ssd)'></i>SSD</span>"
      "<span><i style='background:var(--new)'></i>new</span></div><table class='bars'>";
  for (const ReportTable& table : data.tables) {
    const double all = std::max(sum(table.hits), 1.0);
    out += "<tr><th>" + html_text(table.name) + "</th><td><div class='bar'>";
    for (size_t i = 0; i < 4; ++i) {
      out += "<i style='width:" + fixed(table.hits[i] / all * 100, 2) + "%;background:var(--" +
             kHitTiers[i] + ")'></i>";
    }
    out += "</div></td><td>" + (table.resident ? "resident" : share(table.hits[0], all)) +
           "</td></tr>";
  }
  return card("Look-ups of each table", out + "</table>");
}

std::string page(const ReportData& data, const std::string& name) {
  return "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
         "<meta name='viewport' content='width=device-width,initial-scale=1'><title>" +
         html_text(name) + "</title><style>" + kReportStyle + "</style></head><body>" +
         head(data, name) + tiles(data) + "<main>" + curves(data) + tier_charts(data) +
         stage_bars(data) + memory(data) + quality(data) + totals(data) + table_hits(data) +
         card("Configuration", "<details><summary>Every key</summary><pre>" +
                                   html_text(data.config) + "</pre></details>") +
         "</main></body></html>\n";
}

}  // namespace

Status write_report(const std::string& metrics_path, const std::string& html_path) {
  const auto data = read_report_data(metrics_path);
  if (!data.ok()) return data.status();
  const auto directory = std::filesystem::absolute(metrics_path).parent_path();
  return replace_file(html_path, page(*data, directory.filename().string()));
}

}  // namespace rowtide
