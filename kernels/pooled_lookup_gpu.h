#pragma once
// pooled_lookup on a GPU: the op, and the bits, of pooled_lookup.h.

#include "kernels/pooled_lookup.h"
#include "runtime/base/gpu/stream.h"
#include "runtime/base/status.h"

namespace rowtide {

// Pools all bags as work on `stream`; every pointer of `op` is device memory.
// REQUIRES: pooling is kSum or kMean; width > 0; planes.weights begins at a multiple of 16.
// Errors: kDevice; kUnavailable in a build without CUDA.
Status pooled_lookup_gpu(const PooledLookup& op, DeviceStream stream);

}  // namespace rowtide
