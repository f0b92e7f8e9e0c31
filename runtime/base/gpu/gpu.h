#pragma once
// gpu — what every .cu file begins with: how kernels are written, started and asked how it went.
//
// The one place that asks which compiler reads it.  nvcc makes GPU code of a .cu file; g++ makes of
// the same file, unchanged, code that tests/support/cuda_on_cpu runs on the CPU.  It knows no op.
// Included by .cu files only, since it brings CUDA's headers along.
//
// Rules for kernels (tests/support/cuda_on_cpu/README.md says which are checked):
//   - what the host may call too is HOST_DEVICE (runtime/base/host_device.h);
//   - shared memory through ROWTIDE_SHARED and ROWTIDE_DYNAMIC_SHARED;
//   - a thread that ends before others meet at a barrier says so: ROWTIDE_LEAVE;
//   - one barrier or warp intrinsic a line, with the exact mask of the lanes that come;
//   - blocks are multiples of 32 threads; spin on atomics only, and never on another block.

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "runtime/base/gpu/stream.h"
#include "runtime/base/host_device.h"
#include "runtime/base/status.h"

#if defined(__CUDACC__)

// `ROWTIDE_SHARED(float, tile, 64);` declares float tile[64], one for each block.
#define ROWTIDE_SHARED(type, name, count) __shared__ type name[count]
// `ROWTIDE_DYNAMIC_SHARED(float, tile);` names the bytes that launch() was asked for; one a kernel.
#define ROWTIDE_DYNAMIC_SHARED(type, name)                                \
  extern __shared__ __align__(16) unsigned char rowtide_dynamic_shared[]; \
  type* const name = reinterpret_cast<type*>(rowtide_dynamic_shared)
// Ends this thread of a kernel; the others do not wait for it at barriers.
#define ROWTIDE_LEAVE return

#else

#define ROWTIDE_SHARED(type, name, count) CUDA_ON_CPU_SHARED(type, name, count)
#define ROWTIDE_DYNAMIC_SHARED(type, name) CUDA_ON_CPU_DYNAMIC_SHARED(type, name)
#define ROWTIDE_LEAVE return ::cuda_on_cpu::leave()

#endif

namespace rowtide {

// What a call of the CUDA runtime answered, as a Status: "gather_rows: out of memory (...)".
// Errors: kNoSpace if memory is short, kDevice otherwise.
Status device_status(cudaError_t error, const char* what);

// Starts `kernel` as work on `stream`.  It may fail: ask launch_status() right after.
// REQUIRES: stream is not null; block is a multiple of 32 threads.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
            DeviceStream stream, Arguments&&... arguments) {
#if defined(__CUDACC__)
  kernel<<<grid, block, shared_bytes, stream>>>(std::forward<Arguments>(arguments)...);
#else
  cuda_on_cpu::launch(kernel, grid, block, shared_bytes, stream,
                      std::forward<Arguments>(arguments)...);
#endif
}

// Whether the last launch() of this thread was accepted.  What fails inside a kernel shows at the
// next wait for its stream.
inline Status launch_status(const char* kernel) {
  return device_status(cudaGetLastError(), kernel);
}

}  // namespace rowtide
