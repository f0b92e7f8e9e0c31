#include "bench/kernels_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/deduplicate.h"
#include "kernels/initial_rows.h"
#include "kernels/instruction_set.h"
#include "kernels/pooled_lookup.h"
#include "kernels/update_rows.h"
#include "runtime/base/host_arena.h"
#include "runtime/base/parallel.h"

namespace rowtide {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kTables = 26;
constexpr uint32_t kSamples = 2048;
constexpr uint32_t kBatches = 8;
// Samples of one task, which looks up all features of them: so few that its part of the output
// stays in the L2 cache and its pages in the TLB.
constexpr uint64_t kChunk = 64;

struct Options {
  int threads = 0;
  double seconds = 4;  // of each case
  uint64_t rows = 200000;
  uint32_t dim = 0;  // 0: all
};

struct Case {
  uint32_t dim;
  double alpha;  // 0: uniform
  uint32_t pooling;
  Precision precision;
};
constexpr Case kCases[] = {
    {16, 1.05, 1, Precision::kFp32},  {64, 1.05, 1, Precision::kFp32},
    {128, 1.05, 1, Precision::kFp32}, {64, 0, 1, Precision::kFp32},
    {64, 1.05, 20, Precision::kFp32}, {64, 1.05, 1, Precision::kFp16},
};

// Rank x in [1, rows] with P(x) ~ x^-alpha, by the inverse of the continuous distribution; the
// row is scattered, so that neighbours in rank are not neighbours in memory.
int64_t random_row(std::mt19937_64& random, uint64_t rows, double alpha) {
  if (alpha == 0) return static_cast<int64_t>(random() % rows);
  const double u = static_cast<double>(random() >> 11) * 0x1p-53;
  const double n = static_cast<double>(rows);
  const double x = std::pow((std::pow(n, 1 - alpha) - 1) * u + 1, 1 / (1 - alpha));
  return static_cast<int64_t>((static_cast<uint64_t>(x) - 1) * 2654435761u % rows);
}

// One batch as the runtime would have it after place: all tables resident.
struct Batch {
  std::vector<int64_t> ids;
  std::vector<Key> keys;
  std::vector<Slot> slots;
  std::vector<uint32_t> unique, feature_rows, occurrence_begin, occurrences;
};

// What all batches of a case share.
struct Shape {
  Shape(const Case& of, uint64_t table_rows) : c(of), rows(table_rows) {
    per_feature = kSamples * c.pooling;
    for (uint32_t f = 0; f <= kTables; ++f) feature_begin.push_back(f * per_feature);
    for (uint32_t f = 0; f < kTables; ++f) table.push_back(f);
    for (uint64_t b = 0; b <= kTables * kSamples; ++b) {
      offsets.push_back(static_cast<int64_t>(b * c.pooling));
    }
    for (uint32_t i = 0; i < per_feature; ++i) sample.push_back(i / c.pooling);
  }
  uint64_t ids() const { return feature_begin.back(); }

  Case c;
  uint64_t rows;
  uint64_t per_feature;
  std::vector<uint64_t> feature_begin;
  std::vector<uint32_t> table, sample;
  std::vector<int64_t> offsets;
};

class CaseBench {
 public:
  CaseBench(const Case& c, const Options& options, Parallel& parallel)
      : shape_(c, options.rows),
        parallel_(parallel),
        format_{c.dim, c.precision, OptimizerKind::kRowwiseAdagrad},
        scratch_(Deduplicator::scratch_bytes(shape_.ids(), kTables)),
        deduplicator_(scratch_.data(), shape_.ids(), kTables, /*salt=*/0),
        out_(uint64_t{kSamples} * kTables * c.dim),
        gradient_(out_.size(), 0.01f) {}

  Status open();
  void run(double seconds);

 private:
  void make_batch(std::mt19937_64& random, Batch& batch);
  void deduplicate(Batch& batch);
  void forward(const Batch& batch);
  void backward(const Batch& batch);
  void sum_random_rows();
  void print();

