// A build without CUDA has every function of one with it, and says what is missing.

#include <gtest/gtest.h>

#include "kernels/directory_probe_gpu.h"
#include "kernels/pooled_lookup_gpu.h"
#include "runtime/base/gpu/device_arena.h"
#include "runtime/base/gpu/devices.h"

namespace rowtide {
namespace {

void expect_unavailable(const Status& status, const std::string& what) {
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(status.message(), what + " needs CUDA, and this build has devices: cpu");
}

TEST(NoCudaTest, NamesTheDevicesOfTheBuild) { EXPECT_STREQ(gpu_devices_in_this_build(), "cpu"); }

TEST(NoCudaTest, OpsAndMemoryAreUnavailableByName) {
  expect_unavailable(pooled_lookup_gpu({}, nullptr), "pooled_lookup on a GPU");
  expect_unavailable(directory_probe_gpu({}, nullptr), "directory_probe on a GPU");
  expect_unavailable(Stream::create().status(), "a device stream");
  expect_unavailable(Event::create().status(), "a device event");
  expect_unavailable(DeviceArena::reserve(1, "the hot slots").status(), "the hot slots");
  expect_unavailable(PinnedArena::reserve(1, "the warm slots").status(), "the warm slots");
}

}  // namespace
}  // namespace rowtide
