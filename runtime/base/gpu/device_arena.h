#pragma once
// DeviceArena, PinnedArena — one reserved piece of device memory, or of host memory that a device
// copies to and from.  Sizes are fixed at open, so that what was predicted is what is used.
//
// They know nothing of what lies in them.  Contents are undefined until written.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "runtime/base/gpu/stream.h"
#include "runtime/base/status.h"

namespace rowtide {

class DeviceArena {
 public:
  DeviceArena() = default;
  ~DeviceArena();
  DeviceArena(DeviceArena&& other) noexcept
      : bytes_(std::exchange(other.bytes_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  DeviceArena& operator=(DeviceArena&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(size_, other.size_);
    return *this;
  }

  // Begins at a multiple of 256 bytes.  `name` is for messages: "the hot slots of group 64+4".
  // Errors: kNoSpace naming bytes asked and bytes there; kDevice; kUnavailable without CUDA.
  static Result<DeviceArena> reserve(uint64_t bytes, const std::string& name);

  // Device memory: the host may pass it on, not follow it.
  std::byte* bytes() const { return bytes_; }
  uint64_t size() const { return size_; }

 private:
  std::byte* bytes_ = nullptr;
  uint64_t size_ = 0;
};

class PinnedArena {
 public:
  PinnedArena() = default;
  ~PinnedArena();
  PinnedArena(PinnedArena&& other) noexcept
      : bytes_(std::exchange(other.bytes_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  PinnedArena& operator=(PinnedArena&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(size_, other.size_);
    return *this;
  }

  // Errors: kNoSpace naming bytes asked; kDevice; kUnavailable without CUDA.
  static Result<PinnedArena> reserve(uint64_t bytes, const std::string& name);

  std::byte* bytes() const { return bytes_; }
  uint64_t size() const { return size_; }

 private:
  std::byte* bytes_ = nullptr;
  uint64_t size_ = 0;
};

// Copies as work on `stream`.  `pinned` lies in a PinnedArena and, like the device's side, must
// live and keep still until the stream has passed.  Errors: kDevice.
Status copy_to_device(void* device, const void* pinned, uint64_t bytes, DeviceStream stream);
Status copy_to_host(void* pinned, const void* device, uint64_t bytes, DeviceStream stream);

}  // namespace rowtide
