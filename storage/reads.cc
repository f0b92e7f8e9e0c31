#include "storage/reads.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace rowtide::storage {
namespace {

std::string row_name(Key key) {
  return "table " + std::to_string(table_of(key)) + ", row " + std::to_string(row_of(key));
}

uint64_t bucket_count(uint32_t reads_in_flight) {
  return 2 * std::bit_ceil(uint64_t{reads_in_flight});
}

bool is_record(const std::byte* record, uint32_t bytes, uint64_t use, Key key) {
  return verify_record(record, bytes, use) && name_of(record).key == key;
}

}  // namespace

Result<std::unique_ptr<Reads>> Reads::create(const Parts& parts, uint32_t reads_in_flight) {
  auto reads = std::make_unique<Reads>();
  auto arena = HostArena::reserve(uint64_t{reads_in_flight} * parts.layout->read_bytes,
                                  "the read buffers of the cold store");
  if (!arena.ok()) return arena.status();
  reads->arena_ = std::move(*arena);
  reads->parts_ = parts;
  reads->ops_.resize(reads_in_flight);
  reads->waiters_.resize(uint64_t{reads_in_flight} * kWaitersPerRead);
  reads->buckets_.assign(bucket_count(reads_in_flight), kNone);
  reads->ended_.reserve(reads->waiters_.size());
  for (uint32_t i = 0; i < reads->ops_.size(); ++i) {
    reads->ops_[i].next = std::exchange(reads->free_op_, i);
  }
  for (uint32_t i = 0; i < reads->waiters_.size(); ++i) {
    reads->waiters_[i].next = std::exchange(reads->free_waiter_, i);
  }
  parts.router->attach(kReads, reads.get());
  return reads;
}

uint64_t Reads::predict(const Layout& layout, uint32_t reads_in_flight) {
  return uint64_t{reads_in_flight} *
             (layout.read_bytes + sizeof(Op) +
              kWaitersPerRead * (sizeof(Waiter) + sizeof(ColdStore::Done))) +
         bucket_count(reads_in_flight) * sizeof(uint32_t);
}

uint64_t Reads::reserved_bytes() const {
  return arena_.size() + ops_.capacity() * sizeof(Op) + waiters_.capacity() * sizeof(Waiter) +
         buckets_.capacity() * sizeof(uint32_t) + ended_.capacity() * sizeof(ColdStore::Done);
}

uint32_t& Reads::bucket(uint32_t segment, uint32_t begin) {
  return buckets_[mix64(uint64_t{segment} << 32 | begin) & (buckets_.size() - 1)];
}

bool Reads::read_from_buffer(uint64_t record, std::byte* out) const {
  const uint32_t segment = parts_.layout->segment_of(record);
  if (!parts_.buffer->holds(segment)) return false;
  const RecordType& type = parts_.layout->types[(*parts_.segments)[segment].type];
  return parts_.buffer->get(segment,
                            type.offset_of(parts_.layout->slot_of(record)) + kRecordHeaderBytes,
                            type.payload_bytes, out);
}

ColdStore::Read Reads::start(uint64_t record, Key key, std::byte* out, uint64_t ticket) {
  if (read_from_buffer(record, out)) {
    ++buffered_;
    return ColdStore::Read::kDone;
  }
  if (free_waiter_ == kNone) return ColdStore::Read::kFull;
  const uint32_t waiter = free_waiter_;
  const uint32_t next_free = waiters_[waiter].next;
  waiters_[waiter] = {record, key, out, ticket, next_free, false};
  if (!join_or_read(waiter)) return ColdStore::Read::kFull;
  free_waiter_ = next_free;
  ++pending_;
  return ColdStore::Read::kStarted;
}

// False: no read is free.
bool Reads::join_or_read(uint32_t number) {
  Waiter& waiter = waiters_[number];
  const uint32_t segment = parts_.layout->segment_of(waiter.record);
  const RecordType& type = parts_.layout->types[(*parts_.segments)[segment].type];
  const uint32_t offset = type.offset_of(parts_.layout->slot_of(waiter.record));
  const uint32_t begin = page_down(offset), end = page_up(offset + type.bytes);
  uint32_t& head = bucket(segment, begin);
  for (uint32_t op = head; op != kNone; op = ops_[op].next) {
    Op& it = ops_[op];
    if (it.segment != segment || it.begin != begin || begin + it.bytes < end) continue;
    waiter.next = std::exchange(it.waiters, number);
    ++joined_;
    return true;
  }
  if (free_op_ == kNone) return false;
  const uint32_t op = free_op_;
  free_op_ = ops_[op].next;
  waiter.next = kNone;
  ops_[op] = {segment, begin, end - begin, 0, number, head, false};
  head = op;
  ++(*parts_.segments)[segment].reads;
  submit(op);
  return true;
}

void Reads::submit(uint32_t number) {
  const Op& op = ops_[number];
  ++device_reads_;
  device_bytes_ += op.bytes - op.moved;
  parts_.router->submit(
      kReads, parts_.files->request(IoKind::kRead, op.segment, op.begin + op.moved,
                                    memory(number) + op.moved, op.bytes - op.moved, number));
}

