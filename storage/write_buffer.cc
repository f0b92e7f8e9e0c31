#include "storage/write_buffer.h"

#include <algorithm>
#include <cstring>

namespace rowtide::storage {

Result<std::unique_ptr<WriteBuffer>> WriteBuffer::create(const Layout* layout,
                                                         const LogFiles* files, IoRouter* router) {
  auto buffer = std::make_unique<WriteBuffer>();
  auto arena = HostArena::reserve(predict(*layout), "the write buffer of the cold store");
  if (!arena.ok()) return arena.status();
  buffer->arena_ = std::move(*arena);
  buffer->layout_ = layout;
  buffer->files_ = files;
  buffer->router_ = router;
  buffer->chunk_bytes_ = layout->chunk_bytes;
  buffer->chunks_.resize(layout->chunk_count);
  for (uint32_t i = layout->chunk_count; i-- > 0;) buffer->free_.push_back(i);
  buffer->newest_.assign(layout->segment_count, kNone);
  router->attach(kWrites, buffer.get());
  return buffer;
}

WriteBuffer::Chunk* WriteBuffer::find(uint32_t segment, uint32_t offset) {
  const uint32_t begin = offset - offset % chunk_bytes_;
  for (uint32_t c = newest_[segment]; c != kNone; c = chunks_[c].older) {
    if (chunks_[c].begin == begin) return &chunks_[c];
  }
  return nullptr;
}

bool WriteBuffer::take(uint32_t segment, uint32_t offset, uint32_t bytes) {
  const uint32_t newest = newest_[segment];
  const uint32_t last = (offset + bytes - 1) / chunk_bytes_;
  uint32_t first = offset / chunk_bytes_;
  if (newest != kNone) first = std::max(first, chunks_[newest].begin / chunk_bytes_ + 1);
  if (first > last) return true;
  if (free_.size() < last - first + 1) return false;
  for (uint32_t i = first; i <= last; ++i) {
    const uint32_t chunk = free_.back();
    free_.pop_back();
    chunks_[chunk] = {.segment = segment, .begin = i * chunk_bytes_, .older = newest_[segment]};
    std::memset(arena_.bytes() + uint64_t{chunk} * chunk_bytes_, 0, chunk_bytes_);
    newest_[segment] = chunk;
  }
  return true;
}

std::byte* WriteBuffer::contiguous(uint32_t segment, uint32_t offset, uint32_t bytes) {
  Chunk* const chunk = find(segment, offset);
  if (offset - chunk->begin + bytes > chunk_bytes_) return nullptr;
  return arena_.bytes() + static_cast<uint64_t>(chunk - chunks_.data()) * chunk_bytes_ +
         (offset - chunk->begin);
}

void WriteBuffer::put(uint32_t segment, uint32_t offset, uint32_t bytes, const std::byte* from) {
  while (bytes > 0) {
    Chunk* const chunk = find(segment, offset);
    const auto number = static_cast<uint32_t>(chunk - chunks_.data());
    const uint32_t at = offset - chunk->begin, n = std::min(bytes, chunk_bytes_ - at);
    if (from != nullptr) {
      std::memcpy(arena_.bytes() + uint64_t{number} * chunk_bytes_ + at, from, n);
      from += n;
    }
    chunk->filled = at + n;
    chunk->spills = bytes > n;
    if (chunk->older != kNone) finish(chunk->older);
    if (chunk->filled == chunk_bytes_) due(number, chunk_bytes_);
    offset += n;
    bytes -= n;
  }
}

bool WriteBuffer::get(uint32_t segment, uint32_t offset, uint32_t bytes, std::byte* out) const {
  while (bytes > 0) {
    const Chunk* const chunk = const_cast<WriteBuffer*>(this)->find(segment, offset);
    if (chunk == nullptr) return false;
    const uint32_t at = offset - chunk->begin, n = std::min(bytes, chunk_bytes_ - at);
    std::memcpy(
        out, arena_.bytes() + static_cast<uint64_t>(chunk - chunks_.data()) * chunk_bytes_ + at, n);
    offset += n, bytes -= n, out += n;
  }
  return true;
}

void WriteBuffer::due(uint32_t number, uint32_t target) {
  Chunk& chunk = chunks_[number];
  if (target <= chunk.target) return;
  chunk.target = target;
  if (chunk.in_flight_to == 0 && !chunk.failed) submit(number);
}

void WriteBuffer::submit(uint32_t number) {
  Chunk& chunk = chunks_[number];
  chunk.failed = false;
  chunk.in_flight_to = chunk.target;
  router_->submit(kWrites,
                  files_->request(IoKind::kWrite, chunk.segment, chunk.begin + chunk.written,
                                  arena_.bytes() + uint64_t{number} * chunk_bytes_ + chunk.written,
                                  chunk.target - chunk.written, number));
}

// The chunk takes no more bytes.
void WriteBuffer::finish(uint32_t number) {
  Chunk& chunk = chunks_[number];
  if (chunk.filled == chunk_bytes_) return;
  due(number, page_up(chunk.filled));
  chunk.filled = chunk_bytes_;
}

void WriteBuffer::close(uint32_t segment) {
  if (newest_[segment] == kNone) return;
  finish(newest_[segment]);
  free_written(segment);
}

void WriteBuffer::flush() {
  for (uint32_t c = 0; c < chunks_.size(); ++c) {
    Chunk& chunk = chunks_[c];
    if (chunk.filled == 0) continue;
    if (chunk.filled < chunk_bytes_) due(c, page_up(chunk.filled));
    if (chunk.written == chunk.target) continue;
    if (chunk.awaited == 0) ++awaited_count_;
    chunk.awaited = chunk.target;
  }
}

void WriteBuffer::retry() {
  if (std::exchange(failed_count_, 0) == 0) return;
  for (uint32_t c = 0; c < chunks_.size(); ++c) {
    if (chunks_[c].failed) submit(c);
  }
}

void WriteBuffer::io_done(uint32_t number, int64_t result) {
  Chunk& chunk = chunks_[number];
  const uint32_t asked = std::exchange(chunk.in_flight_to, 0) - chunk.written;
  // Only whole pages count: the rest of a torn page is written again with it.
  const uint32_t moved = result > 0 ? page_down(static_cast<uint32_t>(result)) : 0;
  chunk.written += moved;
  bytes_written_ += moved;
  if (moved == 0) {
    ++failures_;
    ++failed_count_;
    chunk.failed = true;
    error_ = files_->error("write", chunk.segment, chunk.begin + chunk.written, asked, result);
    return;
  }
  if (chunk.awaited > 0 && chunk.written >= chunk.awaited) {
    chunk.awaited = 0;
    --awaited_count_;
  }
  if (chunk.written < chunk.target) return submit(number);
  free_written(chunk.segment);
}

// Frees chunks that are full and written.  Two that share a record stay until both are written, so
// that a record is never half here and half on the disk only.
void WriteBuffer::free_written(uint32_t segment) {
  const auto written = [this](uint32_t c) {
    return chunks_[c].target > 0 && chunks_[c].written == chunks_[c].target;
  };
  bool next_is_written = true;
  for (uint32_t* link = &newest_[segment]; *link != kNone;) {
    const uint32_t number = *link, older = chunks_[number].older;
    Chunk& chunk = chunks_[number];
    const bool shared_is_written = (!chunk.spills || next_is_written) &&
                                   (older == kNone || !chunks_[older].spills || written(older));
    next_is_written = written(number);
    if (next_is_written && chunk.filled == chunk_bytes_ && shared_is_written) {
      *link = older;
      chunk = {};
      free_.push_back(number);
    } else {
      link = &chunk.older;
    }
  }
}

}  // namespace rowtide::storage
