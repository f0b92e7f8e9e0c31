#pragma once
// WriteBuffer — bytes of the log that are accepted and not yet on the disk.
//
// A fixed number of chunks, each the memory of one aligned piece of one segment.  A chunk is
// written when it is full, or up to a page boundary when a flush asks for it; while any of its
// bytes are not written, all of them are read from here.  A write that fails stays and is tried
// again at the next retry().  Pages are written once: a flush pads the page, and the log goes on
// with the next one.
//
// REQUIRES (put): the bytes of a segment come in rising order.

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/host_arena.h"
#include "storage/io_router.h"
#include "storage/log_files.h"

namespace rowtide::storage {

class WriteBuffer final : public IoUser {
 public:
  // Errors: kNoSpace.
  static Result<std::unique_ptr<WriteBuffer>> create(const Layout* layout, const LogFiles* files,
                                                     IoRouter* router);

  // Makes room for a range of a segment.  False: too few chunks are free; nothing was taken.
  bool take(uint32_t segment, uint32_t offset, uint32_t bytes);
  // Where a range lies in memory, or null if it lies in two chunks.  REQUIRES: take() gave it.
  std::byte* contiguous(uint32_t segment, uint32_t offset, uint32_t bytes);
  // The range is filled in, or is to be filled from `from`, if that is not null.
  void put(uint32_t segment, uint32_t offset, uint32_t bytes, const std::byte* from);
  // Copies a range.  False: it is on the disk.
  bool get(uint32_t segment, uint32_t offset, uint32_t bytes, std::byte* out) const;
  // No more bytes of this segment come.
  void close(uint32_t segment);
  // All that is there is to be written, the last page padded.
  void flush();
  // Hands writes that are due to the queue, failed ones too.
  void retry();

  // Whether all that the last flush() found is written.
  bool flushed() const { return awaited_count_ == 0; }
  bool holds(uint32_t segment) const { return newest_[segment] != kNone; }
  uint64_t failures() const { return failures_; }
  const Status& last_error() const { return error_; }
  Status take_error() { return std::exchange(error_, Status()); }
  uint64_t bytes_written() const { return bytes_written_; }
  uint64_t used_bytes() const { return (chunks_.size() - free_.size()) * chunk_bytes_; }
  uint64_t reserved_bytes() const { return arena_.size(); }
  static uint64_t predict(const Layout& layout) {
    return uint64_t{layout.chunk_count} * layout.chunk_bytes;
  }

  void io_done(uint32_t id, int64_t result) override;

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  struct Chunk {
    uint32_t segment = 0, begin = 0;  // which bytes these are
    uint32_t filled = 0;              // of them; a multiple of a page after a flush
    uint32_t written = 0;             // up to here
    uint32_t target = 0;              // is to be written up to here
    uint32_t awaited = 0;             // the last flush() waits up to here; 0: it does not
    uint32_t in_flight_to = 0;        // 0: no write is in flight
    uint32_t older = kNone;           // the chunk of this segment before this one
    bool spills = false;              // its last record goes on in the next chunk
    bool failed = false;
  };

  Chunk* find(uint32_t segment, uint32_t offset);
  void due(uint32_t chunk, uint32_t target);
  void finish(uint32_t chunk);
  void submit(uint32_t chunk);
  void free_written(uint32_t segment);

  const Layout* layout_ = nullptr;
  const LogFiles* files_ = nullptr;
  IoRouter* router_ = nullptr;
  uint32_t chunk_bytes_ = 0;
  HostArena arena_;
  std::vector<Chunk> chunks_;
  std::vector<uint32_t> free_;
  std::vector<uint32_t> newest_;  // chunk of each segment
  uint32_t failed_count_ = 0;     // chunks whose write must be tried again
  uint32_t awaited_count_ = 0;    // chunks that the last flush() waits for
  uint64_t failures_ = 0, bytes_written_ = 0;
  Status error_;
};

}  // namespace rowtide::storage
