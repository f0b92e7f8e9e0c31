// Sequential passes of the LogStore: scan(), and a reader's new look after records have moved.

#include "storage/block.h"
#include "storage/log_store.h"

namespace rowtide::storage {

Status LogStore::scan(const Visit& visit, uint64_t* skipped) {
  std::vector<std::byte> record;
  Status status = options_.read_only ? look_again() : Status();
  for (uint32_t n = 0; n < segments_->count() && status.ok(); ++n) {
    if ((*segments_)[n].live > 0) status = scan_segment(n, record, visit, skipped);
  }
  if (options_.read_only) store_files_.end_scan();
  return status;
}

Status LogStore::scan_segment(uint32_t n, std::vector<std::byte>& buffered, const Visit& visit,
                              uint64_t* skipped) {
  const Segment& segment = (*segments_)[n];
  const RecordType& type = layout_.types[segment.type];
  const auto newest = [&](uint32_t slot) { return segments_->newest(layout_.record(n, slot)); };
  buffered.resize(type.bytes);
  Block block;
  uint32_t read_again_for = ~0u;
  for (uint32_t slot = type.first_slot;; slot = block.to) {
    block = Block::next(layout_, type, n, slot, segment.slot_count, newest);
    if (block.bytes == 0) return {};
    const BlockIo::Range range{n, block.begin, block.bytes, blocks_->memory()};
    if (Status read = blocks_->read(range); !read.ok()) {
      if (skipped == nullptr) return read;
      for (slot = block.from; slot < block.to; ++slot) *skipped += newest(slot);
      continue;
    }
    for (slot = block.from; slot < block.to; ++slot) {
      if (!newest(slot)) continue;
      const std::byte* record = block.record(type, slot, range.memory);
      const uint32_t offset = type.offset_of(slot);
      if (buffer_->get(n, offset, type.bytes, buffered.data())) record = buffered.data();
      if (verify_record(record, type.bytes, segment.use)) {
        ROWTIDE_TRY(visit(name_of(record).key, segment.type,
                          {record + kRecordHeaderBytes, type.payload_bytes}));
      } else if (std::exchange(read_again_for, slot) != slot) {
        ROWTIDE_TRY(blocks_->read(range));  // it may have left the buffer after the first read
        --slot;
      } else if (skipped != nullptr) {
        ++*skipped;
      } else {
        return {Code::kCorrupt, files_->name(n, offset) + ": a newest record does not verify"};
      }
    }
  }
}

// The writer has cleaned segments since this reader opened: finds its commit's records anew.
void LogStore::look_up_moved() {
  reads_->look_up_moved(look_again());
  store_files_.end_scan();
}

// As when the store was opened; until end_scan() no record moves.
Status LogStore::look_again() {
  while (router_->in_flight() > 0) router_->poll(true);  // reads know segments as they were
  store_files_.begin_scan();
  ROWTIDE_TRY(store_files_.read_manifest_again());
  return recover();
}

}  // namespace rowtide::storage
