#pragma once
// Layout — where things lie: segments in files, slots in segments; all sizes of a store.
//
// Slot i of a segment of records of b bytes (header included):
//     b <= 512   page i / n, byte (i mod n) * b of it, n = 4096 / b: never across a page.
//                The first slots of page 0 lie under the segment's header and stay empty
//     b  > 512   byte 64 + i * b of the segment: contiguous, read by one I/O
// A record's number is its segment's number * stride + its slot.

#include <cstdint>
#include <vector>

#include "storage/cold_store.h"
#include "storage/io_queue.h"
#include "storage/record.h"

namespace rowtide::storage {

inline constexpr uint32_t kSmallRecordBytes = 512;

struct RecordType {
  uint32_t payload_bytes = 0;
  uint32_t bytes = 0;       // with the header
  uint32_t per_page = 0;    // 0: large records
  uint32_t first_slot = 0;  // after the segment's header
  uint32_t slots = 0;       // that a segment of this type has at most

  uint32_t offset_of(uint32_t slot) const {
    if (per_page == 0) return static_cast<uint32_t>(sizeof(SegmentHeader)) + slot * bytes;
    return slot / per_page * kPageBytes + slot % per_page * bytes;
  }
  // Bytes of a segment that a record takes, with so many of its name in the footer.
  uint32_t room(uint32_t name_bytes) const {
    return (per_page == 0 ? bytes : kPageBytes / per_page) + name_bytes;
  }
  // The first slot that begins at or after a byte of the segment.
  uint32_t slot_from(uint32_t offset) const;
};

struct Layout {
  uint32_t segment_bytes = 0;
  std::vector<RecordType> types;
  std::vector<uint32_t> segments;  // of each directory; numbered one directory after the other
  uint32_t segment_count = 0;
  uint32_t stride = 0;        // record numbers of a segment: the most slots of any type
  uint64_t rows = 0;          // that the index holds: min(max_rows, records that fit)
  uint32_t footer_bytes = 0;  // the most that one footer takes
  uint32_t chunk_bytes = 0, chunk_count = 0;  // of the write buffer
  uint32_t read_bytes = 0;                    // of one read: the pages of the largest record
  uint32_t block_bytes = 0;                   // of one read of the cleaner or of scan()

  // `segment_bytes` of a store that exists, 0: chosen here.  Errors: kInvalid, kNoSpace.
  static Result<Layout> of(const ColdStoreOptions& options, uint32_t segment_bytes);

  // The bytes of disk with which of() succeeds, however the directories share them.
  // REQUIRES: of() says nothing but kNoSpace.
  static uint64_t least_bytes(const ColdStoreOptions& options, uint32_t segment_bytes);

  uint64_t record_count() const { return uint64_t{segment_count} * stride; }
  uint64_t record(uint32_t segment, uint32_t slot) const {
    return uint64_t{segment} * stride + slot;
  }
  uint32_t segment_of(uint64_t record) const { return static_cast<uint32_t>(record / stride); }
  uint32_t slot_of(uint64_t record) const { return static_cast<uint32_t>(record % stride); }

  uint32_t directory_of(uint32_t segment) const;
  uint32_t number_in_directory(uint32_t segment) const;
  uint64_t file_offset(uint32_t segment) const {
    return kPageBytes + uint64_t{number_in_directory(segment)} * segment_bytes;
  }
  uint64_t place_of(uint32_t segment) const {
    return uint64_t{directory_of(segment)} << 32 | number_in_directory(segment);
  }
};

constexpr uint32_t page_down(uint32_t bytes) { return bytes & ~(kPageBytes - 1); }
constexpr uint32_t page_up(uint32_t bytes) { return page_down(bytes + kPageBytes - 1); }

}  // namespace rowtide::storage
