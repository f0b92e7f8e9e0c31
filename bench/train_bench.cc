#include "bench/train_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <memory>
#include <random>
#include <string>

#include "bench/raw_reads.h"
#include "runtime/rowtide.h"
#include "storage/io_queue.h"
#include "trainer/dlrm.h"

namespace rowtide {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint32_t kTables = 26;
constexpr uint32_t kDenseFeatures = 13;
constexpr double kTurn = 2;  // seconds

struct Options {
  DlrmOptions model;
  std::string name = "kaggle", policy = "lookahead", store = "build/bench-store";
  uint64_t rows = 200000;
  double alpha = 1.05, seconds = 10, hot = 0.1, ssd_share = 0;
  int threads = 0;
  uint32_t known = 16, placed = 4;
  uint32_t batches = 0;  // 64, or 256 with the SSD in play
};

bool parse(int argc, char** argv, Options& o) {
  o.model.optimizer = DenseOptimizer::kAdagrad;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--model" && (value == "kaggle" || value == "mlperf"))
      o.name = value;
    else if (flag == "--batch")
      o.model.max_samples = std::strtoull(value.c_str(), nullptr, 10);
    else if (flag == "--rows")
      o.rows = std::strtoull(value.c_str(), nullptr, 10);
    else if (flag == "--alpha")
      o.alpha = std::atof(value.c_str());
    else if (flag == "--threads")
      o.threads = std::atoi(value.c_str());
    else if (flag == "--seconds")
      o.seconds = std::atof(value.c_str());
    else if (flag == "--hot")
      o.hot = std::atof(value.c_str());
    else if (flag == "--policy")
      o.policy = value;
    else if (flag == "--store")
      o.store = value;
    else if (flag == "--ssd-share")
      o.ssd_share = std::atof(value.c_str());
    else if (flag == "--known")
      o.known = static_cast<uint32_t>(std::atoi(value.c_str()));
    else if (flag == "--placed")
      o.placed = static_cast<uint32_t>(std::atoi(value.c_str()));
    else if (flag == "--batches")
      o.batches = static_cast<uint32_t>(std::atoi(value.c_str()));
    else
      return false;
  }
  if (o.name == "mlperf") {
    o.model.dim = 128;
    o.model.bottom = {512, 256, 128};
    o.model.top = {1024, 1024, 512, 256, 1};
  }
  if (o.batches == 0) o.batches = o.ssd_share > 0 ? 256 : 64;
  return argc % 2 == 1 && o.model.max_samples > 0 && o.rows > 0;
}

// Ids of rank x with P(x) ~ x^-alpha in [1, rows], scattered over the table.
struct PowerLaw {
  uint64_t rows;
  double alpha;
  int64_t draw(std::mt19937_64& random) const {
    const double u = static_cast<double>(random() >> 11) * 0x1p-53;
    if (alpha == 0) return static_cast<int64_t>(u * static_cast<double>(rows));
    const double n = static_cast<double>(rows);
    const double x = std::abs(alpha - 1) < 1e-9
                         ? std::exp(u * std::log(n))
                         : std::pow((std::pow(n, 1 - alpha) - 1) * u + 1, 1 / (1 - alpha));
    return static_cast<int64_t>((static_cast<uint64_t>(x) - 1) * 2654435761u % rows);
  }
};

struct Sample {
  std::vector<float> dense, labels;
  std::vector<int64_t> ids;
};

std::vector<Sample> make_batches(const Options& o) {
  std::vector<Sample> batches(o.batches);
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  const PowerLaw law{o.rows, o.alpha};
  for (Sample& batch : batches) {
    for (uint64_t i = 0; i < o.model.max_samples * kDenseFeatures; ++i) {
      batch.dense.push_back(normal(random));
    }
    for (uint64_t i = 0; i < o.model.max_samples; ++i) {
      batch.labels.push_back(random() % 4 == 0 ? 1.0f : 0.0f);
    }
    for (uint64_t i = 0; i < o.model.max_samples * kTables; ++i) {
      batch.ids.push_back(law.draw(random));
    }
  }
  return batches;
}

