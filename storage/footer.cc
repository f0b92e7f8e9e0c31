#include "storage/footer.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace rowtide::storage {
namespace {

constexpr int kColumns = 5;
constexpr uint32_t kColumnHeads = kColumns * 16;
constexpr uint32_t kFixedBytes = kColumnHeads + sizeof(FooterTrailer);
constexpr uint32_t kWidest = 2 + 6 + 4 + 3 + 1;  // bytes of one name

std::array<uint64_t, kColumns> values_of(const RecordName& name) {
  return {table_of(name.key), row_of(name.key), name.epoch, name.heir, name.flags};
}

uint32_t width_of(uint64_t range) { return static_cast<uint32_t>(std::bit_width(range) + 7) / 8; }

uint32_t name_width(const std::array<uint64_t, kColumns>& least,
                    const std::array<uint64_t, kColumns>& most) {
  uint32_t width = 0;
  for (int c = 0; c < kColumns; ++c) width += width_of(most[c] - least[c]);
  return width;
}

uint32_t footer_bytes(const std::array<uint64_t, kColumns>& least,
                      const std::array<uint64_t, kColumns>& most, uint32_t slots) {
  return page_up(kFixedBytes + name_width(least, most) * slots);
}

}  // namespace

void FooterSize::add(const RecordName& name) {
  const auto values = values_of(name);
  if (!any_) least_ = most_ = values;
  any_ = true;
  for (int c = 0; c < kColumns; ++c) {
    least_[c] = std::min(least_[c], values[c]);
    most_[c] = std::max(most_[c], values[c]);
  }
  least_[4] = 0;  // the flags of skipped slots
  greatest_epoch_ = std::max({greatest_epoch_, name.epoch, name.heir});
}

uint32_t FooterSize::bytes(uint32_t slots) const { return footer_bytes(least_, most_, slots); }

uint8_t FooterSize::name_bytes() const { return static_cast<uint8_t>(name_width(least_, most_)); }

uint32_t FooterSize::bytes_with(const RecordName& next, uint32_t slots) const {
  FooterSize with = *this;
  with.add(next);
  return with.bytes(slots);
}

uint32_t most_slots(const RecordType& type, uint32_t segment_bytes) {
  const uint32_t footer = page_up(kFixedBytes);
  uint32_t slot = type.slot_from(segment_bytes - footer);
  while (slot > 0 && type.offset_of(slot - 1) + type.bytes > segment_bytes - footer) --slot;
  return slot;
}

uint32_t most_footer_bytes(uint32_t record_bytes, uint32_t segment_bytes) {
  const uint32_t names = segment_bytes / (record_bytes + kWidest) + kPageBytes / record_bytes + 1;
  return std::min(page_up(kFixedBytes + kWidest * names) + kPageBytes, segment_bytes);
}

uint32_t encode_footer(std::span<const RecordName> names, const FooterSize& size,
                       FooterTrailer trailer, std::byte* out) {
  const auto slots = static_cast<uint32_t>(names.size());
  const uint32_t bytes = size.bytes(slots);
  std::memset(out, 0, bytes);
  uint32_t columns_bytes = kColumnHeads;
  std::array<uint32_t, kColumns> widths{};
  for (int c = 0; c < kColumns; ++c) {
    widths[c] = width_of(size.most_[c] - size.least_[c]);
    columns_bytes += widths[c] * slots;
  }
  std::byte* const begin = out + bytes - sizeof trailer - columns_bytes;
  std::byte* to = begin + kColumnHeads;
  for (int c = 0; c < kColumns; ++c) {
    const uint64_t head[2] = {size.least_[c], widths[c]};
    std::memcpy(begin + c * 16, head, sizeof head);
    if (widths[c] == 0) continue;
    for (const RecordName& name : names) {
      const bool skipped = name.flags == 0 && c < 4;
      const uint64_t value = skipped ? 0 : values_of(name)[c] - size.least_[c];
      std::memcpy(to, &value, widths[c]);
      to += widths[c];
    }
  }
  trailer.slot_count = slots;
  trailer.columns_bytes = columns_bytes;
  trailer.greatest_epoch = size.greatest_epoch_;
  trailer.columns_checksum = static_cast<uint32_t>(checksum_of(begin, columns_bytes, trailer.use));
  trailer.checksum = header_checksum(trailer);
  std::memcpy(out + bytes - sizeof trailer, &trailer, sizeof trailer);
  return bytes;
}

bool Footer::open(const FooterTrailer& trailer, std::span<const std::byte> columns) {
  if (columns.size() != trailer.columns_bytes || columns.size() < kColumnHeads) return false;
  const uint64_t checksum = checksum_of(columns.data(), columns.size(), trailer.use);
  if (static_cast<uint32_t>(checksum) != trailer.columns_checksum) return false;
  slots_ = trailer.slot_count;
  uint64_t at = kColumnHeads;
  for (int c = 0; c < kColumns; ++c) {
    uint64_t head[2];
    std::memcpy(head, columns.data() + c * 16, sizeof head);
    columns_[c] = {head[0], static_cast<uint32_t>(head[1]), columns.data() + at};
    at += head[1] * slots_;
  }
  return at == columns.size();
}

uint8_t Footer::name_bytes() const {
  uint32_t width = 0;
  for (const Column& column : columns_) width += column.width;
  return static_cast<uint8_t>(width);
}

uint64_t Footer::value(const Column& column, uint32_t slot) const {
  uint64_t value = 0;
  std::memcpy(&value, column.values + uint64_t{slot} * column.width, column.width);
  return column.base + value;
}

RecordName Footer::name(uint32_t slot) const {
  return {make_key(static_cast<uint32_t>(value(columns_[0], slot)), value(columns_[1], slot)),
          static_cast<uint32_t>(value(columns_[2], slot)),
          static_cast<uint32_t>(value(columns_[3], slot)),
          static_cast<uint8_t>(value(columns_[4], slot))};
}

}  // namespace rowtide::storage
