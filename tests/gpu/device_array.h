#pragma once
// DeviceArray — a host array's twin in device memory, between guard words.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/gpu/device_arena.h"

namespace rowtide {

// Words around each array, for a real GPU: whoever writes there is found at download().  On the CPU
// it is 0, since the emulator's own redzones see reads too.
extern const size_t kGuardBytes;

// Copies in, once made, and copies out as work on the stream; waits for each.
template <typename T>
class DeviceArray {
 public:
  static Result<DeviceArray> upload(std::span<const T> values, Stream& stream) {
    DeviceArray array(values.size());
    const uint64_t bytes = 2 * kGuardBytes + std::max<size_t>(values.size_bytes(), 1);
    auto device = DeviceArena::reserve(bytes, "a test array");
    if (!device.ok()) return device.status();
    auto pinned = PinnedArena::reserve(bytes, "a test array");
    if (!pinned.ok()) return pinned.status();
    array.device_ = std::move(*device);
    array.pinned_ = std::move(*pinned);
    std::memset(array.pinned_.bytes(), kMark, bytes);
    if (!values.empty()) {
      std::memcpy(array.pinned_.bytes() + kGuardBytes, values.data(), values.size_bytes());
    }
    ROWTIDE_TRY(copy_to_device(array.device_.bytes(), array.pinned_.bytes(), bytes, stream.get()));
    ROWTIDE_TRY(stream.synchronize());
    return Result<DeviceArray>(std::move(array));
  }

  T* device() const { return reinterpret_cast<T*>(device_.bytes() + kGuardBytes); }
  size_t size() const { return size_; }

  Result<std::vector<T>> download(Stream& stream) {
    const uint64_t bytes = device_.size();
    ROWTIDE_TRY(copy_to_host(pinned_.bytes(), device_.bytes(), bytes, stream.get()));
    ROWTIDE_TRY(stream.synchronize());
    const auto is_mark = [](std::byte b) { return b == static_cast<std::byte>(kMark); };
    const std::byte* const first = pinned_.bytes() + kGuardBytes;
    const std::byte* const end = first + size_ * sizeof(T);
    if (!std::all_of(pinned_.bytes(), pinned_.bytes() + kGuardBytes, is_mark) ||
        !std::all_of(end, end + kGuardBytes, is_mark)) {
      return Status(Code::kCorrupt, "written outside an array of " + std::to_string(size_));
    }
    std::vector<T> values(size_);
    if (size_ > 0) std::memcpy(values.data(), first, size_ * sizeof(T));
    return values;
  }

 private:
  static constexpr int kMark = 0xA5;
  explicit DeviceArray(size_t size) : size_(size) {}

  size_t size_;
  DeviceArena device_;
  PinnedArena pinned_;
};

template <typename T>
Result<DeviceArray<T>> upload(const std::vector<T>& values, Stream& stream) {
  return DeviceArray<T>::upload(values, stream);
}

}  // namespace rowtide
