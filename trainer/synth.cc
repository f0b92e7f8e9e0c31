#include "trainer/synth.h"

#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "runtime/base/parallel.h"
#include "trainer/disk_error.h"
#include "trainer/metrics.h"
#include "trainer/synth_model.h"
#include "trainer/vector_state.h"

namespace rowtide {
namespace {

constexpr int kSynthVersion = 1;       // raised whenever the same options give other rows
constexpr uint64_t kBlockRows = 8192;  // of one task, and of one gzip member
constexpr size_t kLongestLine = 512;   // 392 characters at most
constexpr size_t kBlocksAThread = 4;   // between two writes, so that threads seldom wait
constexpr uint64_t kMostRows = 1ull << 40;

// A file that is removed unless it is kept.
class OutputFile {
 public:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  ~OutputFile() {
    if (fd_ >= 0) ::close(fd_);
    if (made_ && !kept_) ::unlink(path_.c_str());
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  Status open() {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd_ < 0) {
      return {Code::kInvalid, path_ + ": cannot be created: " + std::strerror(errno)};
    }
    struct stat info;
    made_ = ::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode);  // and no device, say
    return {};
  }
  Status close() { return ::close(std::exchange(fd_, -1)) == 0 ? Status() : failure(); }

  Status write(const char* bytes, size_t size) {
    while (size > 0) {
      const ssize_t n = ::write(fd_, bytes, size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failure();
      bytes += n;
      size -= static_cast<size_t>(n);
      written_ += static_cast<uint64_t>(n);
    }
    return {};
  }

  void keep() { kept_ = true; }

 private:
  Status failure() const {
    return disk_error(path_ + ": cannot be written at byte " + std::to_string(written_), errno);
  }

  std::string path_;
  int fd_ = -1;
  uint64_t written_ = 0;
  bool made_ = false, kept_ = false;
};

char* put_hex(char* out, uint32_t value) {
  for (int shift = 28; shift >= 0; shift -= 4) *out++ = "0123456789abcdef"[value >> shift & 15];
  return out;
}

char* put_line(char* out, const SynthRow& row) {
  *out++ = row.clicked ? '1' : '0';
  for (size_t i = 0; i < row.dense.size(); ++i) {
    *out++ = '\t';
    if (row.dense_present >> i & 1) out = std::to_chars(out, out + 11, row.dense[i]).ptr;
  }
  for (size_t i = 0; i < row.ids.size(); ++i) {
    *out++ = '\t';
    if (row.ids_present >> i & 1) out = put_hex(out, row.ids[i]);
  }
  *out++ = '\n';
  return out;
}

// The rows of one task: their text, or a gzip member of it, and what the truth says of them.
struct Block {
  std::vector<char> text = std::vector<char>(kBlockRows * kLongestLine);
  std::vector<char> packed;
  size_t text_size = 0, packed_size = 0;
  std::vector<float> logits, labels;
  isal_zstream stream;
  std::vector<uint8_t> level_buffer;

