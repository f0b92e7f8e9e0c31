#pragma once
// vector_state — what to do after a call into ISA-L.
//
// Its assembly leaves the upper halves of the vector registers in use.  Until they are cleared,
// all code that is compiled for SSE waits for them: our generator ran six times slower.

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rowtide {

#if defined(__x86_64__)
__attribute__((target("avx"))) inline void zero_upper_halves() { _mm256_zeroupper(); }
inline void clear_vector_state() {
  if (__builtin_cpu_supports("avx")) zero_upper_halves();
}
#else
inline void clear_vector_state() {}
#endif

}  // namespace rowtide
