#pragma once
// Footer — the names of all records of a sealed segment, in columns.
//
//     5 × { base (8 bytes), width (8 bytes) }   of table, row, epoch, heir, flags
//     5 ×   slot_count values of `width` bytes  value - base
//
// A column is as wide as its range needs, 0 if all values are equal: 5 to 9 bytes a record in all.
// Slots that were skipped have flags 0 and otherwise the values of the first record.  The columns
// end where the FooterTrailer begins; the footer begins on a page of its own.

#include <array>
#include <cstdint>
#include <span>

#include "storage/layout.h"
#include "storage/record.h"

namespace rowtide::storage {

// What the columns of a segment span so far; says how large its footer would be.
class FooterSize {
 public:
  void add(const RecordName& name);
  // Whole pages of a footer for `slots` slots, if `next` were added too.
  uint32_t bytes_with(const RecordName& next, uint32_t slots) const;
  uint32_t bytes(uint32_t slots) const;
  uint8_t name_bytes() const;  // of each slot

 private:
  friend uint32_t encode_footer(std::span<const RecordName>, const FooterSize&, FooterTrailer,
                                std::byte*);
  static constexpr int kColumns = 5;
  bool any_ = false;
  std::array<uint64_t, kColumns> least_{}, most_{};
  uint32_t greatest_epoch_ = 0;
};

// Slots of a segment that can ever be in use, and the most bytes that a footer may take.
uint32_t most_slots(const RecordType& type, uint32_t segment_bytes);
uint32_t most_footer_bytes(uint32_t record_bytes, uint32_t segment_bytes);

// Writes the footer of `names` (one a slot) to the end of `out`, which has size.bytes(count) bytes.
// Fills in the counts and checksums of `trailer`.  Returns the bytes written.
uint32_t encode_footer(std::span<const RecordName> names, const FooterSize& size,
                       FooterTrailer trailer, std::byte* out);

// A footer that was read: `columns` are the columns_bytes before the trailer.
class Footer {
 public:
  // False: the checksum is wrong or the columns are not what the trailer says.
  bool open(const FooterTrailer& trailer, std::span<const std::byte> columns);
  uint32_t slots() const { return slots_; }
  uint8_t name_bytes() const;
  RecordName name(uint32_t slot) const;

 private:
  struct Column {
    uint64_t base = 0;
    uint32_t width = 0;
    const std::byte* values = nullptr;
  };
  uint64_t value(const Column& column, uint32_t slot) const;
  std::array<Column, 5> columns_;
  uint32_t slots_ = 0;
};

}  // namespace rowtide::storage