// Distinct rows of all batches: what a run over them ever touches.
uint64_t count_rows(const Options& o, const std::vector<Sample>& batches) {
  std::vector<bool> seen(o.rows * kTables);
  uint64_t rows = 0;
  for (const Sample& batch : batches) {
    for (uint64_t i = 0; i < batch.ids.size(); ++i) {
      auto bit = seen[i / o.model.max_samples * o.rows + static_cast<uint64_t>(batch.ids[i])];
      rows += !bit;
      bit = true;
    }
  }
  return rows;
}

enum class Tiers { kMemory, kWarm, kSsd };

// `rows`: that the batches touch.
RuntimeOptions runtime_options(const Options& o, Tiers tiers, uint64_t rows) {
  RuntimeOptions r;
  for (uint32_t t = 0; t < kTables; ++t) {
    const std::string name = "C" + std::to_string(t + 1);
    r.tables.push_back({.name = name, .rows = o.rows, .width = o.model.dim});
    r.features.push_back({.name = name, .table = t, .max_ids_per_sample = 1});
    if (tiers != Tiers::kMemory) r.tables.back().placement = Placement::kCached;
  }
  r.max_samples = o.model.max_samples;
  r.max_ids = o.model.max_samples * kTables;
  r.threads = o.threads;
  r.policy = o.policy;
  r.known_batches = o.known;
  r.placed_batches = o.placed;
  r.gradient_parts = 0;
  const uint64_t record = o.model.dim * 4 + 4;
  const double all = static_cast<double>(o.rows * kTables * record);
  r.hbm_bytes = r.ddr_bytes = uint64_t{16} << 30;
  if (tiers == Tiers::kMemory) return r;
  const Plan least = [&] {
    RuntimeOptions tiny = r;
    tiny.hbm_bytes = tiny.ddr_bytes = 1;
    tiny.ssd = {{o.store, uint64_t{8} << 30}};
    return Runtime::plan(tiny);
  }();
  r.ssd = {{o.store, uint64_t{8} << 30}};
  // The share counts records that a set may hold: directory and transit come on top.
  const double slots = 1.15;
  r.hbm_bytes = least.least_hbm_bytes + static_cast<uint64_t>(all * o.hot * slots);
  if (tiers == Tiers::kSsd) {
    const double touched = static_cast<double>(rows * record) * slots;
    r.hbm_bytes = least.least_hbm_bytes + static_cast<uint64_t>(touched * o.ssd_share / 4);
    r.ddr_bytes = least.least_ddr_bytes + static_cast<uint64_t>(touched * o.ssd_share * 3 / 4);
  }
  return r;
}

// One trainer that steps through the batches for ever.
class Trainer {
 public:
  Trainer(const Options& o, Tiers tiers, const std::vector<Sample>& batches, uint64_t rows,
          Parallel& parallel)
      : o_(o), batches_(batches) {
    for (uint64_t i = 0; i <= o.model.max_samples * kTables; ++i) {
      offsets_.push_back(static_cast<int64_t>(i));
    }
    auto runtime = Runtime::open(runtime_options(o, tiers, rows));
    auto dlrm = Dlrm::create(o.model, parallel);
    if (!runtime.ok() || !dlrm.ok()) {
      std::fprintf(stderr, "%s\n",
                   (runtime.ok() ? dlrm.status() : runtime.status()).to_string().c_str());
      std::exit(4);
    }
    runtime_ = std::move(*runtime);
    dlrm_ = std::move(*dlrm);
    pooled_.resize(o.model.max_samples * kTables * o.model.dim);
    gradient_.resize(pooled_.size());
    logits_.resize(o.model.max_samples);
  }