const std::byte* Reads::record_in(const Op& op, const Waiter& waiter) const {
  const RecordType& type = parts_.layout->types[(*parts_.segments)[op.segment].type];
  return memory(static_cast<uint32_t>(&op - ops_.data())) +
         (type.offset_of(parts_.layout->slot_of(waiter.record)) - op.begin);
}

bool Reads::verifies(const Op& op) const {
  const Segment& segment = (*parts_.segments)[op.segment];
  const uint32_t bytes = parts_.layout->types[segment.type].bytes;
  for (uint32_t w = op.waiters; w != kNone; w = waiters_[w].next) {
    const std::byte* const record = record_in(op, waiters_[w]);
    if (!is_record(record, bytes, segment.use, waiters_[w].key)) return false;
  }
  return true;
}

void Reads::io_ending(uint32_t number) {
  constexpr uint32_t kLine = 64, kMostLines = 8;
  const Op& op = ops_[number];
  const std::byte* const record = record_in(op, waiters_[op.waiters]);
  const uint32_t bytes = parts_.layout->types[(*parts_.segments)[op.segment].type].bytes;
  for (uint32_t at = 0; at < std::min(bytes, kMostLines * kLine); at += kLine) {
    __builtin_prefetch(record + at);
  }
}

void Reads::io_done(uint32_t number, int64_t result) {
  Op& op = ops_[number];
  // O_DIRECT goes on from whole pages only.
  if (result > 0) op.moved += page_down(static_cast<uint32_t>(result));
  const bool failed = result <= 0 || page_down(static_cast<uint32_t>(result)) == 0;
  if (!failed && op.moved < op.bytes) return submit(number);
  const bool verified = !failed && verifies(op);
  if (verified) return finish(number, {}, true);
  if (!op.again) {
    op.again = true;
    op.moved = 0;
    return submit(number);
  }
  finish(number,
         failed ? parts_.files->error("read", op.segment, op.begin + op.moved, op.bytes - op.moved,
                                      result)
                : Status(),
         false);
}

// Gives each waiter its bytes or the error.
void Reads::finish(uint32_t number, const Status& error, bool verified) {
  Op& op = ops_[number];
  uint32_t* link = &bucket(op.segment, op.begin);
  while (*link != number) link = &ops_[*link].next;
  *link = op.next;
  Segment& segment = (*parts_.segments)[op.segment];
  const bool overtaken = segment.overtaken;
  for (uint32_t w = op.waiters, next = kNone; w != kNone; w = next) {
    Waiter& waiter = waiters_[w];
    next = waiter.next;
    if (overtaken && parts_.index->find(parts_.domain->number(waiter.key)) != waiter.record) {
      waiter.next = std::exchange(overtaken_, w);
    } else if (!error.ok()) {
      end(w, {error.code(), error.message() + " (" + row_name(waiter.key) + ")"});
    } else {
      deliver(w, op, verified);
    }
  }
  if (segment.reads > 0) --segment.reads;
  if (segment.reads == 0) segment.overtaken = false;
  op.next = std::exchange(free_op_, number);
}

void Reads::deliver(uint32_t number, const Op& op, bool verified) {
  Waiter& waiter = waiters_[number];
  const Segment& segment = (*parts_.segments)[op.segment];
  const RecordType& type = parts_.layout->types[segment.type];
  const std::byte* const record = record_in(op, waiter);
  if (verified || is_record(record, type.bytes, segment.use, waiter.key)) {
    std::memcpy(waiter.out, record + kRecordHeaderBytes, type.payload_bytes);
    return end(number, {});
  }
  if (expect_moves_ && !waiter.moved) {
    waiter.moved = true;
    waiter.next = std::exchange(moved_, number);
    return;
  }
  const uint32_t offset = type.offset_of(parts_.layout->slot_of(waiter.record));
  end(number, {Code::kCorrupt, parts_.files->name(op.segment, offset) + ": the record of " +
                                   row_name(waiter.key) + " does not verify"});
}

void Reads::end(uint32_t number, Status status) {
  ended_.push_back({waiters_[number].ticket, std::move(status)});
  waiters_[number].next = std::exchange(free_waiter_, number);
  --pending_;
}

void Reads::step() {
  while (overtaken_ != kNone) {
    const uint32_t number = overtaken_;
    Waiter& waiter = waiters_[number];
    const uint32_t rest = waiter.next;
    waiter.record = parts_.index->find(parts_.domain->number(waiter.key));
    if (waiter.record == kNoRecord) {
      end(number, {Code::kCorrupt, "the record of " + row_name(waiter.key) + " is gone"});
    } else if (read_from_buffer(waiter.record, waiter.out)) {
      ++buffered_;
      end(number, {});
    } else if (!join_or_read(number)) {
      waiter.next = rest;
      return;
    }
    overtaken_ = rest;
  }
}

void Reads::look_up_moved(const Status& built) {
  while (moved_ != kNone) {
    const uint32_t number = moved_;
    moved_ = waiters_[number].next;
    if (!built.ok()) {
      end(number, built);
      continue;
    }
    waiters_[number].next = std::exchange(overtaken_, number);
  }
}

void Reads::take(std::vector<ColdStore::Done>& done) {
  for (auto& ended : ended_) done.push_back(std::move(ended));
  ended_.clear();
}

}  // namespace rowtide::storage
