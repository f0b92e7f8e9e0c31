#include "trainer/criteo_lines.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "trainer/field_scan.h"

namespace rowtide {
namespace {

constexpr size_t kLogTable = 4096;  // 16 KiB; most counts of Criteo's columns lie below

// Reads an integer of 32 bits; false if it is none.  REQUIRES: length > 0.
bool read_integer(const char* text, uint32_t length, int32_t& value) {
  const bool negative = *text == '-';
  text += negative;
  length -= negative;
  uint32_t digits = 0;
  if (length >= 1 && length <= 8) [[likely]] {
    if (!read_digits(text, length, digits)) return false;
  } else {
    uint32_t high = 0;
    if (length != 9 && length != 10) return false;
    if (!read_digits(text, length - 8, high) || !read_digits(text + length - 8, 8, digits)) {
      return false;
    }
    const uint64_t whole = high * uint64_t{100'000'000} + digits;
    if (whole > uint64_t{std::numeric_limits<int32_t>::max()} + negative) return false;
    digits = static_cast<uint32_t>(whole);
  }
  value = static_cast<int32_t>(negative ? 0u - digits : digits);
  return true;
}

const float* log_table() {
  // Filled when the program runs: a constant one would have the compiler's rounding, not libm's.
  static const std::vector<float> table = [] {
    std::vector<float> values(kLogTable);
    for (size_t x = 0; x < kLogTable; ++x) values[x] = std::log1p(static_cast<float>(x));
    return values;
  }();
  return table.data();
}

}  // namespace

CriteoLines::CriteoLines(const std::vector<ReaderTable>& tables, DenseTransform transform,
                         bool has_label, OnError on_error)
    : log1p_(log_table()),
      log_transform_(transform == DenseTransform::kLog1p),
      has_label_(has_label),
      on_error_(on_error) {
  for (const ReaderTable& table : tables) {
    maps_.push_back({.rows = table.rows,
                     .reciprocal = ~uint64_t{0} / table.rows + 1,
                     .hash = table.mapping == IdMapping::kHash,
                     .wide = table.rows >> 32 != 0});
  }
}

// The remainder without a division: the fraction of id / rows, times rows (Lemire, Kaser and Kurz,
// arXiv 1902.01961; exact for 32 bits).
inline int64_t CriteoLines::RowMap::operator()(uint32_t id) const {
  if (hash) {
    const uint64_t word = id;
    return static_cast<int64_t>(XXH3_64bits(&word, sizeof word) % rows);
  }
  if (wide) return id;
  return static_cast<int64_t>(static_cast<unsigned __int128>(reciprocal * id) * rows >> 64);
}

inline float CriteoLines::dense_value(int32_t value) const {
  if (!log_transform_) return static_cast<float>(value);
  const uint32_t x = static_cast<uint32_t>(std::max(value, 0));
  return x < kLogTable ? log1p_[x] : std::log1p(static_cast<float>(x));
}

void CriteoLines::parse(const TextChunk& chunk, ParsedRows& out) {
  const char* text = chunk.text.get();
  const size_t count = index_delimiters(text, chunk.size, index_.get());
  const uint32_t fields = criteo_fields(has_label_);
  out.rows = 0;
  out.bad.clear();
  uint32_t begin = 0;
  uint64_t line = chunk.first_line;
  for (size_t next = 0; next < count; ++line) {
    const bool good = next + fields <= count && parse_line(text, index_.get() + next, begin, out);
    if (good) [[likely]] {
      next += fields;
      ++out.rows;
    } else {
      while (text[index_[next]] != '\n') ++next;
      uint32_t end = index_[next++];
      if (end > begin && text[end - 1] == '\r') --end;
      out.bad.push_back({out.rows, line, {text + begin, end - begin}});
      if (on_error_ == OnError::kFail) return;
    }
    begin = index_[next - 1] + 1;
  }
}

// Reads the line that begins at `begin` and whose fields end at `ends`; false if it is malformed.
bool CriteoLines::parse_line(const char* text, const uint32_t* ends, uint32_t begin,
                             ParsedRows& out) const {
  const uint32_t fields = criteo_fields(has_label_), row = out.rows;
  bool good = text[ends[fields - 1]] == '\n';
  if (has_label_) {
    const uint32_t label = static_cast<uint8_t>(text[begin]) ^ '0';
    good &= label <= 1 && *ends == begin + 1 && text[*ends] == '\t';
    out.labels[row] = static_cast<float>(label);
    begin = *ends++ + 1;
  }
  float* dense = out.dense.get() + size_t{row} * kDenseFields;
  for (uint32_t i = 0; i < kDenseFields; ++i) {
    const uint32_t end = *ends++;
    int32_t value = 0;
    if (end != begin) good &= read_integer(text + begin, end - begin, value);
    good &= text[end] == '\t';
    dense[i] = dense_value(value);
    begin = end + 1;
  }
  int64_t* ids = out.ids.get() + row;
  for (uint32_t i = 0; i < kIdFields; ++i, ids += ParsedRows::kMaxRows) {
    uint32_t end = *ends++, id;
    if (i + 1 < kIdFields) {
      good &= text[end] == '\t';
    } else {
      end -= end > begin && text[end - 1] == '\r';
    }
    good &= read_hex(text + begin, end - begin, id);
    *ids = maps_[i](id);
    begin = end + 1;
  }
  return good;
}

}  // namespace rowtide
