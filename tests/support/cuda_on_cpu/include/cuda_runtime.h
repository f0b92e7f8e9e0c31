#pragma once
// What g++ finds first when a .cu file includes <cuda_runtime.h>: the toolkit's own header, for its
// exact types and signatures, and then what makes kernels run on the CPU.

#include_next <cuda_runtime.h>

// The toolkit leaves __global__ and __device__ empty for compilers other than nvcc, which is right.
// A __shared__ that is empty would be one variable for all blocks: only the macros of
// runtime/base/gpu/gpu.h may declare shared memory.
#undef __shared__
#define __shared__ use_ROWTIDE_SHARED_instead
#define __launch_bounds__(...)

#include "tests/support/cuda_on_cpu/emulated.h"
