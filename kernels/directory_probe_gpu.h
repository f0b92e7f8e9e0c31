#pragma once
// directory_probe on a GPU: the op of directory.h.

#include "kernels/directory.h"
#include "runtime/base/gpu/stream.h"
#include "runtime/base/status.h"

namespace rowtide {

// Looks all keys up as work on `stream`; every pointer of `op` is device memory.
// Errors: kDevice; kUnavailable in a build without CUDA.
Status directory_probe_gpu(const DirectoryProbe& op, DeviceStream stream);

}  // namespace rowtide
