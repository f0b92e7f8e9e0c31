#include "trainer/criteo_reader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "trainer/criteo_error.h"
#include "trainer/criteo_lines.h"
#include "trainer/text_chunks.h"

namespace rowtide {
namespace {

constexpr uint64_t kUsualLineBytes = 230;  // of Criteo Kaggle, for the depth of the queue

// One place of the ring: a chunk on its way through the threads.
struct Stage {
  TextChunk chunk;
  ParsedRows rows;
  Status error;              // instead of a chunk
  uint64_t passed_rows = 0;  // before the chunk, dropped unread
  bool parsed = false;
};

int thread_count(const CriteoReaderOptions& options) {
  if (options.threads > 0) return options.threads;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

size_t stage_count(const CriteoReaderOptions& options) {
  const uint64_t queued_bytes = options.batches_ahead * options.batch * kUsualLineBytes;
  return static_cast<size_t>(thread_count(options)) + 2 + queued_bytes / TextChunk::kBytes;
}

// One thread reads chunks into a ring of stages, several parse them, and next() takes them in
// order.  A stage belongs to the reading thread, then to one parser, then to next(), in turn.
class RingReader final : public CriteoReader {
 public:
  RingReader(CriteoReaderOptions options, uint64_t total_file_bytes)
      : options_(std::move(options)),
        chunks_(options_.files),
        ring_(stage_count(options_)),
        rows_to_pass_(options_.on_error == OnError::kFail ? options_.first_row : 0) {
    stats_.total_file_bytes = total_file_bytes;
  }

  ~RingReader() override {
    stop();
    for (std::thread& thread : threads_) thread.join();
  }

  // Reads the first chunk, learns from it whether there are labels, and starts the threads.
  Status start();

  Status next(ClickBatch& batch) override;
  bool has_labels() const override { return has_labels_; }
  ReaderStats stats() const override {
    std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  Stage& stage(uint64_t number) { return ring_[number % ring_.size()]; }
  std::string place(const TextChunk& chunk, uint64_t line) const {
    return chunks_.file(chunk.file) + ":" + std::to_string(line) + ":";
  }

  void stop();
  void read_chunks();
  void parse_chunks();
  void read_into(Stage& into);
  Status learn_layout(const TextChunk& chunk);

  Stage& wait_for_stage();
  uint32_t pass_rows(Stage& from, uint64_t count);
  void take_rows(Stage& from, ClickBatch& batch);
  Status leave_stage(Stage& done);
  void skip_line(const Stage& from, const ParsedRows::BadLine& line);
  std::string explain(const Stage& from, const ParsedRows::BadLine& line) const;
  void finish(ClickBatch& batch);

  CriteoReaderOptions options_;
  TextChunks chunks_;
  std::vector<Stage> ring_;
  bool has_labels_ = false;
  std::vector<std::thread> threads_;

  mutable std::mutex mutex_;
  std::condition_variable may_read_, may_parse_, may_take_;
  uint64_t read_ = 0, claimed_ = 0, taken_ = 0;  // stages read, given to parsers, given back
  bool stopped_ = false;
  ReaderStats stats_;

  uint64_t rows_to_pass_;  // of the reading thread: whole chunks before first_row are not parsed

  // Of next().
  uint64_t row_ = 0;            // number of the next row
  uint32_t stage_row_ = 0;      // rows taken of the stage at hand
  size_t stage_bad_ = 0;        // bad lines passed of the stage at hand
  uint64_t pending_skips_ = 0;  // bad lines since the last row
  bool told_of_skips_ = false, ended_ = false;
  Status error_;
};

Status RingReader::start() {
  read_into(ring_[0]);
  ROWTIDE_TRY(ring_[0].error);
  ROWTIDE_TRY(learn_layout(ring_[0].chunk));
  read_ = 1;
  threads_.emplace_back([this] { read_chunks(); });
  for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { parse_chunks(); });
  return {};
}

// The first line decides; with OnError::kSkip the first well-formed one.
Status RingReader::learn_layout(const TextChunk& chunk) {
  std::string_view text(chunk.text.get(), chunk.size);
  Status error;
  for (uint64_t line = chunk.first_line; !text.empty(); ++line) {
    const size_t end = text.find('\n');
    std::string_view first = text.substr(0, end);
    if (first.ends_with('\r')) first.remove_suffix(1);
    const std::string wrong = explain_first_criteo_line(first, has_labels_);
    if (wrong.empty()) return {};
    if (error.ok()) error = {Code::kFormat, place(chunk, line) + wrong};
    if (options_.on_error == OnError::kFail) break;
    text.remove_prefix(end + 1);
  }
  return error;
}

void RingReader::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  may_read_.notify_all();
  may_parse_.notify_all();
}

void RingReader::read_into(Stage& into) {
  into.passed_rows = 0;
  into.parsed = false;
  into.error = chunks_.next(into.chunk);
  if (!into.error.ok()) into.chunk.size = 0;
  std::lock_guard lock(mutex_);
  stats_.bytes += into.chunk.size;
  stats_.file_bytes = chunks_.file_bytes();
}

void RingReader::read_chunks() {
  rows_to_pass_ -= std::min(rows_to_pass_, ring_[0].chunk.lines);
  for (bool more = true; more;) {
    {
      std::unique_lock lock(mutex_);
      may_read_.wait(lock, [&] { return stopped_ || read_ - taken_ < ring_.size(); });
      if (stopped_) return;
    }
    Stage& into = stage(read_);
    read_into(into);
    uint64_t passed = 0;
    while (into.chunk.size > 0 && into.chunk.lines <= rows_to_pass_) {
      passed += into.chunk.lines;
      rows_to_pass_ -= into.chunk.lines;
      read_into(into);
    }
    rows_to_pass_ -= std::min(rows_to_pass_, into.chunk.lines);
    into.passed_rows = passed;
    more = into.chunk.size > 0;
    {
      std::lock_guard lock(mutex_);
      ++read_;
    }
    may_parse_.notify_one();
  }
}

void RingReader::parse_chunks() {
  CriteoLines lines(options_.tables, options_.dense_transform, has_labels_, options_.on_error);
  for (;;) {
    Stage* mine;
    {
      std::unique_lock lock(mutex_);
      may_parse_.wait(lock, [&] { return stopped_ || claimed_ < read_; });
      if (stopped_) return;
      mine = &stage(claimed_++);
    }
    lines.parse(mine->chunk, mine->rows);
    {
      std::lock_guard lock(mutex_);
      mine->parsed = true;
    }
    may_take_.notify_one();
  }
}

// The stage at hand, once it is parsed.
Stage& RingReader::wait_for_stage() {
  Stage& wanted = stage(taken_);
  std::unique_lock lock(mutex_);
  const auto there = [&] { return taken_ != read_ && wanted.parsed; };
  if (!there()) {
    const auto begin = std::chrono::steady_clock::now();
    may_take_.wait(lock, there);
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    stats_.waited_s += waited.count();
  }
  return wanted;
}

Status RingReader::next(ClickBatch& batch) {
  batch.samples = batch.skipped_lines = 0;
  batch.labels.resize(has_labels_ ? options_.batch : 0);
  batch.dense.resize(options_.batch * kDenseFields);
  batch.ids.resize(options_.batch * kIdFields);
  while (error_.ok() && !ended_ && batch.samples < options_.batch && row_ < options_.end_row) {
    Stage& from = wait_for_stage();
    row_ += std::exchange(from.passed_rows, 0);
    if (stage_row_ == from.rows.rows) {
      error_ = leave_stage(from);
    } else if (row_ < options_.first_row) {
      pass_rows(from, options_.first_row - row_);
      pending_skips_ = 0;
    } else {
      take_rows(from, batch);
    }
  }
  ROWTIDE_TRY(error_);
  if (row_ >= options_.end_row) stop();
  if (ended_) batch.skipped_lines += std::exchange(pending_skips_, 0);
  finish(batch);
  return {};
}

// Moves the stage's place on by up to `count` rows and the malformed lines between them.
uint32_t RingReader::pass_rows(Stage& from, uint64_t count) {
  const uint32_t passed =
      static_cast<uint32_t>(std::min<uint64_t>(count, from.rows.rows - stage_row_));
  stage_row_ += passed;
  row_ += passed;
  const auto& bad = from.rows.bad;
  for (; stage_bad_ < bad.size() && bad[stage_bad_].rows_before < stage_row_; ++stage_bad_) {
    skip_line(from, bad[stage_bad_]);
  }
  return passed;
}

// Copies rows of the stage behind those that the batch has.
void RingReader::take_rows(Stage& from, ClickBatch& batch) {
  const uint32_t first = stage_row_;
  if (batch.samples == 0) batch.first_row = row_;
  const uint32_t count =
      pass_rows(from, std::min(options_.batch - batch.samples, options_.end_row - row_));
  batch.skipped_lines += std::exchange(pending_skips_, 0);
  const ParsedRows& rows = from.rows;
  if (has_labels_) {
    std::copy_n(&rows.labels[first], count, &batch.labels[batch.samples]);
  }
  std::copy_n(&rows.dense[size_t{first} * kDenseFields], size_t{count} * kDenseFields,
              &batch.dense[batch.samples * kDenseFields]);
  for (size_t f = 0; f < kIdFields; ++f) {
    std::copy_n(&rows.ids[f * ParsedRows::kMaxRows + first], count,
                &batch.ids[f * options_.batch + batch.samples]);
  }
  batch.samples += count;
}

// Called when all rows of the stage are taken and more are wanted.
Status RingReader::leave_stage(Stage& done) {
  ROWTIDE_TRY(done.error);
  const auto& bad = done.rows.bad;
  if (options_.on_error == OnError::kFail && !bad.empty()) {
    return {Code::kFormat, explain(done, bad.front())};
  }
  for (; stage_bad_ < bad.size(); ++stage_bad_) skip_line(done, bad[stage_bad_]);
  ended_ = done.chunk.size == 0;
  if (ended_) return {};
  stage_row_ = 0;
  stage_bad_ = 0;
  {
    std::lock_guard lock(mutex_);
    ++taken_;
  }
  may_read_.notify_one();
  return {};
}

void RingReader::skip_line(const Stage& from, const ParsedRows::BadLine& line) {
  ++pending_skips_;
  if (std::exchange(told_of_skips_, true) || !options_.log) return;
  options_.log("skipped " + explain(from, line) + "; further malformed lines are only counted");
}

std::string RingReader::explain(const Stage& from, const ParsedRows::BadLine& line) const {
  const std::string wrong = explain_criteo_line(line.text, has_labels_);
  ROWTIDE_CHECK(!wrong.empty());
  return place(from.chunk, line.line) + wrong;
}

// Gives a batch its offsets, and closes the gaps between the features of a short one.
void RingReader::finish(ClickBatch& batch) {
  const uint64_t samples = batch.samples;
  if (samples < options_.batch) {
    for (size_t f = 1; f < kIdFields; ++f) {
      std::copy_n(&batch.ids[f * options_.batch], samples, &batch.ids[f * samples]);
    }
    batch.labels.resize(has_labels_ ? samples : 0);
    batch.dense.resize(samples * kDenseFields);
    batch.ids.resize(samples * kIdFields);
  }
  if (samples == 0) batch.first_row = row_;
  batch.offsets.resize(samples * kIdFields + 1);
  std::iota(batch.offsets.begin(), batch.offsets.end(), int64_t{0});
  std::lock_guard lock(mutex_);
  stats_.rows += samples;
  stats_.skipped_lines += batch.skipped_lines;
}

Status check_options(const CriteoReaderOptions& options) {
  if (options.files.empty()) return {Code::kInvalid, "no files to read"};
  if (options.batch == 0) return {Code::kInvalid, "a batch of 0 samples"};
  if (options.threads < 0) {
    return {Code::kInvalid, std::to_string(options.threads) + " threads to parse with"};
  }
  if (options.tables.size() != kIdFields) {
    return {Code::kInvalid, "Criteo has 26 categorical fields; there are tables for " +
                                std::to_string(options.tables.size())};
  }
  for (const ReaderTable& table : options.tables) {
    if (table.rows == 0) return {Code::kInvalid, "table " + table.name + " has no rows"};
  }
  return {};
}

Result<uint64_t> check_files(const std::vector<std::string>& files) {
  uint64_t total = 0;
  for (const std::string& file : files) {
    const auto bytes = check_readable(file);
    if (!bytes.ok()) return bytes.status();
    total += *bytes;
  }
  return total;
}

Result<uint64_t> count_lines(const std::vector<std::string>& files) {
  const auto total = check_files(files);
  if (!total.ok()) return total.status();
  TextChunks chunks(files);
  TextChunk chunk;
  uint64_t lines = 0;
  do {
    ROWTIDE_TRY(chunks.next(chunk));
    lines += chunk.lines;
  } while (chunk.size > 0);
  return lines;
}

}  // namespace

Result<std::unique_ptr<CriteoReader>> CriteoReader::open(CriteoReaderOptions options) {
  ROWTIDE_TRY(check_options(options));
  const auto total = check_files(options.files);
  if (!total.ok()) return total.status();
  options.threads = thread_count(options);
  auto reader = std::make_unique<RingReader>(std::move(options), *total);
  ROWTIDE_TRY(reader->start());
  return std::unique_ptr<CriteoReader>(std::move(reader));
}

uint64_t CriteoReader::predict_bytes(const CriteoReaderOptions& options) {
  constexpr uint64_t kRowBytes = sizeof(float) * (1 + kDenseFields) + sizeof(int64_t) * kIdFields;
  constexpr uint64_t kStageBytes =
      TextChunk::kBytes + TextChunk::kBytes / kUsualLineBytes * kRowBytes;
  constexpr uint64_t kIndexBytes = TextChunk::kBytes / kUsualLineBytes * 40 * sizeof(uint32_t);
  const uint64_t parsers = static_cast<uint64_t>(thread_count(options));
  constexpr uint64_t kSourceBytes =
      3 * TextChunk::kBytes;  // compressed input, window, carried text
  return stage_count(options) * kStageBytes + parsers * kIndexBytes + kSourceBytes;
}

// Which lines are rows is known without parsing only if all are.
Result<uint64_t> count_criteo_rows(CriteoReaderOptions options) {
  if (options.on_error == OnError::kFail) return count_lines(options.files);
  options.first_row = options.end_row = ~uint64_t{0};
  auto reader = CriteoReader::open(std::move(options));
  if (!reader.ok()) return reader.status();
  ClickBatch none;
  ROWTIDE_TRY((*reader)->next(none));
  return none.first_row;
}

}  // namespace rowtide
