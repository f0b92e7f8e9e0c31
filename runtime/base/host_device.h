#pragma once
// host_device — marks a small function that both the host and a CUDA kernel call.
//
// The same source gives the same integers on both sides; g++ alone sees an ordinary function.

#if defined(__CUDACC__)
#define HOST_DEVICE __host__ __device__
#else
#define HOST_DEVICE
#endif

#include <cstdint>

namespace rowtide {

// The number of the lowest bit that is set.  REQUIRES: one is.
HOST_DEVICE inline uint32_t lowest_bit(uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return static_cast<uint32_t>(__ffs(static_cast<int>(bits)) - 1);
#else
  return static_cast<uint32_t>(__builtin_ctz(bits));
#endif
}

}  // namespace rowtide
