#include "storage/log.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rowtide::storage {
namespace {

uint64_t scratch_bytes(const Layout& layout) {
  uint32_t bytes = layout.footer_bytes;
  for (const RecordType& type : layout.types) bytes = std::max(bytes, type.bytes);
  return bytes;
}

}  // namespace

Log::Log(const Layout* layout, const LogFiles* files, Segments* segments, WriteBuffer* buffer)
    : layout_(layout), files_(files), segments_(segments), buffer_(buffer) {
  streams_.resize(layout->types.size());
  for (size_t t = 0; t < streams_.size(); ++t) streams_[t].names.reserve(layout->types[t].slots);
  scratch_.resize(scratch_bytes(*layout));
}

uint64_t Log::predict(const Layout& layout) {
  uint64_t bytes = scratch_bytes(layout);
  for (const RecordType& type : layout.types) bytes += type.slots * sizeof(RecordName);
  return bytes;
}

uint64_t Log::reserved_bytes() const {
  uint64_t bytes = scratch_.capacity();
  for (const Stream& stream : streams_) bytes += stream.names.capacity() * sizeof(RecordName);
  return bytes;
}

void Log::start(uint64_t store, uint64_t sequence, uint64_t life) {
  store_ = store;
  sequence_ = sequence;
  life_ = life;
}

bool Log::fits(uint32_t type, const RecordName& name) const {
  const Stream& stream = streams_[type];
  const RecordType& record = layout_->types[type];
  const auto slot = static_cast<uint32_t>(stream.names.size());
  if (slot >= record.slots) return false;
  const uint32_t footer = stream.size.bytes_with(name, slot + 1);
  const uint32_t end = page_up(record.offset_of(slot) + record.bytes);
  return footer <= layout_->footer_bytes && end + footer <= layout_->segment_bytes;
}

Log::Room Log::room(uint32_t type, const RecordName& name, Opening opening) {
  // While the cleaner lives on its reserve, nobody may fill the segments that it opens.
  if (opening == Opening::kBeyondReserve && free_count() < reserve()) return Room::kNoSegment;
  Stream& stream = streams_[type];
  if (stream.segment != kNoSegment && !fits(type, name) && !seal(type)) return Room::kWait;
  if (stream.segment == kNoSegment && !open(type, opening)) return Room::kNoSegment;
  const RecordType& record = layout_->types[type];
  const uint32_t offset = record.offset_of(static_cast<uint32_t>(stream.names.size()));
  const uint32_t from = stream.begun ? offset : 0;
  if (!buffer_->take(stream.segment, from, offset + record.bytes - from)) return Room::kWait;
  return Room::kThere;
}

uint64_t Log::next_record(uint32_t type) const {
  const Stream& stream = streams_[type];
  return layout_->record(stream.segment, static_cast<uint32_t>(stream.names.size()));
}

void Log::write(uint32_t type, const RecordName& name, std::span<const std::byte> weights,
                std::span<const std::byte> state) {
  Stream& stream = streams_[type];
  if (!stream.begun) write_segment_header(type);
  const RecordType& record = layout_->types[type];
  const uint32_t offset = record.offset_of(static_cast<uint32_t>(stream.names.size()));
  std::byte* const there = buffer_->contiguous(stream.segment, offset, record.bytes);
  std::byte* const to = there != nullptr ? there : scratch_.data();
  std::memcpy(to + kRecordHeaderBytes, weights.data(), weights.size());
  if (!state.empty()) {
    std::memcpy(to + kRecordHeaderBytes + weights.size(), state.data(), state.size());
  }
  finish_record(to, record.bytes, name, (*segments_)[stream.segment].use);
  buffer_->put(stream.segment, offset, record.bytes, there != nullptr ? nullptr : to);
  stream.names.push_back(name);
  stream.size.add(name);
  ++stream.records;
  stream.end = offset + record.bytes;
  (*segments_)[stream.segment].slot_count = static_cast<uint32_t>(stream.names.size());
}

// A segment gets its sequence with its first record: a commit that comes between the two must not
// promise a segment that it does not list.
void Log::write_segment_header(uint32_t type) {
  Stream& stream = streams_[type];
  Segment& segment = (*segments_)[stream.segment];
  segment.sequence = sequence_;
  segment.use = mix64(life_ + sequence_);
  ++sequence_;
  SegmentHeader header{.store = store_,
                       .sequence = segment.sequence,
                       .use = segment.use,
                       .type = type,
                       .payload_bytes = layout_->types[type].payload_bytes,
                       .place = layout_->place_of(stream.segment)};
  header.checksum = header_checksum(header);
  buffer_->put(stream.segment, 0, sizeof header, reinterpret_cast<const std::byte*>(&header));
  stream.begun = true;
}

// Up to the last record.  REQUIRES: there is one.
uint32_t Log::used_slots(const Stream& stream) {
  auto slots = static_cast<uint32_t>(stream.names.size());
  while (stream.names[slots - 1].flags == 0) --slots;
  return slots;
}

