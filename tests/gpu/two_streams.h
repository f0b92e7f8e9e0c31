#pragma once
// TwoStreams — two streams, and arrays of words, for tests of the emulator.

#include <utility>
#include <vector>

#include "tests/gpu/device_array.h"

namespace rowtide {

using Words = DeviceArray<uint32_t>;

struct TwoStreams {
  Stream stream = std::move(*Stream::create());
  Stream other = std::move(*Stream::create());

  Words words(size_t count, uint32_t value) {
    return std::move(*upload(std::vector<uint32_t>(count, value), stream));
  }
  Words counted(size_t count, uint32_t modulus) {
    std::vector<uint32_t> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<uint32_t>(i % modulus);
    return std::move(*upload(values, stream));
  }
  // Empty if the device failed.
  std::vector<uint32_t> read(Words& words) {
    auto values = words.download(stream);
    return values.ok() ? *values : std::vector<uint32_t>();
  }
};

}  // namespace rowtide
