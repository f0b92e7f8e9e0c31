#include <algorithm>

#include "kernels/directory_probe_gpu.h"
#include "runtime/base/gpu/gpu.h"

namespace rowtide {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kMaxBlocks = 4096;  // enough to fill any GPU of today
constexpr uint32_t kWarp = 32;
constexpr uint32_t kAllLanes = 0xFFFFFFFFu;
static_assert(kWays == kWarp, "a lane for each way");

// A warp takes 32 keys at a time.  Each lane hashes one of them; then the warp probes set after
// set, a way for each lane: the 32 tags are one 64-byte line, and only ways whose tag agrees read
// their key.  Any grid is correct, a big one is fast.
__global__ void directory_probe_kernel(DirectoryProbe op) {
  const uint32_t lane = threadIdx.x % kWarp;
  const uint64_t stride = uint64_t{gridDim.x} * blockDim.x;
  const uint64_t first_key = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x - lane;
  for (uint64_t base = first_key; base < op.n; base += stride) {
    const uint64_t mine = base + lane;
    const Key my_key = mine < op.n ? op.keys[mine] : kNoKey;
    const uint32_t my_set = op.view.set_of(my_key);
    const uint32_t keys = static_cast<uint32_t>(std::min(op.n - base, uint64_t{kWarp}));
    Slot my_slot = kNoSlot;
#pragma unroll 4
    for (uint32_t k = 0; k < keys; ++k) {
      const Key key = __shfl_sync(kAllLanes, my_key, k);
      const uint32_t set = __shfl_sync(kAllLanes, my_set, k);
      const uint64_t way = uint64_t{set} * kWays + lane;
      const bool here = op.view.tags[way] == op.view.tag_of(key) && op.view.keys[way] == key;
      const uint32_t found = __ballot_sync(kAllLanes, here);
      if (lane == k && found != 0) my_slot = set * kWays + __ffs(found) - 1;
    }
    if (mine < op.n) op.slots[mine] = my_slot;
  }
}

__global__ void find_nothing_kernel(Slot* slots, uint64_t n) {
  const uint64_t stride = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
    slots[i] = kNoSlot;
  }
}

}  // namespace

Status directory_probe_gpu(const DirectoryProbe& op, DeviceStream stream) {
  if (op.n == 0) return {};  // CUDA refuses an empty grid
  const uint64_t blocks = std::min((op.n - 1) / kThreads + 1, uint64_t{kMaxBlocks});
  const dim3 grid(static_cast<uint32_t>(blocks));
  if (op.view.sets == 0) {
    launch(find_nothing_kernel, grid, kThreads, /*shared_bytes=*/0, stream, op.slots, op.n);
  } else {
    launch(directory_probe_kernel, grid, kThreads, /*shared_bytes=*/0, stream, op);
  }
  return launch_status("directory_probe");
}

}  // namespace rowtide
