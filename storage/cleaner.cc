#include "storage/cleaner.h"

#include <algorithm>

namespace rowtide::storage {
namespace {

constexpr uint32_t kMostBatch = 8;
constexpr uint32_t kSegmentsPerBatched = 64;  // one more victim a sync for so many segments
// A segment with less to gain is full: copying it would mostly move live records about.
constexpr uint32_t kLeastGain = 32;  // of the segment: 1/32
constexpr uint32_t kMostRounds = 2;  // over all segments, without a record from outside

}  // namespace

Result<std::unique_ptr<Cleaner>> Cleaner::create(const Parts& parts) {
  auto cleaner = std::make_unique<Cleaner>();
  auto arena = HostArena::reserve(parts.layout->block_bytes, "the cleaner of the cold store");
  if (!arena.ok()) return arena.status();
  cleaner->arena_ = std::move(*arena);
  cleaner->parts_ = parts;
  cleaner->batch_ = std::clamp(parts.layout->segment_count / kSegmentsPerBatched, 1u, kMostBatch);
  cleaner->emptied_.reserve(parts.layout->segment_count);
  parts.router->attach(kCleaning, cleaner.get());
  return cleaner;
}

uint32_t Cleaner::least_gain() const {
  return std::max(parts_.layout->segment_bytes / kLeastGain, 2 * kPageBytes);
}

// Each flush pads a page of every type.  In a small log that can be all that a victim gains, so
// that a nearly full one would be copied round and round.
bool Cleaner::fruitless() const { return victims_ > most_victims(); }

uint64_t Cleaner::most_victims() const {
  return uint64_t{kMostRounds} * parts_.layout->segment_count;
}

void Cleaner::step(uint32_t newest_epoch, bool may_free) {
  if (may_free) free_synced();
  while (!reading_) {  // one block at most: the next one must be read first
    if (victim_ == kNoSegment && !choose()) break;
    if (loaded_ && !copy_block(newest_epoch)) break;
    if (victim_ != kNoSegment && !loaded_) next_block();
  }
  const bool short_of_space = parts_.log->free_count() <= parts_.log->reserve();
  const bool enough = emptied_.size() >= batch_ || short_of_space || wanted_ > 0;
  if (!emptied_.empty() && enough && emptied_.back().sync > parts_.syncer->completed()) {
    parts_.syncer->request();
  }
}

void Cleaner::want_more(bool more) { wanted_ = more ? free_soon() : 0; }

bool Cleaner::choose() {
  if (fruitless() || free_soon() > wanted_free()) return false;
  const uint32_t segment = parts_.segments->emptiest(least_gain());
  if (segment == kNoSegment || parts_.buffer->holds(segment)) return false;
  victim_ = segment;
  ++victims_;
  block_ = {.segment = segment};
  return true;
}

// Finds the next block with live records and reads it; or ends with this victim.
void Cleaner::next_block() {
  const Segment& segment = (*parts_.segments)[victim_];
  const RecordType& type = parts_.layout->types[segment.type];
  block_ =
      Block::next(*parts_.layout, type, victim_, block_.to, segment.slot_count, [&](uint32_t slot) {
        return parts_.segments->byte(parts_.layout->record(victim_, slot)) != 0;
      });
  if (block_.bytes > 0) {
    moved_ = 0;
    again_ = false;
    return read_block();
  }
  parts_.segments->emptied(victim_);
  emptied_.push_back({victim_, parts_.syncer->next()});
  victim_ = kNoSegment;
}

void Cleaner::read_block() {
  reading_ = true;
  parts_.router->submit(kCleaning,
                        parts_.files->request(IoKind::kRead, victim_, block_.begin + moved_,
                                              arena_.bytes() + moved_, block_.bytes - moved_, 0));
}

void Cleaner::io_done(uint32_t, int64_t result) {
  reading_ = false;
  const uint32_t moved = result > 0 ? page_down(static_cast<uint32_t>(result)) : 0;
  moved_ += moved;
  if (moved > 0 && moved_ < block_.bytes) return read_block();
  if (moved > 0) {
    loaded_ = true;
  } else if (!again_) {
    again_ = true;
    read_block();
  } else {
    give_up(
        parts_.files->error("read", victim_, block_.begin + moved_, block_.bytes - moved_, result),
        false);
  }
}

// False: the rest must wait for room.
bool Cleaner::copy_block(uint32_t newest_epoch) {
  for (; block_.from < block_.to; ++block_.from) {
    if (!copy(block_.from, newest_epoch)) return false;
  }
  loaded_ = false;
  return true;
}

// Of the reserve one segment at a time: a crash before the next sync leaves victims and their
// copies both half alive, so that what was opened is lost to it.
Log::Opening Cleaner::opening() const {
  const bool spare = emptied_.empty() || parts_.log->free_count() > parts_.log->reserve();
  return spare ? Log::Opening::kAlways : Log::Opening::kNever;
}

bool Cleaner::copy(uint32_t slot, uint32_t newest_epoch) {
  const uint64_t old = parts_.layout->record(victim_, slot);
  const uint8_t byte = parts_.segments->byte(old);
  if (byte == 0) return true;
  const Segment& segment = (*parts_.segments)[victim_];
  const RecordType& type = parts_.layout->types[segment.type];
  const std::byte* const bytes = block_.record(type, slot, arena_.bytes());
  if (!verify_record(bytes, type.bytes, segment.use)) {
    give_up({Code::kCorrupt, parts_.files->name(victim_, type.offset_of(slot)) +
                                 ": a record that lives does not verify"},
            true);
    return false;
  }
  RecordName name = name_of(bytes);
  const bool newest = parts_.segments->newest(old);
  name.flags = newest ? kValue : kValue | kSuperseded;
  name.heir = 0;
  if (!newest) {
    // Between the last commit that needs the record and the next one, every epoch says the same.
    const KeptCommits& commits = parts_.segments->commits();
    const uint32_t next = commits.next_above(commits.greatest(byte));
    name.heir = next != 0 ? next : newest_epoch;
  }
  const Log::Room room = parts_.log->room(segment.type, name, opening());
  if (room == Log::Room::kNoSegment && emptied_.empty()) {  // nor will there be one
    victims_ = most_victims() + 1;
    drop_victim();
  }
  if (room != Log::Room::kThere) return false;
  const uint64_t record = parts_.log->next_record(segment.type);
  parts_.log->write(segment.type, name, {bytes + kRecordHeaderBytes, type.payload_bytes}, {});
  parts_.segments->add(record, byte);
  if (newest) parts_.index->set(parts_.domain->number(name.key), record);
  parts_.segments->kill(old);
  ++records_copied_;
  bytes_copied_ += type.bytes;
  return true;
}

void Cleaner::give_up(Status error, bool broken) {
  error_ = std::move(error);
  Segment& segment = (*parts_.segments)[victim_];
  (broken ? segment.broken : segment.unreadable) = true;
  drop_victim();
}

void Cleaner::drop_victim() {
  victim_ = kNoSegment;
  loaded_ = false;
}

void Cleaner::free_synced() {
  std::erase_if(emptied_, [this](const Emptied& emptied) {
    const bool free = emptied.sync <= parts_.syncer->completed() &&
                      (*parts_.segments)[emptied.segment].reads == 0;
    if (free) parts_.segments->put_free(emptied.segment);
    return free;
  });
}

bool Cleaner::stuck() const {
  return victim_ == kNoSegment && emptied_.empty() &&
         (fruitless() || parts_.segments->emptiest(least_gain()) == kNoSegment);
}

}  // namespace rowtide::storage