  void step() {
    while (flights_.size() <= o_.known) submit();
    const Sample& batch = batches_[done_++ % batches_.size()];
    Step step = std::move(flights_.front());
    flights_.pop_front();
    check(step.forward({.pooled = pooled_}));
    dlrm_->forward(o_.model.max_samples, batch.dense.data(), pooled_.data(), logits_.data());
    dlrm_->backward(batch.labels.data(), gradient_.data());
    check(step.backward_and_apply({.pooled = gradient_}, {.learning_rate = 0.01f}));
    dlrm_->update(0.01f);
  }
  // Samples a second over a turn.  So long that the batches placed ahead, while another has its
  // turn, count for little.
  double turn() {
    const Clock::time_point begin = Clock::now();
    double seconds = 0;
    uint64_t steps = 0;
    for (; seconds < kTurn; ++steps) {
      step();
      seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    }
    return static_cast<double>(steps * o_.model.max_samples) / seconds;
  }
  // Touches every row's batch once, so that memory and log are filled before the clock starts.
  void warm_up() {
    for (size_t i = 0; i < batches_.size(); ++i) step();
    warm_ = runtime_->stats();
  }
  // Since warm_up(): the named figure of Stats, by step.
  template <typename Figure>
  double per_step(Figure&& figure) const {
    const Stats now = runtime_->stats();
    return static_cast<double>(figure(now) - figure(warm_)) /
           static_cast<double>(now.steps - warm_.steps);
  }

 private:
  void submit() {
    const Sample& batch = batches_[submitted_++ % batches_.size()];
    auto step =
        runtime_->submit({.samples = o_.model.max_samples, .ids = batch.ids, .offsets = offsets_});
    check(step.status());
    flights_.push_back(std::move(*step));
  }
  static void check(const Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "%s\n", status.to_string().c_str());
    std::exit(4);
  }

  const Options& o_;
  const std::vector<Sample>& batches_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Dlrm> dlrm_;
  Stats warm_;
  std::deque<Step> flights_;
  std::vector<int64_t> offsets_;
  std::vector<float> pooled_, gradient_, logits_;
  uint64_t submitted_ = 0, done_ = 0;
};

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

// Random pages of the store's log, as many at once as the store reads.
double raw_reads(const Options& o) {
  auto raw = RawReads::open(o.store + "/LOG", IoEngine::kAuto, ColdStoreOptions().reads_in_flight,
                            storage::kPageBytes, random_page);
  const Result<double> rate = raw.ok() ? raw->run(0.3) : raw.status();
  if (!rate.ok()) {
    std::fprintf(stderr, "%s\n", rate.status().to_string().c_str());
    std::exit(4);
  }
  return *rate;
}

struct Named {
  const char* name;
  std::unique_ptr<Trainer> trainer;
  std::vector<double> samples_per_s;  // of each turn
};

void print_run(const Options& o, const Named& run, double memory_median) {
  const double batch = static_cast<double>(o.model.max_samples), ids = batch * kTables;
  const double median = quantile(run.samples_per_s, 0.5);
  const Trainer& t = *run.trainer;
  std::printf(
      ",\"%s\":{\"samples_per_s\":%.0f,\"spread\":%.3f,\"of_memory\":%.3f,"
      "\"stall_ms\":%.2f,\"place_ms\":%.2f,\"fetch_ms\":%.2f,\"lookup_ms\":%.2f,"
      "\"update_ms\":%.2f,\"hit_hbm\":%.4f,\"hit_ddr\":%.4f,\"hit_ssd\":%.4f,"
      "\"rows_per_step\":%.0f,\"rows_moved_in\":%.0f,\"ssd_rows_read\":%.0f",
      run.name, median,
      (quantile(run.samples_per_s, 0.9) - quantile(run.samples_per_s, 0.1)) / median,
      median / memory_median, t.per_step([](const Stats& s) { return s.stall_s * 1e3; }),
      t.per_step([](const Stats& s) { return s.place_s * 1e3; }),
      t.per_step([](const Stats& s) { return s.fetch_s * 1e3; }),
      t.per_step([](const Stats& s) { return s.forward_s * 1e3; }),
      t.per_step([](const Stats& s) { return s.apply_s * 1e3; }),
      t.per_step([](const Stats& s) { return s.hbm.hits; }) / ids,
      t.per_step([](const Stats& s) { return s.ddr.hits; }) / ids,
      t.per_step([](const Stats& s) { return s.ssd.hits; }) / ids, t.per_step([](const Stats& s) {
        return s.hbm.unique_hits + s.ddr.unique_hits + s.ssd.unique_hits + s.fresh.unique_hits;
      }),
      t.per_step([](const Stats& s) { return s.hbm_tier.rows_in; }),
      t.per_step([](const Stats& s) { return s.rows_read_from_ssd; }));
}

