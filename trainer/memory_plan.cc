#include "trainer/memory_plan.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>

#include "trainer/config_options.h"
#include "trainer/config_resolve.h"
#include "trainer/run_record.h"

namespace rowtide {
namespace {

constexpr uint64_t kDenseFields = 13;
constexpr uint64_t kLineBytes = 230;         // of a Criteo row, about
constexpr uint64_t kGzipLineBytes = 105;     // compressed
constexpr uint64_t kEvaluatedRowBytes = 16;  // logit and label, and room to grow
// What jemalloc keeps for itself and of freed pages, as measured: 1.5 to 5 MiB.
constexpr uint64_t kAllocatorBytes = 2 << 20;
constexpr const char* kAtStart = "process at start";  // of what is available it is already taken

// What a parsed row takes: label, integers, ids.
uint64_t row_bytes(const Config& config) {
  return sizeof(float) * (1 + kDenseFields) + sizeof(int64_t) * config.model.tables.size();
}

uint64_t reader_bytes(const Config& config) {
  return CriteoReader::predict_bytes(reader_options(config, {}, 0, 0, {}));
}

// About how many rows the files hold, by their sizes; those that are not there count nothing.
uint64_t rows_by_size(const std::vector<std::string>& files) {
  uint64_t rows = 0;
  for (const std::string& file : files) {
    std::error_code missing;
    if (!std::filesystem::is_regular_file(file, missing)) continue;
    std::ifstream in(file, std::ios::binary);
    const bool gzip = in.get() == 0x1f && in.get() == 0x8b;
    const auto bytes = std::filesystem::file_size(file, missing);
    if (!missing) rows += bytes / (gzip ? kGzipLineBytes : kLineBytes);
  }
  return rows;
}

// One batch as it is read.
uint64_t read_batch_bytes(const Config& config) {
  return config.data.batch * (row_bytes(config) + sizeof(int64_t) * 26);
}

// The pooled embeddings of a batch, or their gradient.
uint64_t pooled_bytes(const Config& config) {
  return config.data.batch * config.model.tables.size() * config.model.dim * sizeof(float);
}

// Of one pass over the held-out rows: what is predicted of them, a reader of their own, one batch
// and its pooled embeddings.
uint64_t evaluation_bytes(const Config& config) {
  const DataConfig& data = config.data;
  if (data.eval_files.empty() && data.eval_fraction == 0) return 0;
  const double rows = data.eval_files.empty()
                          ? static_cast<double>(rows_by_size(data.files)) * data.eval_fraction
                          : static_cast<double>(rows_by_size(data.eval_files));
  return reader_bytes(config) + static_cast<uint64_t>(rows * kEvaluatedRowBytes) +
         read_batch_bytes(config) + pooled_bytes(config);
}

// Labels and integers of the batches that wait for their step, and one batch as it is read.
uint64_t batch_bytes(const Config& config) {
  const uint64_t waiting = (config.tiers.known_batches + 1) * sizeof(float) * (1 + kDenseFields);
  return config.data.batch * waiting + read_batch_bytes(config);
}

std::string format(const char* pattern, const std::string& a, const std::string& b,
                   const std::string& c) {
  char text[256];
  std::snprintf(text, sizeof text, pattern, a.c_str(), b.c_str(), c.c_str());
  return text;
}

// Rounded up, so that a budget of what is printed suffices.
std::string least_size(uint64_t bytes) { return std::to_string((bytes + 1023) >> 10) + " KiB"; }

}  // namespace

Plan plan_run(const Config& config, const std::string& directory) {
  Plan plan = Runtime::plan(runtime_options(config, directory, {}));
  const auto add = [&](const char* what, uint64_t bytes) {
    plan.lines.push_back({"process", what, bytes});
  };
  add("dense part", Dlrm::predict_bytes(dlrm_options(config)));
  // The runtime keeps the arrays of the last commit, and so does its store.
  if (plan.ssd_bytes > 0) {
    add("dense part in the last commit", 2 * Dlrm::predict_tensor_bytes(dlrm_options(config)));
  }
  add("pooled embeddings and their gradient", 2 * pooled_bytes(config));
  add("batches that wait", batch_bytes(config));
  add("reader", reader_bytes(config));
  add("evaluation", evaluation_bytes(config));
  add("allocator", kAllocatorBytes);
  add(kAtStart, resident_bytes());
  return plan;
}

Status check_host_memory(const Plan& plan, uint64_t available) {
  std::vector<PlanLine> lines;
  uint64_t need = 0;
  for (const PlanLine& line : plan.lines) {
    if (line.tier == "ssd" || line.what == kAtStart) continue;
    need += line.bytes;
    lines.push_back(line);
  }
  if (need <= available) return {};
  std::ranges::sort(lines, std::greater(), &PlanLine::bytes);
  lines.resize(std::min<size_t>(lines.size(), 3));
  std::string largest;
  for (const PlanLine& line : lines) {
    largest += (largest.empty() ? "" : ", ") + line.what + " (" + line.tier + ") " +
               readable_size(double(line.bytes));
  }
  return {Code::kNoSpace, "the run needs " + readable_size(double(need)) + " of host memory, " +
                              readable_size(double(available)) + " are there; most of all " +
                              largest};
}

std::string describe_plan(const Plan& plan, const Config& config) {
  std::string out;
  uint64_t memory = 0;
  for (const PlanLine& line : plan.lines) {
    out += format("%-8s %-44s %12s\n", line.tier, line.what, readable_size(double(line.bytes)));
    if (line.tier != "ssd") memory += line.bytes;
  }
  uint64_t ssd_budget = 0;
  for (const SsdConfig& ssd : config.tiers.ssd) ssd_budget += ssd.bytes;
  out += "\n         planned        budget         least\n";
  const std::tuple<const char*, uint64_t, uint64_t, uint64_t> tiers[] = {
      {"hbm", plan.hbm_bytes, config.tiers.hbm_bytes, plan.least_hbm_bytes},
      {"ddr", plan.ddr_bytes, config.tiers.ddr_bytes, plan.least_ddr_bytes},
      {"ssd", plan.ssd_bytes, ssd_budget, plan.least_ssd_bytes}};
  for (const auto& [name, planned, budget, least] : tiers) {
    out += std::string(name) + "   " +
           format("%13s %13s %13s\n", readable_size(double(planned)), readable_size(double(budget)),
                  least_size(least));
  }
  out += "all memory, the process included: " + readable_size(double(memory)) + "\n";
  out += "batches placed ahead: " + std::to_string(plan.placed_batches) + "\n";
  for (const std::string& warning : plan.warnings) out += "warning: " + warning + "\n";
  return out;
}

}  // namespace rowtide
