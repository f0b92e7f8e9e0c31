// What a build without CUDA links in place of the .cu files of this folder.

#include <string>

#include "kernels/directory_probe_gpu.h"
#include "kernels/pooled_lookup_gpu.h"
#include "runtime/base/gpu/devices.h"

namespace rowtide {
namespace {

Status no_cuda(const char* op) {
  return {Code::kUnavailable,
          std::string(op) +
              " on a GPU needs CUDA, and this build has devices: " + gpu_devices_in_this_build()};
}

}  // namespace

Status pooled_lookup_gpu(const PooledLookup&, DeviceStream) { return no_cuda("pooled_lookup"); }
Status directory_probe_gpu(const DirectoryProbe&, DeviceStream) {
  return no_cuda("directory_probe");
}

}  // namespace rowtide
