#include "bench/reader_bench.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/byte_source.h"
#include "trainer/criteo_lines.h"
#include "trainer/criteo_reader.h"
#include "trainer/synth.h"
#include "trainer/text_chunks.h"

namespace rowtide {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  uint64_t rows = 400'000;
  int threads = 1;
  double seconds = 10;
};

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  if (argc % 2 == 0) return std::nullopt;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const double value = std::atof(argv[i + 1]);
    if (flag == "--rows" && value >= 1) {
      options.rows = static_cast<uint64_t>(value);
    } else if (flag == "--threads" && value >= 1) {
      options.threads = static_cast<int>(value);
    } else if (flag == "--seconds" && value > 0) {
      options.seconds = value;
    } else {
      return std::nullopt;
    }
  }
  return options;
}

// A folder of its own that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "rowtide-bench-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

double processor_seconds() {
  timespec time;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::vector<ReaderTable> tables() {
  std::vector<ReaderTable> all;
  for (uint64_t i = 1; i <= 26; ++i) all.push_back({"C" + std::to_string(i), 1'000'003 * i});
  return all;
}

// The text of some chunks, parsed again and again.
class ParserAlone {
 public:
  explicit ParserAlone(const std::string& file) {
    constexpr size_t kChunks = 64;  // 16 MiB: more than a core's own caches
    TextChunks chunks({file});
    while (chunks_.size() < kChunks) {
      TextChunk chunk;
      if (!chunks.next(chunk).ok() || chunk.size == 0) break;
      bytes_ += chunk.size;
      chunks_.push_back(std::move(chunk));
    }
  }
  uint64_t run() {
    for (const TextChunk& chunk : chunks_) lines_.parse(chunk, rows_);
    return bytes_;
  }

 private:
  std::vector<TextChunk> chunks_;
  CriteoLines lines_{tables(), DenseTransform::kLog1p, true, OnError::kFail};
  ParsedRows rows_;
  uint64_t bytes_ = 0;
};

uint64_t read_file(const std::string& file, int threads) {
  auto reader = CriteoReader::open({.files = {file}, .tables = tables(), .threads = threads});
  ROWTIDE_CHECK(reader.ok());
  ClickBatch batch;
  do {
    ROWTIDE_CHECK((*reader)->next(batch).ok());
  } while (batch.samples > 0);
  return (*reader)->stats().bytes;
}

uint64_t inflate_alone(const std::string& file) {
  auto source = ByteSource::open(file);
  ROWTIDE_CHECK(source.ok());
  std::vector<char> out(TextChunk::kBytes);
  uint64_t bytes = 0;
  for (;;) {
    const auto size = (*source)->read(out);
    ROWTIDE_CHECK(size.ok());
    if (*size == 0) return bytes;
    bytes += *size;
  }
}

struct Rates {
  std::vector<double> by_clock, by_processor;  // MB/s
};

void print_rates(const char* name, std::vector<double> rates, const char* end) {
  std::sort(rates.begin(), rates.end());
  const auto at = [&](double q) {
    return rates[static_cast<size_t>(q * static_cast<double>(rates.size() - 1))];
  };
  std::printf("\"%s\": {\"median\": %.1f, \"spread\": %.3f}%s", name, at(0.5),
              (at(0.9) - at(0.1)) / at(0.5), end);
}

}  // namespace

int bench_reader(int argc, char** argv) {
  const auto options = parse(argc, argv);
  if (!options) {
    std::fprintf(stderr, "usage: rowtide-bench reader [--rows N] [--threads N] [--seconds S]\n");
    return 2;
  }
  const TemporaryFolder folder;
  const std::string plain = folder.file("plain.tsv"), packed = folder.file("packed.tsv.gz");
  for (const std::string& file : {plain, packed}) {
    const Status status = write_synthetic_criteo({.rows = options->rows, .out = file});
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.to_string().c_str());
      return 3;
    }
  }
  ParserAlone parser(plain);
  std::map<std::string, Rates> rates;
  const auto timed = [&](const char* name, auto&& work) {
    const double processor = processor_seconds();
    const auto clock = Clock::now();
    const double megabytes = static_cast<double>(work()) / 1e6;
    const std::chrono::duration<double> took = Clock::now() - clock;
    rates[name].by_clock.push_back(megabytes / took.count());
    rates[name].by_processor.push_back(megabytes / (processor_seconds() - processor));
  };
  const auto begin = Clock::now();
  do {
    timed("parser alone", [&] { return parser.run(); });
    timed("plain file", [&] { return read_file(plain, options->threads); });
    timed("gzip file", [&] { return read_file(packed, options->threads); });
    timed("igzip alone", [&] { return inflate_alone(packed); });
  } while (Clock::now() - begin < std::chrono::duration<double>(options->seconds));

  std::printf("{\"bench\": \"reader\", \"rows\": %llu, \"threads\": %d, \"rounds\": %zu",
              static_cast<unsigned long long>(options->rows), options->threads,
              rates["parser alone"].by_clock.size());
  for (const auto& [name, rate] : rates) {
    std::printf(", \"%s\": {", name.c_str());
    print_rates("mb_per_s", rate.by_clock, ", ");
    print_rates("mb_per_processor_s", rate.by_processor, "}");
  }
  std::printf("}\n");
  return 0;
}

}  // namespace rowtide
