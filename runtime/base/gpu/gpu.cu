#include <string>

#include "runtime/base/gpu/devices.h"
#include "runtime/base/gpu/gpu.h"

namespace rowtide {

Status device_status(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  const Code code = error == cudaErrorMemoryAllocation ? Code::kNoSpace : Code::kDevice;
  return {code, std::string(what) + ": " + cudaGetErrorString(error) + " (" +
                    cudaGetErrorName(error) + ")"};
}

const char* gpu_devices_in_this_build() { return "cpu, cuda"; }

}  // namespace rowtide
