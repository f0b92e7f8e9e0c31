#pragma once
// philox_lanes — many Philox blocks at once: for X_lanes.cc files only (see lanes.h).

#include "kernels/lanes.h"
#include "kernels/philox.h"

namespace rowtide::ROWTIDE_LANES {
namespace {

constexpr uint32_t kRandomBlocks = 16;
constexpr uint32_t kRandomWords = 4 * kRandomBlocks;

// Words of a counter stand in the lower halves of 64-bit lanes, one counter a lane: what lies above
// is ignored by the product and cut off at the end.
constexpr uint32_t kWideLanes = kVector / 2;
using Wide = VectorOf<uint64_t, kWideLanes>::Type;

inline Wide product_of_lower_halves(Wide a, Wide b) {
#if defined(__AVX512F__)
  return reinterpret_cast<Wide>(
      _mm512_maskz_mul_epu32(0xFF, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<Wide>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__x86_64__)
  return reinterpret_cast<Wide>(
      _mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  return (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu);
#endif
}

// philox4x32_10() on every lane.
inline void philox_lanes(uint64_t seed, Wide* word) {
  uint32_t key0 = static_cast<uint32_t>(seed);
  uint32_t key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const Wide a = product_of_lower_halves(word[0], Wide{} + 0xD2511F53u);
    const Wide b = product_of_lower_halves(word[2], Wide{} + 0xCD9E8D57u);
    word[0] = b >> 32 ^ word[1] ^ uint64_t { key0 };
    word[1] = b;
    word[2] = a >> 32 ^ word[3] ^ uint64_t { key1 };
    word[3] = a;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

// The words of kRandomBlocks consecutive blocks, from `counter` on; kBlockWord is the word of the
// counter that numbers them.
template <int kBlockWord>
inline void random_words(uint64_t seed, PhiloxBlock counter, uint32_t* out) {
  if constexpr (kWideLanes == 2) {  // two lanes are slower than none
    for (uint32_t b = 0; b < kRandomBlocks; ++b, ++counter.word[kBlockWord]) {
      const PhiloxBlock block = philox4x32_10(seed, counter);
      for (uint32_t n = 0; n < 4; ++n) *out++ = block.word[n];
    }
    return;
  }
  for (uint32_t first = 0; first < kRandomBlocks; first += kWideLanes) {
    uint64_t block[kWideLanes];
    for (uint32_t l = 0; l < kWideLanes; ++l) block[l] = first + l;
    Wide word[4];
    for (int n = 0; n < 4; ++n) word[n] = Wide{} + counter.word[n];
    Wide number;
    __builtin_memcpy(&number, block, sizeof number);
    word[kBlockWord] += number;
    philox_lanes(seed, word);
    // Two words to a lane, then the lanes in turn; little-endian like the files.
    uint64_t low[kWideLanes], high[kWideLanes];
    const Wide pairs[2] = {(word[0] & 0xFFFFFFFFu) | word[1] << 32,
                           (word[2] & 0xFFFFFFFFu) | word[3] << 32};
    __builtin_memcpy(low, &pairs[0], sizeof low);
    __builtin_memcpy(high, &pairs[1], sizeof high);
    for (uint32_t l = 0; l < kWideLanes; ++l, out += 4) {
      __builtin_memcpy(out, &low[l], sizeof low[l]);
      __builtin_memcpy(out + 2, &high[l], sizeof high[l]);
    }
  }
}

}  // namespace
}  // namespace rowtide::ROWTIDE_LANES
