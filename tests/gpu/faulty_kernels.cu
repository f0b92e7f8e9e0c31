#include "runtime/base/gpu/gpu.h"
#include "tests/gpu/faulty_kernels.h"

namespace rowtide {
namespace {

constexpr uint32_t kAllLanes = 0xFFFFFFFFu;

__global__ void block_sum_kernel(const uint32_t* in, uint32_t* out, bool barrier) {
  ROWTIDE_SHARED(uint32_t, tile, kFaultyThreads);
  tile[threadIdx.x] = in[blockIdx.x * kFaultyThreads + threadIdx.x];
  __syncthreads();
  for (uint32_t half = kFaultyThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) tile[threadIdx.x] += tile[threadIdx.x + half];
    if (barrier) __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = tile[0];
}

__global__ void warp_reverse_kernel(const uint32_t* in, uint32_t* out, bool sync) {
  ROWTIDE_SHARED(uint32_t, tile, kFaultyThreads);
  const uint32_t i = blockIdx.x * kFaultyThreads + threadIdx.x;
  tile[threadIdx.x] = in[i];
  if (sync) __syncwarp();
  out[i] = tile[threadIdx.x ^ 31];
}

__global__ void add_one_kernel(const uint32_t* in, uint32_t* out, uint32_t n, bool bounds_check) {
  const uint32_t i = blockIdx.x * kFaultyThreads + threadIdx.x;
  if (bounds_check && i >= n) return;
  out[i] = in[i] + 1;
}

__global__ void count_values_kernel(const uint32_t* in, uint32_t* out, bool cleared) {
  ROWTIDE_SHARED(uint32_t, counts, 32);
  if (cleared && threadIdx.x < 32) counts[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&counts[in[blockIdx.x * kFaultyThreads + threadIdx.x]], 1);
  __syncthreads();
  if (threadIdx.x < 32) atomicAdd(&out[threadIdx.x], counts[threadIdx.x]);
}

__global__ void count_threads_kernel(uint32_t* out, bool atomic) {
  if (atomic) {
    atomicAdd(out, 1);
  } else {
    *out += 1;
  }
}

__global__ void locked_sums_kernel(uint32_t* lock, uint32_t* sums, LockFault fault) {
  if (threadIdx.x % 32 != 0) ROWTIDE_LEAVE;
  if (fault != LockFault::kNoLock) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
  }
  if (fault != LockFault::kNoFenceAfter) __threadfence();
  // A warp's worth of time passes between the load and the store.
  const uint32_t first = sums[0], second = sums[1];
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t one = __shfl_sync(1u << lane, 1, lane);
  sums[0] = first + one;
  sums[1] = second + 2 * one;
  if (fault != LockFault::kNoFenceBefore) __threadfence();
  if (fault == LockFault::kPlainUnlock) {
    *lock = 0;
  } else if (fault != LockFault::kNeverUnlocked) {
    atomicExch(lock, 0);
  }
}

__global__ void meeting_kernel(uint32_t* out, MeetFault fault) {
  const uint32_t lane = threadIdx.x % 32;
  const bool upper = threadIdx.x >= 32;
  if (fault == MeetFault::kNone && upper) ROWTIDE_LEAVE;
  if (fault == MeetFault::kBareReturn && upper) return;
  uint32_t mask = kAllLanes;
  if (fault == MeetFault::kMaskTooWide && lane == 31) return;
  if (fault == MeetFault::kMaskWithoutSelf) mask = kAllLanes << 1;
  if (fault == MeetFault::kReadsOutsideMask) mask = lane < 16 ? 0x0000FFFFu : 0xFFFF0000u;
  const uint32_t value = __shfl_sync(mask, lane, 0);
  if (fault == MeetFault::kTwoBarriers && upper) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = value;
}

__global__ void read_kernel(const uint32_t* address, uint32_t* out) {
  if (threadIdx.x == 0) *out = *address;
}

__global__ void fill_shared_kernel(uint32_t count, bool dynamic) {
  ROWTIDE_SHARED(uint32_t, fixed, 64);
  ROWTIDE_DYNAMIC_SHARED(uint32_t, tile);
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) (dynamic ? tile : fixed)[i] = i;
}

