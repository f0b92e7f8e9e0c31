#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "kernels/pooled_lookup_gpu.h"
#include "runtime/base/gpu/gpu.h"

namespace rowtide {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kMaxBlocks = 4096;  // enough to fill any GPU of today
constexpr uint32_t kWarp = 32;

HOST_DEVICE inline float widen(float x) { return x; }
HOST_DEVICE inline float widen(__half x) { return __half2float(x); }
HOST_DEVICE inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }

// kVector neighbouring elements, read by one load.
template <typename Element, int kVector>
struct alignas(sizeof(Element) * kVector) Piece {
  Element at[kVector];
};

// A lane's share of one bag: the pieces at `column`, summed over occurrences [begin, end) in order.
// The lanes of the group find the rows of the next `group` occurrences together, one each, and
// hand them round, so that the loads of the rows themselves wait for nothing.
template <typename Element, int kVector>
__device__ void pool(const PooledLookup& op, int64_t begin, int64_t end, uint32_t column,
                     uint32_t lane, uint32_t group, uint32_t mask, float (&sum)[kVector]) {
  for (int64_t at = begin; at < end; at += group) {
    const bool mine = at + lane < end;
    const uint32_t unique = mine ? op.unique[at + lane] : kSkipped;
    const Slot my_slot = unique == kSkipped ? kNoSlot : op.slots[unique];
    const float my_weight = mine && op.weights != nullptr ? op.weights[at + lane] : 1.0f;
    const uint32_t count = static_cast<uint32_t>(std::min(end - at, int64_t{group}));
#pragma unroll 4
    for (uint32_t k = 0; k < count; ++k) {
      const Slot slot = __shfl_sync(mask, my_slot, k, group);
      const float weight = __shfl_sync(mask, my_weight, k, group);
      if (slot == kNoSlot || column >= op.format.width) continue;
      const std::byte* row = op.planes.weights + uint64_t{slot} * op.planes.weight_stride;
      const auto piece = *reinterpret_cast<const Piece<Element, kVector>*>(
          row + uint64_t{column} * sizeof(Element));
      for (int v = 0; v < kVector; ++v) {
        const float x = widen(piece.at[v]);
        sum[v] += op.weights == nullptr ? x : weight * x;
      }
    }
  }
}

// `group` lanes (a power of two) pool one bag, kVector neighbouring columns each, and come round
// again for rows that are wider.  Grid-stride over bags: any grid is correct, a big one is fast.
template <typename Element, int kVector>
__global__ void pooled_lookup_kernel(PooledLookup op, uint32_t group) {
  const uint32_t lane = threadIdx.x % group;
  const uint32_t mask = (0xFFFFFFFFu >> (kWarp - group)) << (threadIdx.x % kWarp - lane);
  const uint64_t groups = uint64_t{gridDim.x} * blockDim.x / group;
  const uint64_t first_bag = (uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) / group;
  for (uint64_t bag = first_bag; bag < op.bags; bag += groups) {
    const int64_t begin = op.offsets[bag];
    const int64_t end = op.offsets[bag + 1];
    for (uint32_t first = 0; first < op.format.width; first += group * kVector) {
      const uint32_t column = first + lane * kVector;
      float sum[kVector] = {};
      pool<Element, kVector>(op, begin, end, column, lane, group, mask, sum);
      if (column >= op.format.width) continue;
      const bool mean = op.pooling == Pooling::kMean && end > begin;
      for (int v = 0; v < kVector; ++v) {
        op.out[bag * op.out_stride + column + v] =
            mean ? sum[v] / static_cast<float>(end - begin) : sum[v];
      }
    }
  }
}

// Four columns a lane where every row allows it: then a row of 32 fp32 is 8 lanes of 16 bytes.
template <typename Element>
void launch_pooled_lookup(const PooledLookup& op, DeviceStream stream) {
  const bool by_four = op.format.width % 4 == 0;
  const uint32_t lanes = by_four ? op.format.width / 4 : op.format.width;
  uint32_t group = 1;
  while (group < kWarp && group < lanes) group *= 2;
  const uint64_t blocks = std::min((op.bags - 1) / (kThreads / group) + 1, uint64_t{kMaxBlocks});
  launch(by_four ? pooled_lookup_kernel<Element, 4> : pooled_lookup_kernel<Element, 1>,
         dim3(static_cast<uint32_t>(blocks)), kThreads, /*shared_bytes=*/0, stream, op, group);
}

}  // namespace

Status pooled_lookup_gpu(const PooledLookup& op, DeviceStream stream) {
  ROWTIDE_CHECK(op.pooling != Pooling::kNone && op.format.width > 0);
  if (op.bags == 0) return {};  // CUDA refuses an empty grid
  switch (op.format.precision) {
    case Precision::kFp32:
      launch_pooled_lookup<float>(op, stream);
      break;
    case Precision::kFp16:
      launch_pooled_lookup<__half>(op, stream);
      break;
    case Precision::kBf16:
      launch_pooled_lookup<__nv_bfloat16>(op, stream);
      break;
  }
  return launch_status("pooled_lookup");
}

}  // namespace rowtide
