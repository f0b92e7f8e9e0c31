#pragma once
// Block — a run of slots of one segment, read in one go: by the cleaner, scan() and recovery.

#include <algorithm>
#include <cstdint>

#include "storage/layout.h"

namespace rowtide::storage {

struct Block {
  uint32_t segment = 0;
  uint32_t from = 0, to = 0;      // slots
  uint32_t begin = 0, bytes = 0;  // of the segment: whole pages

  // The slots from the first that is wanted, as far as one block reaches; bytes 0: none is wanted.
  template <typename Wanted>
  static Block next(const Layout& layout, const RecordType& type, uint32_t segment, uint32_t slot,
                    uint32_t slot_count, Wanted&& wanted) {
    while (slot < slot_count && !wanted(slot)) ++slot;
    Block block{.segment = segment, .from = slot, .to = slot};
    if (slot >= slot_count) return block;
    block.begin = page_down(type.offset_of(slot));
    for (; slot < slot_count; ++slot) {
      const uint32_t end = page_up(type.offset_of(slot) + type.bytes) - block.begin;
      if (end > layout.block_bytes) break;
      if (!wanted(slot)) continue;
      block.to = slot + 1;
      block.bytes = end;
    }
    return block;
  }

  // Where a slot's record lies in the bytes that were read.
  const std::byte* record(const RecordType& type, uint32_t slot,
                          const std::byte* bytes_read) const {
    return bytes_read + (type.offset_of(slot) - begin);
  }
};

}  // namespace rowtide::storage
