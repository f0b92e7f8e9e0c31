#include "storage/segments.h"

#include <algorithm>
#include <cstring>

namespace rowtide::storage {

Result<Segments> Segments::create(const Layout* layout) {
  Segments table;
  auto arena = HostArena::reserve(liveness_bytes(*layout), "the liveness of the cold store");
  if (!arena.ok()) return arena.status();
  table.live_arena_ = std::move(*arena);
  table.live_ = reinterpret_cast<uint8_t*>(table.live_arena_.bytes());
  table.layout_ = layout;
  table.segments_.resize(layout->segment_count);
  table.lists_.assign(kLists, kNoSegment);
  table.live_of_type_.assign(layout->types.size(), 0);
  const size_t directories = layout->segments.size();
  table.free_.resize(directories);
  table.fresh_.resize(directories);
  table.allocated_.resize(directories);
  for (size_t d = 0; d < directories; ++d) {
    table.free_[d].reserve(layout->segments[d]);
    table.fresh_[d].reserve(layout->segments[d]);
  }
  table.build_lists();
  return table;
}

void Segments::add(uint64_t record, uint8_t byte) {
  Segment& segment = segments_[layout_->segment_of(record)];
  live_[record] = byte;
  segment.bits |= byte & ~KeptCommits::kNewest;
  if (byte == 0) return;
  ++segment.live;
  ++live_of_type_[segment.type];
}

void Segments::add_newest(uint64_t record, uint32_t epoch) {
  add(record, KeptCommits::kNewest | commits_.before(epoch));
}

void Segments::supersede(uint64_t record, uint32_t epoch) {
  const uint32_t number = layout_->segment_of(record);
  Segment& segment = segments_[number];
  const uint8_t needed = commits_.before(epoch) & ~live_[record];
  live_[record] = needed;
  segment.bits |= needed;
  if (segment.reads > 0) segment.overtaken = true;
  if (needed == 0) return lost_one(number);
  kept_since_commit_ += layout_->types[segment.type].bytes;
}

void Segments::kill(uint64_t record) {
  const uint32_t number = layout_->segment_of(record);
  if (segments_[number].reads > 0) segments_[number].overtaken = true;
  live_[record] = 0;
  lost_one(number);
}

void Segments::lost_one(uint32_t number) {
  Segment& segment = segments_[number];
  --segment.live;
  --live_of_type_[segment.type];
  if (segment.state != SegmentState::kSealed || list_of(segment) == segment.list) return;
  unlink(number);
  link(number);
}

uint16_t Segments::list_of(const Segment& segment) const {
  return static_cast<uint16_t>(uint64_t{segment.live} * 256 / layout_->types[segment.type].slots);
}

void Segments::link(uint32_t number) {
  Segment& segment = segments_[number];
  segment.list = list_of(segment);
  segment.previous = kNoSegment;
  segment.next = lists_[segment.list];
  if (segment.next != kNoSegment) segments_[segment.next].previous = number;
  lists_[segment.list] = number;
}

void Segments::unlink(uint32_t number) {
  const Segment& segment = segments_[number];
  if (segment.next != kNoSegment) segments_[segment.next].previous = segment.previous;
  (segment.previous != kNoSegment ? segments_[segment.previous].next : lists_[segment.list]) =
      segment.next;
}

void Segments::put_free(uint32_t number) {
  Segment& segment = segments_[number];
  segment.state = SegmentState::kFree;
  free_[layout_->directory_of(number)].push_back(number);
  ++free_allocated_count_;
}

uint32_t Segments::take_free() {
  const auto directories = static_cast<uint32_t>(free_.size());
  for (uint32_t i = 0; i < directories; ++i) {
    const uint32_t directory = (turn_ + i) % directories;
    if (free_[directory].empty()) continue;
    const uint32_t segment = free_[directory].back();
    free_[directory].pop_back();
    --free_allocated_count_;
    turn_ = directory + 1;
    return segment;
  }
  return kNoSegment;
}

uint32_t Segments::free_allocated(uint32_t directory) const {
  return free_[directory].empty() ? kNoSegment : free_[directory].back();
}

void Segments::released(uint32_t number) {
  const uint32_t directory = layout_->directory_of(number);
  free_[directory].pop_back();
  fresh_[directory].push_back(number);
  segments_[number].allocated = false;
  --allocated_[directory];
  --free_allocated_count_;
}

void Segments::open(uint32_t number, uint8_t type) {
  Segment& segment = segments_[number];
  segment.type = type;
  segment.sequence = segment.use = 0;
  segment.state = SegmentState::kOpen;
  segment.live = segment.slot_count = 0;
  segment.bits = 0;
  segment.held = segment.broken = segment.unreadable = segment.overtaken = false;
  std::memset(live_ + layout_->record(number, 0), 0, layout_->types[type].slots);
}

void Segments::seal(uint32_t number) {
  segments_[number].state = SegmentState::kSealed;
  link(number);
}

void Segments::emptied(uint32_t number) {
  unlink(number);
  segments_[number].state = SegmentState::kEmptied;
}

uint32_t Segments::emptiest(uint32_t least_gain_bytes) const {
  uint32_t unreadable = kNoSegment;
  for (uint32_t head : lists_) {
    for (uint32_t number = head; number != kNoSegment; number = segments_[number].next) {
      const Segment& segment = segments_[number];
      const RecordType& type = layout_->types[segment.type];
      // What a full segment of these records would have left, but for its last page.
      const uint64_t needed = uint64_t{segment.live} * type.room(segment.name_bytes) + kPageBytes;
      if (needed + least_gain_bytes > layout_->segment_bytes) continue;
      if (segment.held || segment.broken) continue;
      if (!segment.unreadable) return number;
      if (unreadable == kNoSegment) unreadable = number;
    }
  }
  return unreadable;
}

void Segments::clear() {
  for (uint32_t n = 0; n < count(); ++n) {
    std::memset(live_ + layout_->record(n, 0), 0, segments_[n].slot_count);
    segments_[n] = Segment{.allocated = segments_[n].allocated};
  }
  commits_ = {};
  std::ranges::fill(live_of_type_, 0);
  kept_since_commit_ = 0;
}

void Segments::build_lists() {
  lists_.assign(kLists, kNoSegment);
  free_allocated_count_ = 0;
  for (auto& list : free_) list.clear();
  for (auto& list : fresh_) list.clear();
  allocated_.assign(allocated_.size(), 0);
  std::ranges::fill(live_of_type_, 0);
  for (uint32_t n = count(); n-- > 0;) {  // backwards: lists give their last, the log its first
    const Segment& segment = segments_[n];
    if (segment.live > 0) live_of_type_[segment.type] += segment.live;
    const uint32_t directory = layout_->directory_of(n);
    if (segment.allocated) ++allocated_[directory];
    if (segment.state == SegmentState::kSealed) link(n);
    if (segment.state != SegmentState::kFree) continue;
    (segment.allocated ? free_ : fresh_)[directory].push_back(n);
    if (segment.allocated) ++free_allocated_count_;
  }
}

void Segments::commit_made() {
  kept_since_commit_ = 0;
  for (Segment& segment : segments_) segment.unreadable = false;
}

void Segments::drop_commit(int bit) {
  const auto mask = static_cast<uint8_t>(1 << bit);
  for (uint32_t n = 0; n < count(); ++n) {
    Segment& segment = segments_[n];
    if ((segment.bits & mask) == 0) continue;
    segment.bits &= static_cast<uint8_t>(~mask);
    uint8_t* const bytes = live_ + layout_->record(n, 0);
    for (uint32_t slot = 0; slot < segment.slot_count; ++slot) {
      if ((bytes[slot] & mask) == 0) continue;
      bytes[slot] &= static_cast<uint8_t>(~mask);
      if (bytes[slot] == 0) lost_one(n);
    }
  }
  commits_.remove(bit);
}

uint64_t Segments::live_bytes() const {
  uint64_t bytes = 0;
  for (size_t t = 0; t < live_of_type_.size(); ++t)
    bytes += live_of_type_[t] * layout_->types[t].bytes;
  return bytes;
}

uint64_t Segments::newest_bytes() const {
  uint64_t bytes = 0;
  for (uint32_t n = 0; n < count(); ++n) {
    const Segment& segment = segments_[n];
    for (uint32_t slot = 0; slot < segment.slot_count; ++slot) {
      if (newest(layout_->record(n, slot))) bytes += layout_->types[segment.type].bytes;
    }
  }
  return bytes;
}

}  // namespace rowtide::storage
