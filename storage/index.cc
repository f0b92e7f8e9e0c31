#include "storage/index.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace rowtide::storage {
namespace {

constexpr uint32_t kLineBits = 512 - 8;  // one byte of flags
constexpr uint32_t kNarrowBits = 57;     // an entry at any bit lies within 8 bytes
constexpr uint32_t kMostSlots = 16;
constexpr uint64_t kLeastLines = 8;  // so that two lines are rarely the same one
constexpr int kMostMoves = 500;      // at these loads a handful does
constexpr size_t kMostStrays = 64;
constexpr std::byte kSomeAway{1};  // an entry whose home is this line lies elsewhere

// Nine bytes a row, less where a line holds so many entries that four fifths of them are enough.
uint64_t lines_for(uint64_t rows, uint32_t slots) {
  const double rows_per_line = slots >= 8 ? std::max(64.0 / 9, 0.8 * slots) : 0.9 * slots;
  return kLeastLines + static_cast<uint64_t>(static_cast<double>(rows) / rows_per_line);
}

int rest_bits_for(int domain_bits, uint64_t lines) {
  const uint64_t greatest = domain_bits == 64 ? ~uint64_t{0} : (uint64_t{1} << domain_bits) - 1;
  return std::bit_width(greatest / lines);
}

}  // namespace

IndexShape IndexShape::of(int domain_bits, uint64_t rows, uint64_t records) {
  IndexShape shape;
  shape.record_bits = std::bit_width(records);  // numbers plus one
  for (shape.slots = kMostSlots; shape.slots > 1; --shape.slots) {
    shape.lines = lines_for(rows, shape.slots);
    shape.rest_bits = rest_bits_for(domain_bits, shape.lines);
    const uint32_t bits = static_cast<uint32_t>(shape.rest_bits + 1 + shape.record_bits);
    if (shape.slots * bits <= kLineBits) break;
  }
  return shape;
}

Result<Index> Index::create(const KeyDomain& domain, uint64_t rows, uint64_t records,
                            uint64_t salt) {
  Index index;
  index.shape_ = IndexShape::of(domain.bits(), rows, records);
  auto arena = HostArena::reserve(index.shape_.bytes(), "the index of the cold store");
  if (!arena.ok()) return arena.status();
  index.arena_ = std::move(*arena);
  index.domain_ = &domain;
  index.table_rows_.resize(domain.table_count());
  index.domain_bits_ = domain.bits();
  index.domain_mask_ = domain.bits() == 64 ? ~uint64_t{0} : (uint64_t{1} << domain.bits()) - 1;
  index.entry_bits_ = static_cast<uint32_t>(index.shape_.rest_bits + 1 + index.shape_.record_bits);
  index.entry_mask_ = (Entry{1} << index.entry_bits_) - 1;
  index.record_mask_ = (Entry{1} << index.shape_.record_bits) - 1;
  index.most_rows_ = rows;
  index.salt_ = salt;
  index.strays_.reserve(kMostStrays);
  return index;
}

// Addition, multiplication by an odd number and a shifted xor each permute [0, 2^bits).
Index::Home Index::home_of(uint64_t number) const {
  const int half = (domain_bits_ + 1) / 2;
  uint64_t p = number + salt_;
  p = p * 0x9E3779B97F4A7C15ull & domain_mask_;
  p ^= p >> half;
  p = (p + mix64(salt_)) * 0xD6E8FEB86659FD93ull & domain_mask_;
  p ^= p >> half;
  p = p * 0xA0761D6478BD642Full & domain_mask_;
  const Entry scaled = Entry{p} * shape_.lines;
  return {static_cast<uint64_t>(scaled >> domain_bits_),
          (static_cast<uint64_t>(scaled) & domain_mask_) / shape_.lines};
}

// Its own inverse, so that an entry that is away gives its home.
uint64_t Index::other_line(uint64_t line, uint64_t rest) const {
  const uint64_t sum = static_cast<uint64_t>(Entry{mix64(rest ^ salt_)} * shape_.lines >> 64);
  return sum >= line ? sum - line : sum + shape_.lines - line;
}

Index::Entry Index::load(uint64_t line, uint32_t slot) const {
  const uint32_t bit = slot * entry_bits_, byte = std::min(bit / 8, 48u);
  Entry window;
  std::memcpy(&window, line_at(line) + byte, sizeof window);
  return window >> (bit - byte * 8) & entry_mask_;
}

void Index::store(uint64_t line, uint32_t slot, Entry entry) {
  const uint32_t bit = slot * entry_bits_, byte = std::min(bit / 8, 48u), shift = bit - byte * 8;
  Entry window;
  std::memcpy(&window, line_at(line) + byte, sizeof window);
  window = (window & ~(entry_mask_ << shift)) | entry << shift;
  std::memcpy(line_at(line) + byte, &window, sizeof window);
}

