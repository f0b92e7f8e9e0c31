#pragma once
// Log — appends records to segments, one open segment for each type.
//
// New records and the cleaner's copies of a type share its open segment, so that of two copies of
// one key that were newest when they were written, the one in the later place is newer.  Recovery
// stands on that.  (A copy of a superseded record says so in its header.)
//
// It knows space: budgets, growth of the files, the reserve that only the cleaner may take.

#include <cstdint>
#include <span>
#include <vector>

#include "storage/footer.h"
#include "storage/log_files.h"
#include "storage/segments.h"
#include "storage/write_buffer.h"

namespace rowtide::storage {

class Log {
 public:
  Log(const Layout* layout, const LogFiles* files, Segments* segments, WriteBuffer* buffer);

  enum class Room {
    kThere,      // the next write() of this name will do
    kWait,       // the write buffer is full
    kNoSegment,  // no segment is free for this caller
  };
  // Who may open a segment: callers, beyond the reserve; the cleaner, always or not now.
  enum class Opening { kBeyondReserve, kAlways, kNever };
  Room room(uint32_t type, const RecordName& name, Opening opening);
  // The number that the next record of the type gets.  REQUIRES (both): room() said kThere.
  uint64_t next_record(uint32_t type) const;
  void write(uint32_t type, const RecordName& name, std::span<const std::byte> weights,
             std::span<const std::byte> state);

  // All that was written is to reach the files; the log goes on at the next page.
  void flush();

  // Segments that can be opened now, by the cleaner; and how many of them only it may open.
  uint32_t free_count() const;
  uint32_t reserve() const { return static_cast<uint32_t>(streams_.size()) + 2; }
  // The open segment of a type, the slots up to its last record, and its records; kNoSegment: none.
  struct Open {
    uint32_t segment = kNoSegment, slots = 0, records = 0;
  };
  Open open_segment(uint32_t type) const;

  uint64_t sequence() const { return sequence_; }  // of the next segment to open
  // `life` makes the checksums of this process's segments differ from those of any other.
  void start(uint64_t store, uint64_t sequence, uint64_t life);

  // The room that commits take in the first directory, beside the log, and what the arrays of the
  // next one are expected to take.
  uint64_t commit_bytes() const { return commit_bytes_; }
  uint64_t next_arrays_bytes() const { return next_arrays_bytes_; }
  void set_commit_bytes(uint64_t bytes, uint64_t next_arrays_bytes) {
    commit_bytes_ = bytes;
    next_arrays_bytes_ = next_arrays_bytes;
  }
  // Makes room for so many more, by giving free segments back.  Errors: kNoSpace, kIo.
  Status make_commit_room(uint64_t bytes);

  // Why the disk gave no room for one more segment; it is asked again after try_disk_again().
  void try_disk_again() { growth_ = {}; }
  const Status& growth() const { return growth_; }
  Status take_error() { return std::exchange(error_, Status()); }

  uint64_t bytes_used() const;
  uint64_t bytes_budget() const;
  uint64_t reserved_bytes() const;
  static uint64_t predict(const Layout& layout);

 private:
  struct Stream {
    uint32_t segment = kNoSegment;
    bool begun = false;  // the segment's header is in the buffer
    uint32_t records = 0;
    uint32_t end = 0;  // the byte after the last record, or after a flush the next page
    FooterSize size;
    std::vector<RecordName> names;  // one for each slot so far
  };

  bool fits(uint32_t type, const RecordName& name) const;
  static uint32_t used_slots(const Stream& stream);
  bool seal(uint32_t type);
  bool open(uint32_t type, Opening opening);
  bool may_grow(uint32_t directory, uint32_t segment);
  uint64_t directory_used(uint32_t directory) const;
  uint64_t kept_free(uint32_t directory) const;
  void write_segment_header(uint32_t type);

  const Layout* layout_;
  const LogFiles* files_;
  Segments* segments_;
  WriteBuffer* buffer_;
  std::vector<Stream> streams_;     // by type
  std::vector<std::byte> scratch_;  // a footer, or a record that lies in two chunks
  uint64_t store_ = 0, sequence_ = 1, life_ = 0;
  uint64_t commit_bytes_ = 0, next_arrays_bytes_ = 0;
  Status growth_;
  bool growth_told_ = false;  // it has been an error since the last growth
  Status error_;              // as it was last, until it is told
};

}  // namespace rowtide::storage
