#pragma once
// record — how rows lie in a segment of the log, byte by byte (format 1).
//
// All numbers are little-endian.  A log file is one page of LogHeader and then segments of equal
// size, one after the other.  A segment:
//
//     offset  bytes
//          0     64  SegmentHeader
//         64      …  records of one type, in slots; see Layout for where slot i lies
//          …      …  zeros
//          …      …  footer, once the segment is sealed: columns, then FooterTrailer at the very
//          end
//
// A record:
//
//     offset  bytes  field
//          0      8  key        table << 48 | row
//          8      4  epoch      the commit that these bytes belong to
//         12      3  heir       of a copy that was superseded when it was made: see kSuperseded
//         15      1  flags      0: no record was written here
//         16      4  checksum   low half of XXH3(bytes 0 to 15, seeded by the use number of the
//                               segment) xor XXH3(payload)
//         20      n  payload    weights, then optimizer state
//
// A record is written whole; a torn or rotted one fails its checksum, and so does one of an earlier
// use of the segment.  Readable only on little-endian machines, which is checked below.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "runtime/base/key.h"

namespace rowtide::storage {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint32_t kFormat = 1;
inline constexpr uint32_t kMostEpoch = (1u << 24) - 1;  // an heir has 24 bits

enum RecordFlags : uint8_t {
  kValue = 1,
  kTombstone = 2,   // reserved: no writer of format 1 sets it
  kSuperseded = 4,  // `heir` is an epoch at or above the newer record's, below the next commit kept
};

struct __attribute__((packed)) RecordHeader {
  uint64_t key;
  uint32_t epoch;
  uint32_t heir : 24;
  uint32_t flags : 8;
  uint32_t checksum;
};
static_assert(sizeof(RecordHeader) == 20, "RecordHeader is on disk: do not change it");
inline constexpr uint32_t kRecordHeaderBytes = sizeof(RecordHeader);

// What there is to know of a record without its payload.
struct RecordName {
  Key key = 0;
  uint32_t epoch = 0;
  uint32_t heir = 0;
  uint8_t flags = 0;  // 0: nothing was written in this slot
};

inline constexpr uint64_t kLogMagic = 0x31474f4c44575452;       // "RTWDLOG1"
inline constexpr uint64_t kSegmentMagic = 0x31474553'44575452;  // "RTWDSEG1"
inline constexpr uint64_t kFooterMagic = 0x31464f45'44575452;   // "RTWDEOF1"

// The first page of each directory's log.
struct LogHeader {
  uint64_t magic = kLogMagic;
  uint32_t format = kFormat;
  uint32_t segment_bytes = 0;
  uint64_t store = 0;      // a random number, the same in all directories of a store
  uint32_t directory = 0;  // this one's number
  uint32_t directory_count = 0;
  uint64_t zero[3] = {};
  uint64_t checksum = 0;  // XXH3 of the 56 bytes before
};
static_assert(sizeof(LogHeader) == 64, "LogHeader is on disk: do not change it");

struct SegmentHeader {
  uint64_t magic = kSegmentMagic;
  uint64_t store = 0;
  uint64_t sequence = 0;  // counts the segments opened in the life of the store
  uint64_t use = 0;       // seeds the checksums; a fresh random number for each opening
  uint32_t type = 0;
  uint32_t payload_bytes = 0;
  uint64_t place = 0;  // directory << 32 | number of the segment in its file
  uint64_t zero = 0;
  uint64_t checksum = 0;
};
static_assert(sizeof(SegmentHeader) == 64, "SegmentHeader is on disk: do not change it");

// The last 64 bytes of a sealed segment.
struct FooterTrailer {
  uint64_t magic = kFooterMagic;
  uint64_t sequence = 0;
  uint64_t use = 0;
  uint64_t place = 0;
  uint32_t type = 0;
  uint32_t payload_bytes = 0;
  uint32_t slot_count = 0;      // slots that the columns name, empty ones included
  uint32_t columns_bytes = 0;   // right before this trailer
  uint32_t greatest_epoch = 0;  // of any record or heir
  uint32_t columns_checksum = 0;
  uint64_t checksum = 0;
};
static_assert(sizeof(FooterTrailer) == 64, "FooterTrailer is on disk: do not change it");

uint64_t checksum_of(const void* bytes, size_t size, uint64_t seed = 0);

// Of a header struct whose last field is its checksum.
template <typename Header>
uint64_t header_checksum(const Header& header) {
  return checksum_of(&header, sizeof header - sizeof header.checksum);
}
template <typename Header>
bool intact(const Header& header) {
  return header.magic == Header{}.magic && header.checksum == header_checksum(header);
}

// Writes the header before a payload that already lies at record + 20, checksum included.
void finish_record(std::byte* record, uint32_t bytes, const RecordName& name, uint64_t use);
// Whether these bytes are a record of this use of the segment.
bool verify_record(const std::byte* record, uint32_t bytes, uint64_t use);
RecordName name_of(const std::byte* record);

}  // namespace rowtide::storage
