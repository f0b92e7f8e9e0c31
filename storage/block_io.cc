#include "storage/block_io.h"

#include <algorithm>

namespace rowtide::storage {

uint64_t BlockIo::predict(const Layout& layout) {
  return std::max({layout.footer_bytes, layout.block_bytes, kMostRanges * kPageBytes});
}

Result<std::unique_ptr<BlockIo>> BlockIo::create(const Layout* layout, const LogFiles* files,
                                                 IoRouter* router) {
  auto reader = std::make_unique<BlockIo>();
  auto arena = HostArena::reserve(predict(*layout), "the scan buffer of the cold store");
  if (!arena.ok()) return arena.status();
  reader->arena_ = std::move(*arena);
  reader->files_ = files;
  reader->router_ = router;
  router->attach(kBlocks, reader.get());
  return reader;
}

Status BlockIo::move(IoKind kind, std::span<Range> ranges) {
  kind_ = kind;
  ranges_ = ranges;
  error_ = {};
  for (uint32_t i = 0; i < ranges.size(); ++i) submit(i);
  while (in_flight_ > 0) router_->poll(true);
  return error_;
}

void BlockIo::submit(uint32_t number) {
  const Range& range = ranges_[number];
  ++in_flight_;
  router_->submit(kBlocks,
                  files_->request(kind_, range.segment, range.offset + range.moved,
                                  range.memory + range.moved, range.bytes - range.moved, number));
}

void BlockIo::io_done(uint32_t number, int64_t result) {
  --in_flight_;
  Range& range = ranges_[number];
  const uint32_t moved = result > 0 ? page_down(static_cast<uint32_t>(result)) : 0;
  range.moved += moved;
  if (range.moved == range.bytes) return;
  if (moved > 0) return submit(number);
  if (!range.again) {
    range.again = true;
    return submit(number);
  }
  error_ = files_->error(kind_ == IoKind::kRead ? "read" : "write", range.segment,
                         range.offset + range.moved, range.bytes - range.moved, result);
}

}  // namespace rowtide::storage
