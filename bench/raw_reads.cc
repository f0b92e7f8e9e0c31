#include "bench/raw_reads.h"

#include <chrono>
#include <vector>

#include "storage/layout.h"

namespace rowtide {

Result<RawReads> RawReads::open(const std::string& path, IoEngine engine, uint32_t in_flight,
                                uint32_t most_bytes,
                                std::function<Range(std::mt19937_64&, uint64_t)> draw) {
  RawReads raw;
  raw.files_ = storage::posix_file_system();
  bool direct = false;
  auto file = raw.files_->open(path, false, false, &direct);
  if (!file.ok()) return file.status();
  raw.file_ = *file;
  auto size = raw.files_->size(*file);
  if (!size.ok()) return size.status();
  auto queue = storage::make_queue(engine, in_flight, {});
  if (!queue.ok()) return queue.status();
  auto memory = HostArena::reserve(uint64_t{in_flight} * most_bytes, "raw reads");
  if (!memory.ok()) return memory.status();
  raw.queue_ = std::move(*queue);
  raw.memory_ = std::move(*memory);
  raw.draw_ = std::move(draw);
  raw.in_flight_ = in_flight;
  raw.most_bytes_ = most_bytes;
  raw.file_bytes_ = *size;
  return raw;
}

RawReads::~RawReads() {
  queue_.reset();
  if (files_ != nullptr) files_->close(file_);
}

Result<double> RawReads::run(double seconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  std::vector<storage::IoDone> done;
  uint64_t reads = 0, in_flight = 0;
  const auto submit = [&](uint64_t slot) {
    const Range range = draw_(random_, file_bytes_);
    queue_->submit({storage::IoKind::kRead, file_, range.offset,
                    memory_.bytes() + slot * most_bytes_, range.bytes, slot});
    ++in_flight;
  };
  for (uint32_t slot = 0; slot < in_flight_; ++slot) submit(slot);
  while (in_flight > 0) {
    done.clear();
    queue_->poll(true, done);
    in_flight -= done.size();
    for (const auto& ended : done) {
      if (ended.result < 0) return {Code::kIo, "a raw read failed"};
      ++reads;
      if (elapsed() < seconds) submit(ended.ticket);
    }
  }
  return static_cast<double>(reads) / elapsed();
}

RawReads::Range random_page(std::mt19937_64& random, uint64_t file_bytes) {
  const uint64_t pages = file_bytes / storage::kPageBytes;
  return {(1 + random() % (pages - 1)) * storage::kPageBytes, storage::kPageBytes};
}

}  // namespace rowtide