// Beside what the device's reads allow, were they all that a step needs.
void print_device(const Options& o, const Named& run, std::vector<double> raw) {
  const double reads = run.trainer->per_step([](const Stats& s) { return s.ssd_reads; });
  const double device = quantile(raw, 0.5), batch = static_cast<double>(o.model.max_samples);
  const double allowed = reads > 0 ? device / reads * batch : 0;
  std::printf(
      ",\"device_reads\":%.0f,\"raw_reads_per_s\":%.0f,\"raw_spread\":%.3f,"
      "\"reads_allow_samples_per_s\":%.0f,\"of_allowed\":%.3f",
      reads, device, (quantile(raw, 0.9) - quantile(raw, 0.1)) / device, allowed,
      allowed > 0 ? quantile(run.samples_per_s, 0.5) / allowed : 0);
}

void print(const Options& o, const std::vector<Named>& runs, const std::vector<double>& raw) {
  std::printf(
      "{\"bench\":\"train\",\"model\":\"%s\",\"batch\":%llu,\"rows\":%llu,\"alpha\":%g,\"hot\":%g,"
      "\"ssd_share\":%g,\"known\":%u,\"placed\":%u",
      o.name.c_str(), static_cast<unsigned long long>(o.model.max_samples),
      static_cast<unsigned long long>(o.rows), o.alpha, o.hot, o.ssd_share, o.known, o.placed);
  for (const Named& run : runs) {
    print_run(o, run, quantile(runs[0].samples_per_s, 0.5));
    if (!raw.empty() && &run != &runs[0]) print_device(o, run, raw);
    std::printf("}");
  }
  std::printf("}\n");
}

}  // namespace

int bench_train(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) {
    std::fprintf(stderr, "usage: see bench/README.md, rowtide-bench train\n");
    return 2;
  }
  std::filesystem::remove_all(o.store);
  std::filesystem::create_directories(std::filesystem::path(o.store).parent_path());
  const std::vector<Sample> batches = make_batches(o);
  Parallel parallel(o.threads);
  const uint64_t rows = count_rows(o, batches);
  const Tiers other = o.ssd_share > 0 ? Tiers::kSsd : Tiers::kWarm;
  const auto trainer = [&](Tiers tiers) {
    return std::make_unique<Trainer>(o, tiers, batches, rows, parallel);
  };
  std::vector<Named> runs;
  runs.push_back({"memory", trainer(Tiers::kMemory), {}});
  runs.push_back({o.ssd_share > 0 ? "ssd" : "ddr", trainer(other), {}});
  for (Named& run : runs) run.trainer->warm_up();
  std::vector<double> raw;
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(o.seconds));
  // The device has its turn when all that the tiers read ahead has come.
  while (Clock::now() < end) {
    for (size_t i = runs.size(); i-- > 0;) {
      runs[i].samples_per_s.push_back(runs[i].trainer->turn());
    }
    if (o.ssd_share > 0) raw.push_back(raw_reads(o));
  }
  print(o, runs, raw);
  runs.clear();
  std::filesystem::remove_all(o.store);
  return 0;
}

}  // namespace rowtide
