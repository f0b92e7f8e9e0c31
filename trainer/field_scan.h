#pragma once
// field_scan — finding and reading the fields of a text, many characters at once.
//
// Texts must be readable up to 64 bytes behind their end.  Little-endian hosts only.

#include <bit>
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace rowtide {

static_assert(std::endian::native == std::endian::little);

inline uint64_t load_word(const char* text) {
  uint64_t word;
  std::memcpy(&word, text, sizeof word);
  return word;
}

// The same byte in all places of a word.
constexpr uint64_t every_byte(uint8_t byte) { return byte * 0x0101010101010101ull; }

// Bit i is set if text[i] is a tab or a newline, for i in [0, 64).
inline uint64_t delimiter_mask(const char* text) {
  uint64_t mask = 0;
#if defined(__SSE2__)
  const __m128i tab = _mm_set1_epi8('\t'), newline = _mm_set1_epi8('\n');
  for (int i = 0; i < 4; ++i) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + 16 * i));
    const __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(part, tab), _mm_cmpeq_epi8(part, newline));
    mask |= uint64_t{static_cast<uint32_t>(_mm_movemask_epi8(hit))} << 16 * i;
  }
#else
  const auto non_zero = [](uint64_t x) {  // 0x80 in each byte that is not 0
    return (((x & every_byte(0x7f)) + every_byte(0x7f)) | x) & every_byte(0x80);
  };
  for (int i = 0; i < 8; ++i) {
    const uint64_t word = load_word(text + 8 * i);
    const uint64_t hit =
        ~(non_zero(word ^ every_byte('\t')) & non_zero(word ^ every_byte('\n'))) & every_byte(0x80);
    mask |= (hit >> 7) * 0x0102040810204080ull >> 56 << 8 * i;
  }
#endif
  return mask;
}

// Writes the positions of all tabs and newlines; returns their number.
// REQUIRES: room for `size` positions; no delimiter in the 64 bytes behind the text.
inline size_t index_delimiters(const char* text, size_t size, uint32_t* positions) {
  uint32_t* out = positions;
  for (uint32_t base = 0; base < size; base += 64) {
    for (uint64_t mask = delimiter_mask(text + base); mask != 0; mask &= mask - 1) {
      *out++ = base + static_cast<uint32_t>(std::countr_zero(mask));
    }
  }
  return static_cast<size_t>(out - positions);
}

// Reads 1 to 8 decimal digits; false if one is none.
inline bool read_digits(const char* text, uint32_t length, uint32_t& value) {
  // Right-aligned, so that zeros lead.
  uint64_t w = (load_word(text) ^ every_byte('0')) << (64 - 8 * length);
  const bool valid = (((w + every_byte(0x76)) | w) & every_byte(0x80)) == 0;  // 0x76 + 10 = 0x80
  w = (w & every_byte(0x0f)) * 2561 >> 8;                                     // pairs: 10 a + b
  w = (w & 0x00ff00ff00ff00ffull) * 6553601 >> 16;                            // 100 a + b
  value = static_cast<uint32_t>((w & 0x0000ffff0000ffffull) * 42949672960001ull >> 32);
  return valid;
}

// Reads up to 8 hexadecimal digits, nothing is 0; false if one is none or there are more.
inline bool read_hex(const char* text, uint32_t length, uint32_t& value) {
  const uint32_t shift = (64 - 8 * length) & 63;
  uint64_t w = load_word(text) << shift | every_byte('0') >> 8 >> ((56 - shift) & 63);
  w = length == 0 ? every_byte('0') : w;
  const uint64_t low = every_byte(0x7f), digit = w ^ every_byte('0'),
                 letter = (w | every_byte(0x20)) ^ every_byte(0x60);
  const uint64_t no_digit = ((digit & low) + every_byte(0x76)) | digit;  // 10 and more
  const uint64_t no_letter = ((letter & low) + every_byte(0x79)) | ~((letter & low) + low) | letter;
  const bool valid = (no_digit & no_letter & every_byte(0x80)) == 0 && length <= 8;
  w = (w & every_byte(0x0f)) + 9 * (w >> 6 & every_byte(1));  // a nibble a byte
  w = (w << 4 | w >> 8) & 0x00ff00ff00ff00ffull;              // a byte in two
  w = (w | w >> 8) & 0x0000ffff0000ffffull;
  value = __builtin_bswap32(static_cast<uint32_t>(w | w >> 16));
  return valid;
}

}  // namespace rowtide
