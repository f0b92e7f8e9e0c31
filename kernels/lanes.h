#pragma once
// lanes — the vectors that an X_lanes.cc computes with: for those files only.
//
// Such a file is compiled once for each instruction set.  Everything here and there has internal
// linkage, and nothing of the standard library is called, so that no function compiled for one
// instruction set can be taken by the linker for another.  Arithmetic is that of the compiler's
// vector types, each operation rounded alone: the bits do not depend on the number of lanes.

#include <cstdint>

#include "kernels/rounding.h"
#include "kernels/rows.h"

#ifndef ROWTIDE_LANES
#define ROWTIDE_LANES scalar
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rowtide::ROWTIDE_LANES {
namespace {

#if defined(__AVX512F__)
constexpr uint32_t kVector = 16;  // floats in the widest register
#elif defined(__AVX2__)
constexpr uint32_t kVector = 8;
#else
constexpr uint32_t kVector = 4;
#endif
constexpr uint32_t kUpTo8 = kVector < 8 ? kVector : 8;  // for rows narrower than the widest
constexpr uint32_t kCacheLine = 64;

template <typename T, uint32_t K>
struct VectorOf {
  typedef T Type __attribute__((vector_size(K * sizeof(T))));
};
template <typename T>
struct VectorOf<T, 1> {
  typedef T Type;
};
template <uint32_t K>
using Floats = typename VectorOf<float, K>::Type;

template <uint32_t K>
inline Floats<K> load(const float* from) {
  Floats<K> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
template <uint32_t K>
inline void store(float* to, Floats<K> v) {
  __builtin_memcpy(to, &v, sizeof v);
}

// A store past the caches.  REQUIRES: `to` is aligned to the vector; finish_streams() before anyone
// else reads it.
template <uint32_t K>
inline void stream(float* to, Floats<K> v) {
#if defined(__AVX512F__)
  if constexpr (K == 16) return _mm512_stream_ps(to, v);
#endif
#if defined(__AVX2__)
  if constexpr (K == 8) return _mm256_stream_ps(to, v);
#endif
#if defined(__x86_64__)
  if constexpr (K == 4) return _mm_stream_ps(to, v);
#endif
  store<K>(to, v);
}
inline void finish_streams() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// The three ways a weight is stored.
struct Fp32 {
  using Stored = float;
  static constexpr uint32_t kBytes = 4;
  template <uint32_t K>
  static inline Floats<K> load(const Stored* from) {
    return ROWTIDE_LANES::load<K>(from);
  }
};

struct Bf16 {
  using Stored = uint16_t;
  static constexpr uint32_t kBytes = 2;
  template <uint32_t K>
  static inline Floats<K> load(const Stored* from) {
    if constexpr (K == 1) {
      return widen_bf16(*from);
    } else {
      typename VectorOf<uint16_t, K>::Type v;
      __builtin_memcpy(&v, from, sizeof v);
      using Wide = typename VectorOf<uint32_t, K>::Type;
      return reinterpret_cast<Floats<K>>(__builtin_convertvector(v, Wide) << 16);
    }
  }
  static inline uint16_t stochastic(float x, uint32_t r) { return stochastic_bf16(x, r); }
};

struct Fp16 {
  using Stored = uint16_t;
  static constexpr uint32_t kBytes = 2;
  template <uint32_t K>
  static inline Floats<K> load(const Stored* from) {
    if constexpr (K == 1) return widen_fp16(*from);
#if defined(__AVX512F__)
    if constexpr (K == 16) {
      // The form without a mask warns of an uninitialised value in GCC's own header.
      const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
      return _mm512_maskz_cvtph_ps(0xFFFF, halves);
    }
#endif
#if defined(__AVX2__)
    if constexpr (K == 8) {
      return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    }
    if constexpr (K == 4) {
      return _mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
    }
#endif
    float v[K];
    for (uint32_t l = 0; l < K; ++l) v[l] = widen_fp16(from[l]);
    return ROWTIDE_LANES::load<K>(v);
  }
  static inline uint16_t stochastic(float x, uint32_t r) { return stochastic_fp16(x, r); }
};

// N vectors side by side over columns of a row, the last one pulled back to end at `end`: it may
// overlap the one before, which is harmless wherever columns are computed independently and
// written once.  So every width has full vectors only.
template <uint32_t K, uint32_t N>
struct Panel {
  uint32_t first;
  uint32_t last;  // column of the last vector

  static inline Panel ending_at(uint32_t first, uint32_t end) { return {first, end - K}; }
  inline uint32_t column(uint32_t n) const { return n + 1 < N ? first + n * K : last; }
};

// Asks for the first KiB of `bytes`: the hardware prefetcher sees the rest coming.
inline void prefetch_lines(const void* from, uint64_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(from) & ~uintptr_t{kCacheLine - 1};
  const auto end = reinterpret_cast<uintptr_t>(from) + (bytes < 1024 ? bytes : 1024);
  for (uintptr_t line = begin; line < end; line += kCacheLine) {
    __builtin_prefetch(reinterpret_cast<const void*>(line));
  }
}

// The sum of 32 lanes: lane l adds l + 16, l + 8, l + 4, l + 2, l + 1.
inline float sum_of_lanes(float* lane) {
  for (uint32_t half = 16; half > 0; half /= 2) {
    for (uint32_t l = 0; l < half; ++l) lane[l] = lane[l] + lane[l + half];
  }
  return lane[0];
}

}  // namespace
}  // namespace rowtide::ROWTIDE_LANES