int Index::slot_of(uint64_t line, Entry tag) const {
  if (entry_bits_ <= kNarrowBits) return narrow_slot_of(line, static_cast<uint64_t>(tag));
  for (uint32_t slot = 0; slot < shape_.slots; ++slot) {
    const Entry entry = load(line, slot);
    if ((entry & ~record_mask_) == tag && (entry & record_mask_) != 0) {
      return static_cast<int>(slot);
    }
  }
  return -1;
}

// The same in 64-bit words, for the common sizes.
int Index::narrow_slot_of(uint64_t line, uint64_t tag) const {
  const std::byte* const bytes = line_at(line);
  const auto mask = static_cast<uint64_t>(entry_mask_),
             record = static_cast<uint64_t>(record_mask_);
  for (uint32_t slot = 0, bit = 0; slot < shape_.slots; ++slot, bit += entry_bits_) {
    const uint32_t byte = std::min(bit / 8, 56u);
    uint64_t window;
    std::memcpy(&window, bytes + byte, sizeof window);
    // A match differs from the tag in the record's bits alone, and in one of them at least.
    if (((window >> (bit - byte * 8) & mask) ^ tag) - 1 < record) return static_cast<int>(slot);
  }
  return -1;
}

int Index::empty_slot(uint64_t line) const {
  for (uint32_t slot = 0; slot < shape_.slots; ++slot) {
    if ((load(line, slot) & record_mask_) == 0) return static_cast<int>(slot);
  }
  return -1;
}

std::pair<uint64_t, int> Index::locate(const Home& home) const {
  const int slot = slot_of(home.line, tag_of(home.rest, false));
  if (slot >= 0 || (line_at(home.line)[63] & kSomeAway) == std::byte{0}) return {home.line, slot};
  const uint64_t other = other_line(home.line, home.rest);
  return {other, slot_of(other, tag_of(home.rest, true))};
}

void Index::prefetch(uint64_t number) const { __builtin_prefetch(line_at(home_of(number).line)); }

uint64_t Index::find(uint64_t number) const {
  const Home home = home_of(number);
  const auto [line, slot] = locate(home);
  if (slot >= 0) {
    return static_cast<uint64_t>(load(line, static_cast<uint32_t>(slot)) & record_mask_) - 1;
  }
  for (const auto& [stray, record] : strays_) {
    if (stray == home) return record;
  }
  return kNoRecord;
}

bool Index::set(uint64_t number, uint64_t record) {
  const Home home = home_of(number);
  const auto [line, slot] = locate(home);
  if (slot >= 0) {
    const Entry tag = load(line, static_cast<uint32_t>(slot)) & ~record_mask_;
    store(line, static_cast<uint32_t>(slot), tag | (record + 1));
    return true;
  }
  for (auto& [stray, at] : strays_) {
    if (stray == home) return at = record, true;
  }
  if (rows_ >= most_rows_ || !place(home, record)) return false;
  ++rows_;
  if (!table_rows_.empty()) ++table_rows_[domain_->table_of_number(number)];
  return true;
}

// Puts an entry into its home line, or its other one; if that is full too, an entry of that line
// makes room by going to its own other line, and so on.
bool Index::place(const Home& home, uint64_t record) {
  const Entry away = Entry{1} << shape_.record_bits;
  Entry moving = tag_of(home.rest, false) | (record + 1);
  uint64_t line = home.line;
  for (int moves = 0; moves < kMostMoves; ++moves) {
    if (const int slot = empty_slot(line); slot >= 0) {
      store(line, static_cast<uint32_t>(slot), moving);
      return true;
    }
    if (moves > 0) {  // the first entry tries its other line before it drives another out
      if (strays_.size() == kMostStrays) return false;  // nobody was driven out yet
      const uint32_t slot = turn_++ % shape_.slots;
      const Entry driven_out = load(line, slot);
      store(line, slot, moving);
      moving = driven_out;
    }
    moving ^= away;
    if ((moving & away) != 0) line_at(line)[63] |= kSomeAway;
    line = other_line(line, static_cast<uint64_t>(moving >> (shape_.record_bits + 1)));
  }
  const uint64_t rest = static_cast<uint64_t>(moving >> (shape_.record_bits + 1));
  if ((moving & away) != 0) line = other_line(line, rest);
  strays_.push_back({{line, rest}, static_cast<uint64_t>(moving & record_mask_) - 1});
  return true;
}

void Index::clear() {
  if (rows_ == 0) return;  // the arena is zeroed and untouched: keep it so
  std::memset(arena_.bytes(), 0, arena_.size());
  rows_ = 0;
  std::ranges::fill(table_rows_, 0);
  strays_.clear();
}

}  // namespace rowtide::storage