__device__ uint32_t shuffled(Shuffle shuffle, uint32_t value, uint32_t operand, uint32_t width) {
  switch (shuffle) {
    case Shuffle::kIndex:
      return __shfl_sync(kAllLanes, value, operand, width);
    case Shuffle::kUp:
      return __shfl_up_sync(kAllLanes, value, operand, width);
    case Shuffle::kDown:
      return __shfl_down_sync(kAllLanes, value, operand, width);
    case Shuffle::kXor:
      return __shfl_xor_sync(kAllLanes, value, operand, width);
  }
  return 0;
}

__global__ void shuffle_kernel(uint32_t* out, Shuffle shuffle, uint32_t operand, uint32_t width) {
  out[threadIdx.x] = shuffled(shuffle, 100 + threadIdx.x, operand, width);
}

__global__ void order_of_blocks_kernel(uint32_t* counter, uint32_t* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = atomicAdd(counter, 1);
}

__global__ void nothing_kernel() {}

}  // namespace

void start_block_sum(const uint32_t* in, uint32_t* out, uint32_t blocks, bool barrier,
                     DeviceStream stream) {
  launch(block_sum_kernel, blocks, kFaultyThreads, 0, stream, in, out, barrier);
}
void start_warp_reverse(const uint32_t* in, uint32_t* out, uint32_t blocks, bool sync,
                        DeviceStream stream) {
  launch(warp_reverse_kernel, blocks, kFaultyThreads, 0, stream, in, out, sync);
}
void start_add_one(const uint32_t* in, uint32_t* out, uint32_t n, bool bounds_check,
                   DeviceStream stream) {
  const uint32_t blocks = (n - 1) / kFaultyThreads + 1;
  launch(add_one_kernel, blocks, kFaultyThreads, 0, stream, in, out, n, bounds_check);
}
void start_count_values(const uint32_t* in, uint32_t* out, uint32_t blocks, bool cleared,
                        DeviceStream stream) {
  launch(count_values_kernel, blocks, kFaultyThreads, 0, stream, in, out, cleared);
}
void start_count_threads(uint32_t* out, bool atomic, DeviceStream stream) {
  launch(count_threads_kernel, 1, kFaultyThreads, 0, stream, out, atomic);
}
void start_locked_sums(uint32_t* lock, uint32_t* sums, LockFault fault, DeviceStream stream) {
  launch(locked_sums_kernel, 4, kFaultyThreads, 0, stream, lock, sums, fault);
}
void start_meeting(uint32_t* out, MeetFault fault, DeviceStream stream) {
  launch(meeting_kernel, 1, 64, 0, stream, out, fault);
}
void start_read(const uint32_t* address, uint32_t* out, DeviceStream stream) {
  launch(read_kernel, 1, 32, 0, stream, address, out);
}
void start_fill_shared(uint32_t count, bool dynamic, DeviceStream stream) {
  launch(fill_shared_kernel, 1, 32, /*shared_bytes=*/64 * 4, stream, count, dynamic);
}
void start_shuffle(uint32_t* out, Shuffle shuffle, uint32_t operand, uint32_t width,
                   DeviceStream stream) {
  launch(shuffle_kernel, 1, 32, 0, stream, out, shuffle, operand, width);
}
void start_order_of_blocks(uint32_t* counter, uint32_t* out, uint32_t blocks, DeviceStream stream) {
  launch(order_of_blocks_kernel, blocks, 32, 0, stream, counter, out);
}
void start_nothing(uint32_t blocks, uint32_t threads, uint32_t shared_bytes, DeviceStream stream) {
  launch(nothing_kernel, blocks, threads, shared_bytes, stream);
}
Status start_status() { return launch_status("a test kernel"); }

}  // namespace rowtide