  Shape shape_;
  Parallel& parallel_;
  RowFormat format_;
  HostArena weights_, state_;
  RowPlanes planes_;
  std::vector<std::byte> scratch_;
  Deduplicator deduplicator_;
  std::vector<Batch> batches_;
  std::vector<float> out_, gradient_;
  std::vector<uint32_t> random_slots_;
  std::vector<double> yardstick_, deduplicate_, forward_, backward_;
};

Status CaseBench::open() {
  const uint64_t slots = kTables * shape_.rows;
  auto weights = HostArena::reserve(slots * format_.weight_bytes(), "the bench's weights");
  if (!weights.ok()) return weights.status();
  auto state = HostArena::reserve(slots * format_.state_bytes(), "the bench's state");
  if (!state.ok()) return state.status();
  weights_ = std::move(*weights), state_ = std::move(*state);
  planes_ = {weights_.bytes(), state_.bytes(), format_.weight_bytes(), format_.state_bytes()};
  const InitialRow initial{.format = format_, .seed = 1, .scale = 0.01f};
  parallel_.run(kTables, [&](size_t t) {
    for (uint64_t slot = t * shape_.rows; slot < (t + 1) * shape_.rows; ++slot) {
      initial_row_cpu(initial, make_key(static_cast<uint32_t>(t), slot - t * shape_.rows),
                      planes_.weights + slot * planes_.weight_stride,
                      planes_.state + slot * planes_.state_stride);
    }
  });
  std::mt19937_64 random(1);
  batches_.resize(kBatches);
  for (Batch& batch : batches_) make_batch(random, batch);
  random_slots_.resize(1 << 20);
  for (uint32_t& slot : random_slots_) slot = static_cast<uint32_t>(random() % slots);
  return {};
}

void CaseBench::make_batch(std::mt19937_64& random, Batch& batch) {
  for (uint64_t i = 0; i < shape_.ids(); ++i) {
    batch.ids.push_back(random_row(random, shape_.rows, shape_.c.alpha));
  }
  batch.keys.resize(shape_.ids());
  batch.unique.resize(shape_.ids());
  batch.feature_rows.resize(kTables + 1);
  batch.occurrence_begin.resize(shape_.ids() + 1);
  batch.occurrences.resize(shape_.ids());
  deduplicate(batch);
  for (uint32_t r = 0; r < batch.feature_rows.back(); ++r) {
    const Key key = batch.keys[r];
    batch.slots.push_back(static_cast<Slot>(table_of(key) * shape_.rows + row_of(key)));
  }
}

void CaseBench::deduplicate(Batch& batch) {
  DistinctRows out{0, batch.keys.data(), batch.unique.data(), batch.feature_rows.data()};
  deduplicator_.run({batch.ids.data(), shape_.feature_begin.data(), shape_.table.data(), kTables},
                    out);
  sort_occurrences(batch.unique.data(), shape_.ids(), out.count, batch.occurrence_begin.data(),
                   batch.occurrences.data());
}

void CaseBench::forward(const Batch& batch) {
  const uint64_t stride = uint64_t{kTables} * format_.width;
  parallel_.run(kSamples / kChunk, [&](size_t chunk) {
    for (uint32_t f = 0; f < kTables; ++f) {
      const PooledLookup op{.format = format_,
                            .planes = planes_,
                            .slots = batch.slots.data(),
                            .unique = batch.unique.data(),
                            .offsets = shape_.offsets.data() + f * kSamples,
                            .out = out_.data() + f * format_.width,
                            .out_stride = stride,
                            .bags = kSamples};
      pooled_lookup_cpu(op, chunk * kChunk, (chunk + 1) * kChunk);
    }
  });
}

void CaseBench::backward(const Batch& batch) {
  parallel_.run(kTables, [&](size_t f) {
    const float* part = gradient_.data() + f * format_.width;
    const GradientFeature feature{.first = static_cast<uint32_t>(shape_.feature_begin[f]),
                                  .end = static_cast<uint32_t>(shape_.feature_begin[f + 1]),
                                  .offsets = shape_.offsets.data() + f * kSamples,
                                  .sample = shape_.c.pooling == 1 ? nullptr : shape_.sample.data(),
                                  .parts = &part,
                                  .stride = uint64_t{kTables} * format_.width};
    const UpdateRows op{.format = format_,
                        .planes = planes_,
                        .step = {.learning_rate = 0.01f, .seed = 1},
                        .slots = batch.slots.data(),
                        .keys = batch.keys.data(),
                        .occurrence_begin = batch.occurrence_begin.data(),
                        .occurrences = batch.occurrences.data(),
                        .features = &feature,
                        .feature_count = 1};
    update_rows_cpu(op, batch.feature_rows[f], batch.feature_rows[f + 1]);
  });
}

// The physical limit: as plain as it can be, and unaware of bags, types and instruction sets.
void CaseBench::sum_random_rows() {
  typedef float Four __attribute__((vector_size(16)));
  constexpr size_t kAhead = 24;
  const size_t bytes = format_.weight_bytes(), count = random_slots_.size() / kTables;
  parallel_.run(kTables, [&](size_t task) {
    const uint32_t* slots = random_slots_.data() + task * count;
    Four sum[128 / 4] = {};
    for (size_t i = 0; i + kAhead < count; ++i) {
      const std::byte* ahead = planes_.weights + slots[i + kAhead] * bytes;
      for (size_t b = 0; b < bytes; b += 64) __builtin_prefetch(ahead + b);
      const std::byte* row = planes_.weights + slots[i] * bytes;
      for (size_t b = 0; b < bytes / 16; ++b) {
        Four v;
        std::memcpy(&v, row + b * 16, sizeof v);
        sum[b] += v;
      }
    }
    std::memcpy(out_.data() + task * 128, sum, sizeof sum);
  });
}

void CaseBench::run(double seconds) {
  const auto timed = [&](std::vector<double>& rates, double rows, auto&& work) {
    const auto begin = Clock::now();
    work();
    rates.push_back(rows / std::chrono::duration<double>(Clock::now() - begin).count());
  };
  const double ids = static_cast<double>(shape_.ids());
  const auto begin = Clock::now();
  for (size_t i = 0; Clock::now() - begin < std::chrono::duration<double>(seconds); ++i) {
    Batch& batch = batches_[i % kBatches];
    timed(yardstick_, static_cast<double>(random_slots_.size()), [&] { sum_random_rows(); });
    timed(deduplicate_, ids, [&] { deduplicate(batch); });
    timed(forward_, ids, [&] { forward(batch); });
    timed(backward_, ids, [&] { backward(batch); });
  }
  print();
}

double at(std::vector<double>& values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
}

void CaseBench::print() {
  const Case& c = shape_.c;
  uint64_t distinct = 0;
  for (const Batch& batch : batches_) distinct += batch.feature_rows.back();
  std::printf("{\"bench\": \"kernels\", \"dim\": %u, \"precision\": \"%s\", \"alpha\": %g, ", c.dim,
              c.precision == Precision::kFp32 ? "fp32" : "fp16", c.alpha);
  std::printf("\"pooling\": %u, \"threads\": %d, \"instruction_set\": \"%s\", \"repeats\": %zu, ",
              c.pooling, parallel_.threads(), instruction_set_name(instruction_set()),
              forward_.size());
  std::printf("\"distinct\": %.3f", static_cast<double>(distinct) / (kBatches * shape_.ids()));
  const auto rate = [](const char* name, std::vector<double>& rates) {
    const double median = at(rates, 0.5);
    std::printf(", \"%s_rows_per_s\": %.0f, \"%s_best\": %.0f, \"%s_spread\": %.3f", name, median,
                name, at(rates, 1), name, (at(rates, 0.9) - at(rates, 0.1)) / median);
  };
  rate("memory", yardstick_);
  rate("forward", forward_);
  rate("backward", backward_);
  rate("deduplicate", deduplicate_);
  std::printf(", \"forward_of_memory\": %.3f}\n", at(forward_, 0.5) / at(yardstick_, 0.5));
  std::fflush(stdout);
}

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (i + 1 == argc) return std::nullopt;
    const double value = std::atof(argv[i + 1]);
    if (name == "--threads" && value >= 0) {
      options.threads = static_cast<int>(value);
    } else if (name == "--seconds" && value > 0) {
      options.seconds = value;
    } else if (name == "--rows" && value >= 1 && value < 1e8) {
      options.rows = static_cast<uint64_t>(value);
    } else if (name == "--dim" && value >= 1) {
      options.dim = static_cast<uint32_t>(value);
    } else {
      return std::nullopt;
    }
  }
  return options;
}

}  // namespace

