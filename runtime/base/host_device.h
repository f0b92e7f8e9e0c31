#pragma once
// host_device — marks a small function that both the host and a CUDA kernel call.
//
// The same source gives the same integers on both sides; g++ alone sees an ordinary function.

#if defined(__CUDACC__)
#define HOST_DEVICE __host__ __device__
#else
#define HOST_DEVICE
#endif
