#include "storage/recovery.h"

#include <algorithm>
#include <cstring>

#include "storage/block.h"

namespace rowtide::storage {
namespace {

// While recovery runs, the liveness byte of a newest record is this flag, whether it is one that
// nothing in its pass can beat, and the number of the pass.
constexpr uint8_t kFinal = 0x40;
constexpr uint8_t kPassMask = 0x07;

bool is_zero(const std::byte* bytes, size_t count) {
  return std::all_of(bytes, bytes + count, [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

Status Recovery::run(uint32_t view, const std::vector<uint32_t>& kept, bool writer) {
  parts_.index->clear();
  parts_.segments->clear();
  found_.assign(parts_.layout->segment_count, {});
  kept_ = kept;
  bits_.clear();
  for (uint32_t epoch : kept) bits_.push_back(parts_.segments->commits().add(epoch));
  greatest_epoch_ = view;
  greatest_sequence_ = parts_.manifest->sequence;
  ROWTIDE_TRY(classify());
  uint32_t after = 0;
  for (uint32_t number = 0; number < kept.size(); ++number) {
    ROWTIDE_TRY(pass(number, after, kept[number]));
    after = kept[number];
  }
  settle();
  if (writer) ROWTIDE_TRY(complete_footers());
  parts_.segments->build_lists();
  return {};
}

// Reads the first and the last page of many segments at a time.
Status Recovery::classify() {
  constexpr uint32_t kAtOnce = BlockIo::kMostRanges / 2;
  std::vector<uint32_t> there;
  for (uint32_t n = 0; n < parts_.segments->count(); ++n) {
    if ((*parts_.segments)[n].allocated) there.push_back(n);
  }
  std::byte* const memory = parts_.blocks->memory();
  for (size_t begin = 0; begin < there.size(); begin += kAtOnce) {
    const size_t count = std::min<size_t>(kAtOnce, there.size() - begin);
    std::vector<BlockIo::Range> ranges;
    for (size_t i = 0; i < count; ++i) {
      std::byte* const pages = memory + i * 2 * kPageBytes;
      const uint32_t last = parts_.layout->segment_bytes - kPageBytes;
      ranges.push_back({there[begin + i], 0, kPageBytes, pages});
      ranges.push_back({there[begin + i], last, kPageBytes, pages + kPageBytes});
    }
    ROWTIDE_TRY(parts_.blocks->read(ranges));
    for (size_t i = 0; i < count; ++i) {
      const std::byte* const pages = memory + i * 2 * kPageBytes;
      ROWTIDE_TRY(classify_one(there[begin + i], pages, pages + kPageBytes));
    }
  }
  // What no footer tells must be read now, to know all epochs.
  for (uint32_t n : there) {
    if (found_[n].source != Source::kScan) continue;
    ROWTIDE_TRY(for_each(n, [&](uint32_t, const RecordName& name) {
      found_[n].greatest_epoch = std::max({found_[n].greatest_epoch, name.epoch, name.heir});
      return Status();
    }));
  }
  for (const Found& found : found_) {
    greatest_epoch_ = std::max(greatest_epoch_, found.greatest_epoch);
  }
  return {};
}

const OpenSegment* Recovery::listed(uint32_t segment) const {
  for (const OpenSegment& open : parts_.manifest->open) {
    if (open.place == parts_.layout->place_of(segment)) return &open;
  }
  return nullptr;
}

Status Recovery::classify_one(uint32_t segment, const std::byte* first, const std::byte* last) {
  SegmentHeader header;
  FooterTrailer trailer;
  std::memcpy(&header, first, sizeof header);
  std::memcpy(&trailer, last + kPageBytes - sizeof trailer, sizeof trailer);
  const uint64_t place = parts_.layout->place_of(segment);
  const bool has_header =
      intact(header) && header.place == place && header.store == parts_.manifest->store;
  const bool has_footer = intact(trailer) && trailer.place == place;
  Found& found = found_[segment];
  if (const OpenSegment* open = listed(segment)) {
    if (!has_header || header.sequence != open->sequence) {
      return {Code::kCorrupt, parts_.files->name(segment, 0) + ": the header does not verify"};
    }
    found.synced_slots = open->slots;
    found.synced_records = open->records;
    return adopt(segment, Source::kScan, header.type, header.payload_bytes, header.sequence,
                 header.use);
  }
  if (!has_header && !has_footer) return {};
  if (has_footer && (!has_header || trailer.sequence >= header.sequence)) {
    const bool trusted = trailer.sequence < parts_.manifest->sequence &&
                         trailer.columns_bytes <= parts_.layout->footer_bytes;
    found.slot_count = trailer.slot_count;
    found.columns_bytes = trailer.columns_bytes;
    found.columns_checksum = trailer.columns_checksum;
    if (trusted) found.greatest_epoch = trailer.greatest_epoch;
    return adopt(segment, trusted ? Source::kFooter : Source::kScan, trailer.type,
                 trailer.payload_bytes, trailer.sequence, trailer.use);
  }
  return adopt(segment, Source::kScan, header.type, header.payload_bytes, header.sequence,
               header.use);
}

Status Recovery::adopt(uint32_t number, Source source, uint32_t type, uint32_t payload_bytes,
                       uint64_t sequence, uint64_t use) {
  const auto& types = parts_.layout->types;
  if (type >= types.size() || types[type].payload_bytes != payload_bytes) {
    return {Code::kInvalid, parts_.files->name(number, 0) + ": records of type " +
                                std::to_string(type) + " have " + std::to_string(payload_bytes) +
                                " bytes here, which is not what is asked for"};
  }
  Segment& segment = (*parts_.segments)[number];
  segment.type = static_cast<uint8_t>(type);
  segment.sequence = sequence;
  segment.use = use;
  found_[number].source = source;
  greatest_sequence_ = std::max(greatest_sequence_, sequence);
  return {};
}

template <typename Visit>
Status Recovery::for_each(uint32_t segment, Visit&& visit) {
  if (found_[segment].source == Source::kFooter) {
    bool readable = true;
    ROWTIDE_TRY(for_each_in_footer(segment, visit, &readable));
    if (readable) return {};
    found_[segment].source = Source::kScan;  // a rotted footer: the records tell the same
  }
  return scan(segment, visit);
}

template <typename Visit>
Status Recovery::for_each_in_footer(uint32_t segment, Visit&& visit, bool* readable) {
  const Found& found = found_[segment];
  const auto trailer_bytes = static_cast<uint32_t>(sizeof(FooterTrailer));
  const uint32_t bytes = page_up(found.columns_bytes + trailer_bytes);
  std::byte* const memory = parts_.blocks->memory();
  ROWTIDE_TRY(parts_.blocks->read({segment, parts_.layout->segment_bytes - bytes, bytes, memory}));
  FooterTrailer trailer{.use = (*parts_.segments)[segment].use,
                        .slot_count = found.slot_count,
                        .columns_bytes = found.columns_bytes,
                        .columns_checksum = found.columns_checksum};
  Footer footer;
  *readable = footer.open(
      trailer, {memory + bytes - trailer_bytes - found.columns_bytes, found.columns_bytes});
  if (!*readable) return {};
  (*parts_.segments)[segment].slot_count = footer.slots();
  (*parts_.segments)[segment].name_bytes = footer.name_bytes();
  for (uint32_t slot = 0; slot < footer.slots(); ++slot) {
    const RecordName name = footer.name(slot);
    if (name.flags != 0) ROWTIDE_TRY(visit(slot, name));
  }
  return {};
}

template <typename Visit>
Status Recovery::scan(uint32_t number, Visit&& visit) {
  Segment& segment = (*parts_.segments)[number];
  const RecordType& type = parts_.layout->types[segment.type];
  const Found& found = found_[number];
  const auto wrong = [&](uint32_t slot) {
    return Status(Code::kCorrupt, parts_.files->name(number, type.offset_of(slot)) +
                                      ": a record of the last commit does not verify");
  };
  uint32_t synced = 0, suspect = type.first_slot;
  Block block;
  for (uint32_t slot = type.first_slot;; slot = block.to) {
    block =
        Block::next(*parts_.layout, type, number, slot, type.slots, [](uint32_t) { return true; });
    if (block.bytes == 0) break;
    std::byte* const memory = parts_.blocks->memory();
    ROWTIDE_TRY(parts_.blocks->read({number, block.begin, block.bytes, memory}));
    for (slot = block.from; slot < block.to; ++slot) {
      const std::byte* const record = block.record(type, slot, memory);
      if (!verify_record(record, type.bytes, segment.use)) {
        const bool skipped = is_zero(record, kRecordHeaderBytes);
        if (suspect == type.first_slot && slot < found.synced_slots && !skipped) suspect = slot;
        continue;
      }
      if (slot < found.synced_slots) ++synced;
      segment.slot_count = std::max(segment.slot_count, slot + 1);
      ROWTIDE_TRY(visit(slot, name_of(record)));
    }
  }
  return synced == found.synced_records ? Status() : wrong(suspect);
}

Status Recovery::pass(uint32_t number, uint32_t after, uint32_t upto) {
  for (uint32_t n = 0; n < parts_.segments->count(); ++n) {
    if (found_[n].source == Source::kNothing || found_[n].greatest_epoch <= after) continue;
    ROWTIDE_TRY(for_each(n, [&](uint32_t slot, const RecordName& name) {
      const bool mine = name.epoch > after && name.epoch <= upto;
      if (!mine || parts_.manifest->is_dead(name.epoch)) return Status();
      return enter(parts_.layout->record(n, slot), name, number, upto);
    }));
  }
  return {};
}

Status Recovery::enter(uint64_t record, const RecordName& name, uint32_t pass, uint32_t upto) {
  if (!parts_.domain->contains(name.key)) {
    return {Code::kInvalid, parts_.files->name(parts_.layout->segment_of(record), 0) +
                                " holds table " + std::to_string(table_of(name.key)) + ", row " +
                                std::to_string(row_of(name.key)) +
                                ", which the tables given do not"};
  }
  bool final = false;
  if ((name.flags & kSuperseded) != 0 && !parts_.manifest->is_dead(name.heir)) {
    if (name.heir <= upto) return {};
    final = true;
  }
  Segments& segments = *parts_.segments;
  const auto code = static_cast<uint8_t>(KeptCommits::kNewest | (final ? kFinal : 0) | pass);
  const uint64_t number = parts_.domain->number(name.key);
  const uint64_t there = parts_.index->find(number);
  if (there != kNoRecord) {
    const uint8_t its = segments.byte(there);
    const uint32_t its_pass = its & kPassMask;
    if (its_pass == pass) {
      const uint32_t a = parts_.layout->segment_of(record), b = parts_.layout->segment_of(there);
      const bool later = a == b ? record > there : segments[a].sequence > segments[b].sequence;
      // Of two copies of one record always the later: every recovery must choose the same one, also
      // when a heir has died in between, for the segment of the other may be free by then.
      const bool its_final = (its & kFinal) != 0;
      if (its_final != final ? its_final : !later) return {};
      segments.byte(there) = 0;
    } else {
      uint8_t needed = 0;
      for (uint32_t i = its_pass; i < pass; ++i) needed |= static_cast<uint8_t>(1 << bits_[i]);
      segments.byte(there) = needed;
    }
  }
  segments.byte(record) = code;
  if (parts_.index->set(number, record)) return {};
  return {Code::kNoSpace,
          "the store holds more rows than max_rows, " + std::to_string(parts_.layout->rows)};
}

void Recovery::settle() {
  Segments& segments = *parts_.segments;
  for (uint32_t n = 0; n < segments.count(); ++n) {
    Segment& segment = segments[n];
    for (uint32_t slot = 0; slot < segment.slot_count; ++slot) {
      uint8_t& byte = segments.byte(parts_.layout->record(n, slot));
      if ((byte & KeptCommits::kNewest) != 0) {
        const uint32_t pass = byte & kPassMask;
        byte = KeptCommits::kNewest;
        for (uint32_t i = 0; i < pass; ++i) byte |= static_cast<uint8_t>(1 << bits_[i]);
      }
      segment.bits |= byte & static_cast<uint8_t>(~KeptCommits::kNewest);
      if (byte != 0) ++segment.live;
    }
    // The manifest goes on listing its open segments until the next commit: they stay as they are.
    const bool used = segment.live > 0 || found_[n].synced_records > 0;
    segment.state = used ? SegmentState::kSealed : SegmentState::kFree;
  }
}

// A footer that survived a crash may name records that did not: after the next commit it would be
// trusted.
Status Recovery::remove_footer(uint32_t segment) {
  std::byte* const memory = parts_.blocks->memory();
  std::memset(memory, 0, kPageBytes);
  return parts_.blocks->write(
      {segment, parts_.layout->segment_bytes - kPageBytes, kPageBytes, memory});
}

Status Recovery::complete_footers() {
  std::vector<RecordName> names;
  for (uint32_t n = 0; n < parts_.segments->count(); ++n) {
    Segment& segment = (*parts_.segments)[n];
    if (found_[n].source != Source::kScan) continue;
    if (segment.live == 0) {
      ROWTIDE_TRY(remove_footer(n));
      continue;
    }
    names.assign(segment.slot_count, {});
    FooterSize size;
    ROWTIDE_TRY(scan(n, [&](uint32_t slot, const RecordName& name) {
      names[slot] = name;
      size.add(name);
      return Status();
    }));
    segment.name_bytes = size.name_bytes();
    const FooterTrailer trailer{.sequence = segment.sequence,
                                .use = segment.use,
                                .place = parts_.layout->place_of(n),
                                .type = segment.type,
                                .payload_bytes = parts_.layout->types[segment.type].payload_bytes};
    std::byte* const memory = parts_.blocks->memory();
    const uint32_t bytes = encode_footer(names, size, trailer, memory);
    ROWTIDE_TRY(parts_.blocks->write({n, parts_.layout->segment_bytes - bytes, bytes, memory}));
  }
  return {};
}

}  // namespace rowtide::storage