int bench_kernels(int argc, char** argv) {
  const auto options = parse(argc, argv);
  if (!options) {
    const bool asked = argc == 2 && std::string_view(argv[1]) == "--help";
    std::fprintf(
        asked ? stdout : stderr,
        "usage: rowtide-bench kernels [--threads N] [--seconds S] [--rows N] [--dim D]\n"
        "  --threads N  0: one for each core\n"
        "  --seconds S  of each case (4)\n"
        "  --rows N     of each of the 26 tables (200000)\n"
        "  --dim D      only the cases of this width: 16, 64 or 128\n"
        "One JSON line a case: look-ups (forward), row-wise AdaGrad (backward, without\n"
        "deduplication) and deduplication with its sort (one thread) in rows/s, beside\n"
        "the random rows/s that the memory gives: median, best, and (p90 - p10) / median.\n");
    return asked ? 0 : 2;
  }
  Parallel parallel(options->threads);
  for (const Case& c : kCases) {
    if (options->dim != 0 && options->dim != c.dim) continue;
    CaseBench bench(c, *options, parallel);
    if (Status opened = bench.open(); !opened.ok()) {
      std::fprintf(stderr, "%s\n", opened.to_string().c_str());
      return 2;
    }
    bench.run(options->seconds);
  }
  return 0;
}

}  // namespace rowtide