  void generate(const PlantedModel& model, uint64_t first, uint64_t end);
  void pack();
};

void Block::generate(const PlantedModel& model, uint64_t first, uint64_t end) {
  logits.clear();
  labels.clear();
  char* out = text.data();
  for (uint64_t number = first; number < end; ++number) {
    const SynthRow row = model.row(number);
    out = put_line(out, row);
    logits.push_back(row.logit);
    labels.push_back(row.clicked ? 1.0f : 0.0f);
  }
  text_size = static_cast<size_t>(out - text.data());
}

void Block::pack() {
  packed.resize(text_size + text_size / 8 + 4096);
  level_buffer.resize(ISAL_DEF_LVL1_DEFAULT);
  isal_deflate_init(&stream);
  stream.level = 1;
  stream.level_buf = level_buffer.data();
  stream.level_buf_size = static_cast<uint32_t>(level_buffer.size());
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<uint8_t*>(text.data());
  stream.avail_in = static_cast<uint32_t>(text_size);
  stream.next_out = reinterpret_cast<uint8_t*>(packed.data());
  stream.avail_out = static_cast<uint32_t>(packed.size());
  ROWTIDE_CHECK(isal_deflate(&stream) == COMP_OK);
  clear_vector_state();
  ROWTIDE_CHECK(stream.internal_state.state == ZSTATE_END);
  packed_size = packed.size() - stream.avail_out;
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

class Synthesizer {
 public:
  explicit Synthesizer(const SynthOptions& options)
      : options_(options),
        gzip_(options.out.ends_with(".gz")),
        parallel_(options.threads),
        model_(options.rows, options.seed, options.scale),
        blocks_(static_cast<size_t>(parallel_.threads()) * kBlocksAThread) {}

  Status write_all() {
    std::vector<std::unique_ptr<OutputFile>> files;  // all are removed if one fails
    for (uint32_t f = 0; f < options_.files; ++f) {
      files.push_back(std::make_unique<OutputFile>(path(f)));
      ROWTIDE_TRY(write_rows(*files.back(), first_row(f), first_row(f + 1)));
      files.push_back(std::make_unique<OutputFile>(path(f) + ".truth.json"));
      ROWTIDE_TRY(write_truth(*files.back(), first_row(f)));
    }
    for (auto& file : files) file->keep();
    return {};
  }

 private:
  uint64_t first_row(uint32_t file) const {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(options_.rows) * file /
                                 options_.files);
  }
  std::string path(uint32_t file) const;
  Status write_rows(OutputFile& file, uint64_t first, uint64_t end);
  Status write_truth(OutputFile& file, uint64_t first);

  const SynthOptions& options_;
  bool gzip_;
  Parallel parallel_;
  PlantedModel model_;
  std::vector<Block> blocks_;
  QualityMeter truth_;
};

// NAME, or NAME-file before the endings.
std::string Synthesizer::path(uint32_t file) const {
  if (options_.files == 1) return options_.out;
  std::string name = options_.out, ending;
  for (const char* known : {".gz", ".tsv"}) {
    if (!name.ends_with(known)) continue;
    name.resize(name.size() - std::strlen(known));
    ending = known + ending;
  }
  return name + "-" + std::to_string(file) + ending;
}

Status Synthesizer::write_rows(OutputFile& file, uint64_t first, uint64_t end) {
  ROWTIDE_TRY(file.open());
  truth_.clear();
  while (first < end) {
    const size_t count =
        std::min<uint64_t>(blocks_.size(), (end - first + kBlockRows - 1) / kBlockRows);
    parallel_.run(count, [&](size_t i) {
      const uint64_t begin = first + i * kBlockRows;
      blocks_[i].generate(model_, begin, std::min(end, begin + kBlockRows));
      if (gzip_) blocks_[i].pack();
    });
    for (size_t i = 0; i < count; ++i) {
      const Block& block = blocks_[i];
      ROWTIDE_TRY(gzip_ ? file.write(block.packed.data(), block.packed_size)
                        : file.write(block.text.data(), block.text_size));
      truth_.add(block.logits, block.labels);
    }
    first = std::min(end, first + count * kBlockRows);
    if (options_.progress) {
      options_.progress(static_cast<double>(first) / static_cast<double>(options_.rows));
    }
  }
  return file.close();
}

Status Synthesizer::write_truth(OutputFile& file, uint64_t first) {
  const Quality quality = truth_.quality();
  const std::string text = "{\n  \"rows\": " + std::to_string(quality.samples) +
                           ",\n  \"first_row\": " + std::to_string(first) +
                           ",\n  \"positives\": " + std::to_string(quality.positives) +
                           ",\n  \"auc\": " + json_number(quality.auc) +
                           ",\n  \"logloss\": " + json_number(quality.logloss) +
                           ",\n  \"ne\": " + json_number(quality.ne) +
                           ",\n  \"all_rows\": " + std::to_string(options_.rows) +
                           ",\n  \"seed\": " + std::to_string(options_.seed) +
                           ",\n  \"scale\": " + json_number(options_.scale) +
                           ",\n  \"version\": " + std::to_string(kSynthVersion) + "\n}\n";
  ROWTIDE_TRY(file.open());
  ROWTIDE_TRY(file.write(text.data(), text.size()));
  return file.close();
}

}  // namespace

Status write_synthetic_criteo(const SynthOptions& options) {
  if (options.rows == 0 || options.rows > kMostRows) {
    return {Code::kInvalid, "synth: rows must be 1 to 2^40, not " + std::to_string(options.rows)};
  }
  if (options.files == 0 || options.files > options.rows) {
    return {Code::kInvalid, "synth: " + std::to_string(options.files) + " files for " +
                                std::to_string(options.rows) + " rows"};
  }
  if (!(options.scale > 0 && options.scale <= 400)) {
    return {Code::kInvalid,
            "synth: scale must be above 0 and at most 400 (ids have 32 bits), not " +
                json_number(options.scale)};
  }
  if (options.threads < 0) {
    return {Code::kInvalid, "synth: " + std::to_string(options.threads) + " threads"};
  }
  return Synthesizer(options).write_all();
}

}  // namespace rowtide
