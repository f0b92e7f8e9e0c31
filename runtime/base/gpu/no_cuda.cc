// What a build without CUDA links in place of the .cu files of this folder.

#include "runtime/base/gpu/device_arena.h"
#include "runtime/base/gpu/devices.h"
#include "runtime/base/gpu/stream.h"

namespace rowtide {
namespace {

Status no_cuda(const char* what) {
  return {Code::kUnavailable, std::string(what) + " needs CUDA, and this build has devices: " +
                                  gpu_devices_in_this_build()};
}

}  // namespace

const char* gpu_devices_in_this_build() { return "cpu"; }

Stream::~Stream() = default;
Result<Stream> Stream::create() { return no_cuda("a device stream"); }
Status Stream::wait(const Event&) { return no_cuda("a device stream"); }
Status Stream::synchronize() { return no_cuda("a device stream"); }

Event::~Event() = default;
Result<Event> Event::create() { return no_cuda("a device event"); }
Status Event::record(const Stream&) { return no_cuda("a device event"); }
Status Event::synchronize() { return no_cuda("a device event"); }

DeviceArena::~DeviceArena() = default;
Result<DeviceArena> DeviceArena::reserve(uint64_t, const std::string& name) {
  return no_cuda(name.c_str());
}
PinnedArena::~PinnedArena() = default;
Result<PinnedArena> PinnedArena::reserve(uint64_t, const std::string& name) {
  return no_cuda(name.c_str());
}
Status copy_to_device(void*, const void*, uint64_t, DeviceStream) {
  return no_cuda("a copy to a device");
}
Status copy_to_host(void*, const void*, uint64_t, DeviceStream) {
  return no_cuda("a copy from a device");
}

}  // namespace rowtide
