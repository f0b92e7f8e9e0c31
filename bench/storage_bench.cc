#include "bench/storage_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/raw_reads.h"
#include "storage/cold_store.h"
#include "storage/layout.h"

namespace rowtide {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kRound = 0.5;     // seconds of one run, before the other side has its turn
constexpr uint64_t kBatch = 4096;  // rows asked for at once, as a training step does
constexpr uint64_t kAhead = 16;    // index lines fetched ahead of their look-up

struct Options {
  std::string directory = "storage-bench";
  uint64_t bytes = 256 << 20;
  uint32_t payload = 260;
  std::string engine = "auto";
  uint32_t in_flight = 64;
  double seconds = 8;
};

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    const double number = std::atof(value.c_str());
    if (flag == "--directory") {
      options.directory = value;
    } else if (flag == "--bytes" && number > 0) {
      options.bytes = static_cast<uint64_t>(number);
    } else if (flag == "--payload" && number >= 4) {
      options.payload = static_cast<uint32_t>(number);
    } else if (flag == "--engine" &&
               (value == "auto" || value == "io_uring" || value == "threads")) {
      options.engine = value;
    } else if (flag == "--in-flight" && number > 0) {
      options.in_flight = static_cast<uint32_t>(number);
    } else if (flag == "--seconds" && number > 0) {
      options.seconds = number;
    } else {
      return std::nullopt;
    }
  }
  return argc % 2 == 0 ? std::nullopt : std::optional(options);
}

struct Figure {
  std::vector<double> values;

  double at(double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
  }
  double median() { return at(0.5); }
  double spread() { return (at(0.9) - at(0.1)) / median(); }
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {
    store_options_.directories = {{options.directory, options.bytes}};
    store_options_.payload_bytes = {options.payload};
    const uint64_t record = options.payload + storage::kRecordHeaderBytes;
    rows_ = options.bytes / (record <= 512 ? 4096 / (4096 / record) : record) * 6 / 10;
    store_options_.max_rows = rows_;
    store_options_.tables = {{0, rows_}};
    store_options_.reads_in_flight = options.in_flight;
    store_options_.engine = options.engine == "threads"    ? IoEngine::kThreads
                            : options.engine == "io_uring" ? IoEngine::kUring
                                                           : IoEngine::kAuto;
    store_options_.log = [](const std::string& line) {
      std::fprintf(stderr, "%s\n", line.c_str());
    };
  }

  Status run() {
    auto store = ColdStore::open(store_options_);
    if (!store.ok()) return store.status();
    store_ = std::move(*store);
    ROWTIDE_TRY(fill());
    ROWTIDE_TRY(open_raw());
    const Clock::time_point begin = Clock::now();
    while (seconds_since(begin) < options_.seconds || cold_.values.size() < 3) {
      ROWTIDE_TRY(cold_round());
      const auto raw = raw_reads_->run(kRound);
      if (!raw.ok()) return raw.status();
      raw_.values.push_back(*raw);
    }
    print();
    return {};
  }

 private:
  Status put(Key key) {
    for (;;) {
      const Clock::time_point begin = Clock::now();
      auto accepted = store_->append(0, key, 1, record_, {});
      if (!accepted.ok()) return accepted.status();
      if (*accepted) {
        append_ns_ += seconds_since(begin) * 1e9;
        ++appends_;
        return {};
      }
      store_->poll(true, done_);
    }
  }

  Status fill() {
    record_.resize(options_.payload);
    for (Key key = 0; key < rows_; ++key) ROWTIDE_TRY(put(key));
    const ColdStoreStats before = store_->stats();
    for (uint64_t i = 0; i < rows_; ++i) ROWTIDE_TRY(put(random_() % rows_));
    const ColdStoreStats after = store_->stats();
    amplification_ = 1 + static_cast<double>(after.bytes_cleaned - before.bytes_cleaned) /
                             static_cast<double>(after.bytes_appended - before.bytes_appended);
    return store_->commit({.epoch = 1});
  }