// Writes the footer and lets the segment go.  False: the write buffer is full.
bool Log::seal(uint32_t type) {
  Stream& stream = streams_[type];
  const uint32_t number = stream.segment;
  const Segment& segment = (*segments_)[number];
  // Of the names that a flush padded the footer may have no room.
  const uint32_t slots = used_slots(stream);
  const uint32_t bytes = stream.size.bytes(slots);
  const uint32_t offset = layout_->segment_bytes - bytes;
  if (!buffer_->take(number, offset, bytes)) return false;
  stream.names.resize(slots);
  const FooterTrailer trailer{.sequence = segment.sequence,
                              .use = segment.use,
                              .place = layout_->place_of(number),
                              .type = type,
                              .payload_bytes = layout_->types[type].payload_bytes};
  encode_footer(stream.names, stream.size, trailer, scratch_.data());
  buffer_->put(number, offset, bytes, scratch_.data());
  buffer_->close(number);
  (*segments_)[number].name_bytes = stream.size.name_bytes();
  segments_->seal(number);
  stream.segment = kNoSegment;
  return true;
}

bool Log::open(uint32_t type, Opening opening) {
  if (opening == Opening::kNever) return false;
  if (opening == Opening::kBeyondReserve) {
    // The cleaner's reserve is on the disk before it is needed: a full one would not give it.
    const auto may = [this](uint32_t directory, uint32_t segment) {
      return may_grow(directory, segment);
    };
    while (segments_->free_allocated_count() <= reserve()) {
      if (!segments_->grow(may)) return false;
    }
  }
  const uint32_t number = segments_->take_free();
  if (number == kNoSegment) return false;
  segments_->open(number, static_cast<uint8_t>(type));
  Stream& stream = streams_[type];
  stream.segment = number;
  stream.begun = false;
  stream.records = 0;
  stream.end = 0;
  stream.size = {};
  stream.names.assign(layout_->types[type].first_slot, RecordName{});
  return true;
}

void Log::flush() {
  buffer_->flush();
  for (size_t type = 0; type < streams_.size(); ++type) {
    Stream& stream = streams_[type];
    if (stream.segment == kNoSegment || stream.end == 0) continue;
    stream.end = page_up(stream.end);
    const RecordType& record = layout_->types[type];
    const uint32_t slot = std::min(record.slot_from(stream.end), record.slots);
    if (slot > stream.names.size()) stream.names.resize(slot);
  }
}

Log::Open Log::open_segment(uint32_t type) const {
  const Stream& stream = streams_[type];
  if (stream.segment == kNoSegment || stream.records == 0) return {};
  return {stream.segment, used_slots(stream), stream.records};
}

uint64_t Log::directory_used(uint32_t directory) const {
  return kPageBytes + uint64_t{segments_->allocated_count(directory)} * layout_->segment_bytes +
         (directory == 0 ? commit_bytes_ : 0);
}

// What the log leaves to the next commit, whose arrays are written before older ones go.
uint64_t Log::kept_free(uint32_t directory) const {
  return directory == 0 ? next_arrays_bytes_ : 0;
}

uint32_t Log::free_count() const {
  uint32_t count = segments_->free_allocated_count();
  if (!growth_.ok()) return count;
  for (uint32_t d = 0; d < files_->count(); ++d) {
    const uint64_t used = directory_used(d) + kept_free(d), budget = (*files_)[d].bytes;
    const uint64_t room = budget > used ? (budget - used) / layout_->segment_bytes : 0;
    count += static_cast<uint32_t>(std::min<uint64_t>(room, segments_->unallocated_count(d)));
  }
  return count;
}

bool Log::may_grow(uint32_t directory, uint32_t segment) {
  const LogFile& log = (*files_)[directory];
  const uint64_t used = directory_used(directory) + kept_free(directory);
  if (!growth_.ok() || used + layout_->segment_bytes > log.bytes) return false;
  const Status status =
      files_->files().allocate(log.file, layout_->file_offset(segment), layout_->segment_bytes);
  if (status.ok()) {
    growth_told_ = false;
    return true;
  }
  growth_ = {status.code(), log.path + ": " + status.message()};
  if (!std::exchange(growth_told_, true)) error_ = growth_;
  return false;
}

Status Log::make_commit_room(uint64_t bytes) {
  const LogFile& log = (*files_)[0];
  while (directory_used(0) + bytes > log.bytes) {
    const uint32_t segment = segments_->free_allocated(0);
    if (segment == kNoSegment) {
      return {Code::kNoSpace, log.directory + ": a commit needs " + std::to_string(bytes) +
                                  " bytes beside the " + std::to_string(directory_used(0)) +
                                  " in use, the budget is " + std::to_string(log.bytes)};
    }
    ROWTIDE_TRY(
        files_->files().release(log.file, layout_->file_offset(segment), layout_->segment_bytes));
    segments_->released(segment);
  }
  return {};
}

uint64_t Log::bytes_used() const {
  uint64_t bytes = 0;
  for (uint32_t d = 0; d < files_->count(); ++d) bytes += directory_used(d);
  return bytes;
}

uint64_t Log::bytes_budget() const {
  uint64_t bytes = 0;
  for (uint32_t d = 0; d < files_->count(); ++d) bytes += (*files_)[d].bytes;
  return bytes;
}

}  // namespace rowtide::storage
