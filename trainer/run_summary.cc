#include "trainer/run_summary.h"

#include <cstdio>

#include "trainer/config_resolve.h"
#include "trainer/console.h"

namespace rowtide {
namespace {

template <typename... Values>
std::string line(const char* name, const char* pattern, Values... values) {
  char head[32], text[256];
  std::snprintf(head, sizeof head, "  %-14s", name);
  std::snprintf(text, sizeof text, pattern, values...);
  return std::string(head) + text + "\n";
}

std::string tier_line(const char* name, const TierHits& hits, const TierHits& all,
                      const TierStats& tier) {
  const double share = all.hits == 0 ? 0 : double(hits.hits) / double(all.hits) * 100;
  return line(name, "%6.2f %% of look-ups, %llu rows moved in, %s of %s", share,
              static_cast<unsigned long long>(tier.rows_in),
              readable_size(double(tier.bytes_used)).c_str(),
              readable_size(double(tier.bytes_budget)).c_str());
}

std::string tier_lines(const Stats& stats) {
  TierHits all;
  for (const TierHits& hits : {stats.hbm, stats.ddr, stats.ssd, stats.fresh}) all.hits += hits.hits;
  const double fresh = all.hits == 0 ? 0 : double(stats.fresh.hits) / double(all.hits) * 100;
  return tier_line("hbm", stats.hbm, all, stats.hbm_tier) +
         tier_line("ddr", stats.ddr, all, stats.ddr_tier) +
         tier_line("ssd", stats.ssd, all, stats.ssd_tier) +
         line("", "%llu rows ever written, %llu rows read back",
              static_cast<unsigned long long>(stats.rows_on_ssd),
              static_cast<unsigned long long>(stats.rows_read_from_ssd)) +
         line("new", "%6.2f %% of look-ups", fresh);
}

}  // namespace

std::string describe_quality(const Quality& quality) {
  return line("AUC", "%.5f", quality.auc) + line("NE", "%.5f", quality.ne) +
         line("loss", "%.5f", quality.logloss) + line("calibration", "%.4f", quality.calibration) +
         line("on", "%llu rows, %llu of them positive",
              static_cast<unsigned long long>(quality.samples),
              static_cast<unsigned long long>(quality.positives));
}

std::string describe_run(const EndRecord& record, const StartRecord& start) {
  const StepRecord& last = record.last;
  std::string out = line("steps", "%llu", static_cast<unsigned long long>(last.steps));
  out += line("samples", "%llu, %.0f a second", static_cast<unsigned long long>(last.samples),
              last.samples_per_s);
  out += line("train loss", "%.5f", last.loss);
  if (record.quality) out += describe_quality(*record.quality);
  out += tier_lines(last.stats);
  out += line("stall", "%.2f s for rows, %.2f s for the reader", last.stats.stall_s,
              last.stages.seconds[static_cast<size_t>(Stage::kRead)]);
  double predicted = 0;
  for (const PlanLine& part : start.plan) {
    if (part.tier != "ssd") predicted += double(part.bytes);
  }
  out += line("memory", "%s predicted, %s used at most", readable_size(predicted).c_str(),
              readable_size(double(record.peak_resident_bytes)).c_str());
  if (!record.digest.empty()) out += line("digest", "%s", record.digest.c_str());
  return out;
}

}  // namespace rowtide
