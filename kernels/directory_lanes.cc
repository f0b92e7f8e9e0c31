// directory, for one instruction set: which ways of a set have a tag or were used before a step.
//
// The two masks are one to four compares; all else is the same source for every set.

#include <cstddef>

#include "kernels/directory.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace rowtide::ROWTIDE_LANES {
namespace {

// Bit w is set if tags[w] == tag.
inline uint32_t ways_with_tag(const uint16_t* tags, uint16_t tag) {
#if defined(__AVX512BW__)
  return _mm512_cmpeq_epi16_mask(_mm512_load_si512(tags), _mm512_set1_epi16(tag));
#elif defined(__AVX2__)
  const __m256i wanted = _mm256_set1_epi16(static_cast<int16_t>(tag));
  const auto* half = reinterpret_cast<const __m256i*>(tags);
  const __m256i low = _mm256_cmpeq_epi16(_mm256_load_si256(half), wanted);
  const __m256i high = _mm256_cmpeq_epi16(_mm256_load_si256(half + 1), wanted);
  // Packing works within 128-bit halves; the permutation puts the ways in order again.
  const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0b11'01'10'00);
  return static_cast<uint32_t>(_mm256_movemask_epi8(bytes));
#else
  uint32_t ways = 0;
  for (uint32_t w = 0; w < kWays; ++w) ways |= uint32_t{tags[w] == tag} << w;
  return ways;
#endif
}

// Bit w is set if values[w] <= limit.
inline uint32_t ways_up_to(const uint32_t* values, uint32_t limit) {
  uint32_t ways = 0;
#if defined(__AVX512F__)
  const __m512i top = _mm512_set1_epi32(static_cast<int>(limit));
  for (uint32_t w = 0; w < kWays; w += 16) {
    ways |= uint32_t{_mm512_cmple_epu32_mask(_mm512_load_si512(values + w), top)} << w;
  }
#elif defined(__AVX2__)
  const __m256i top = _mm256_set1_epi32(static_cast<int>(limit));
  for (uint32_t w = 0; w < kWays; w += 8) {
    const __m256i value = _mm256_load_si256(reinterpret_cast<const __m256i*>(values + w));
    const __m256i below = _mm256_cmpeq_epi32(_mm256_min_epu32(value, top), value);
    ways |= static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(below))) << w;
  }
#else
  for (uint32_t w = 0; w < kWays; ++w) ways |= uint32_t{values[w] <= limit} << w;
#endif
  return ways;
}

// The way among `ways` that holds the key.
inline Slot slot_with_key(const DirectoryView& view, uint64_t set, uint32_t ways, Key key) {
  for (; ways != 0; ways &= ways - 1) {
    const uint64_t slot = set * kWays + static_cast<uint32_t>(__builtin_ctz(ways));
    if (view.keys[slot] == key) return static_cast<Slot>(slot);
  }
  return kNoSlot;
}

}  // namespace

uint32_t free_ways(const DirectoryView& view, uint32_t set) {
  return ways_with_tag(view.tags + uint64_t{set} * kWays, kFreeTag);
}

uint32_t ways_before(const DirectoryView& view, uint32_t set, uint32_t step) {
  // `last` is one above the step, so "below step + 1" needs no sum that could wrap.
  return ways_up_to(view.last + uint64_t{set} * kWays, step) & ~free_ways(view, set);
}

Slot find(const DirectoryView& view, Key key) {
  if (view.sets == 0) return kNoSlot;
  const uint64_t set = view.set_of(key);
  return slot_with_key(view, set, ways_with_tag(view.tags + set * kWays, view.tag_of(key)), key);
}

// Three stages over one ring, so that no load is waited for: ask for the tags of key i, compare
// those of an earlier key and ask for its first candidate's key, compare that of a still earlier.
void probe(const DirectoryProbe& op) {
  constexpr uint64_t kAhead = 16;  // as many lines as a core of today loads at once
  struct Found {
    uint32_t set, ways;
  } ring[2 * kAhead];
  static_assert((2 * kAhead & (2 * kAhead - 1)) == 0, "the ring's index is a mask");
  const DirectoryView& view = op.view;
  for (uint64_t i = 0; i < op.n + 2 * kAhead; ++i) {
    // What falls below 0 wraps to a huge number, and is no key either.
    if (const uint64_t k = i - 2 * kAhead; k < op.n) {
      const Found& found = ring[k % (2 * kAhead)];
      op.slots[k] = slot_with_key(view, found.set, found.ways, op.keys[k]);
    }
    if (const uint64_t k = i - kAhead; k < op.n) {
      Found& found = ring[k % (2 * kAhead)];
      const uint64_t first = uint64_t{found.set} * kWays;
      found.ways = ways_with_tag(view.tags + first, view.tag_of(op.keys[k]));
      if (found.ways != 0) __builtin_prefetch(view.keys + first + __builtin_ctz(found.ways));
    }
    if (i < op.n) {
      const uint32_t set = view.set_of(op.keys[i]);
      ring[i % (2 * kAhead)].set = set;
      __builtin_prefetch(view.tags + uint64_t{set} * kWays);
    }
  }
}

}  // namespace rowtide::ROWTIDE_LANES
