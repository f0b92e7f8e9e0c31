#include "runtime/base/gpu/device_arena.h"
#include "runtime/base/gpu/gpu.h"

namespace rowtide {
namespace {

std::string needs(const std::string& name, uint64_t bytes, const char* of_what) {
  return name + " needs " + std::to_string(bytes) + " bytes of " + of_what;
}

}  // namespace

DeviceArena::~DeviceArena() {
  if (bytes_ != nullptr) (void)cudaFree(bytes_);
}

Result<DeviceArena> DeviceArena::reserve(uint64_t bytes, const std::string& name) {
  DeviceArena arena;
  if (bytes == 0) return Result<DeviceArena>(std::move(arena));
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // said here: it must not show up at the next launch
    size_t there = 0, total = 0;
    ROWTIDE_TRY(device_status(cudaMemGetInfo(&there, &total), "asking for free device memory"));
    return {Code::kNoSpace,
            needs(name, bytes, "device memory") + ", " + std::to_string(there) + " are there"};
  }
  if (error != cudaSuccess) return device_status(error, name.c_str());
  arena.bytes_ = static_cast<std::byte*>(memory);
  arena.size_ = bytes;
  return Result<DeviceArena>(std::move(arena));
}

PinnedArena::~PinnedArena() {
  if (bytes_ != nullptr) (void)cudaFreeHost(bytes_);
}

Result<PinnedArena> PinnedArena::reserve(uint64_t bytes, const std::string& name) {
  PinnedArena arena;
  if (bytes == 0) return Result<PinnedArena>(std::move(arena));
  void* memory = nullptr;
  const cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return {Code::kNoSpace, needs(name, bytes, "pinned host memory")};
  }
  if (error != cudaSuccess) return device_status(error, name.c_str());
  arena.bytes_ = static_cast<std::byte*>(memory);
  arena.size_ = bytes;
  return Result<PinnedArena>(std::move(arena));
}

Status copy_to_device(void* device, const void* pinned, uint64_t bytes, DeviceStream stream) {
  if (bytes == 0) return {};
  return device_status(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, stream),
                       "copying to the device");
}

Status copy_to_host(void* pinned, const void* device, uint64_t bytes, DeviceStream stream) {
  if (bytes == 0) return {};
  return device_status(cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, stream),
                       "copying from the device");
}

}  // namespace rowtide