  // Raw reads take the pages of a random record's place.
  Status open_raw() {
    const auto layout = storage::Layout::of(store_options_, 0);
    if (!layout.ok()) return layout.status();
    raw_bytes_ = layout->read_bytes;
    out_.resize(kBatch * options_.payload);
    auto raw = RawReads::open(
        options_.directory + "/LOG", store_options_.engine, options_.in_flight, raw_bytes_,
        [type = layout->types[0], segment_bytes = layout->segment_bytes](
            std::mt19937_64& random, uint64_t file_bytes) -> RawReads::Range {
          const uint64_t segments = (file_bytes - storage::kPageBytes) / segment_bytes;
          const auto record = static_cast<uint32_t>(random() % type.slots);
          const uint32_t from = storage::page_down(type.offset_of(record));
          const uint32_t to = storage::page_up(type.offset_of(record) + type.bytes);
          return {storage::kPageBytes + random() % segments * segment_bytes + from, to - from};
        });
    if (!raw.ok()) return raw.status();
    raw_reads_.emplace(std::move(*raw));
    return {};
  }

  Status drain() {
    store_->poll(true, done_);
    for (const auto& done : done_) {
      if (!done.status.ok()) return done.status;
    }
    done_.clear();
    return {};
  }

  Status cold_round() {
    const Clock::time_point begin = Clock::now();
    const uint64_t read_before = store_->stats().reads;
    while (seconds_since(begin) < kRound) {
      for (Key& key : keys_) key = random_() % rows_;
      for (uint64_t i = 0; i < kBatch; ++i) {
        const Key key = keys_[i];
        store_->prefetch(keys_[std::min(i + kAhead, kBatch - 1)]);
        std::byte* const out = out_.data() + i * options_.payload;
        for (;;) {
          const Clock::time_point started = Clock::now();
          const ColdStore::Read read = store_->start_read(key, out, i);
          if (read != ColdStore::Read::kFull) {
            start_ns_ += seconds_since(started) * 1e9;
            ++starts_;
            break;
          }
          ROWTIDE_TRY(drain());
        }
      }
    }
    while (store_->reads_pending() > 0) ROWTIDE_TRY(drain());
    cold_.values.push_back(static_cast<double>(store_->stats().reads - read_before) /
                           seconds_since(begin));
    return {};
  }

  void print() {
    const ColdStoreStats stats = store_->stats();
    std::printf(
        "{\"bench\": \"storage\", \"engine\": \"%s\", \"file_system\": \"%s\", \"payload\": %u, "
        "\"read_bytes\": %u, \"in_flight\": %u, \"rows\": %llu, \"cold_reads_per_s\": %.0f, "
        "\"cold_spread\": %.3f, \"raw_reads_per_s\": %.0f, \"raw_spread\": %.3f, \"ratio\": %.3f, "
        "\"append_ns\": %.0f, \"start_read_ns\": %.0f, \"write_amplification\": %.3f, "
        "\"index_bytes_per_row\": %.2f, \"rounds\": %zu}\n",
        store_->engine_name(), store_->file_system().c_str(), options_.payload, raw_bytes_,
        options_.in_flight, static_cast<unsigned long long>(stats.rows), cold_.median(),
        cold_.spread(), raw_.median(), raw_.spread(), cold_.median() / raw_.median(),
        append_ns_ / static_cast<double>(appends_), start_ns_ / static_cast<double>(starts_),
        amplification_,
        static_cast<double>(ColdStore::predict(store_options_)[0].bytes) /
            static_cast<double>(rows_),
        cold_.values.size());
  }

  Options options_;
  ColdStoreOptions store_options_;
  uint64_t rows_ = 0;
  std::unique_ptr<ColdStore> store_;
  std::vector<std::byte> record_, out_;
  std::vector<ColdStore::Done> done_;
  std::vector<Key> keys_ = std::vector<Key>(kBatch);
  std::mt19937_64 random_{1};
  std::optional<RawReads> raw_reads_;
  uint32_t raw_bytes_ = 0;
  Figure cold_, raw_;
  double append_ns_ = 0, start_ns_ = 0, amplification_ = 0;
  uint64_t appends_ = 0, starts_ = 0;
};

}  // namespace

int bench_storage(int argc, char** argv) {
  const auto options = parse(argc, argv);
  if (!options) {
    std::fprintf(stderr,
                 "usage: rowtide-bench storage [--directory DIR] [--bytes SIZE] [--payload N] "
                 "[--engine auto|io_uring|threads] [--in-flight N] [--seconds S]\n");
    return 2;
  }
  if (std::filesystem::exists(options->directory)) {
    std::fprintf(stderr, "%s is there already; name a new directory\n", options->directory.c_str());
    return 2;
  }
  const Status status = Bench(*options).run();
  std::error_code ignored;  // it was made by this run
  std::filesystem::remove_all(options->directory, ignored);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return status.ok() ? 0 : 4;
}

}  // namespace rowtide
