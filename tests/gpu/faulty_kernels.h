#pragma once
// faulty_kernels — small right kernels, most of which can be told to leave out what makes them
// right.
//
// All pointers are device memory.  Tests of the emulator only; never run on a GPU.

#include <cstdint>

#include "runtime/base/gpu/stream.h"

namespace rowtide {

inline constexpr uint32_t kFaultyThreads = 256;

// out[b] = the sum of in[256 b, 256 (b + 1)), a tree in shared memory.
void start_block_sum(const uint32_t* in, uint32_t* out, uint32_t blocks, bool barrier,
                     DeviceStream stream);
// out = each 32 values of in reversed, through shared memory.
void start_warp_reverse(const uint32_t* in, uint32_t* out, uint32_t blocks, bool sync,
                        DeviceStream stream);
// out[i] = in[i] + 1 for i in [0, n).
void start_add_one(const uint32_t* in, uint32_t* out, uint32_t n, bool bounds_check,
                   DeviceStream stream);
// out[v] += how often v < 32 is in `in`, counted in shared memory first.
void start_count_values(const uint32_t* in, uint32_t* out, uint32_t blocks, bool cleared,
                        DeviceStream stream);
// *out += 1 by each of 256 threads.
void start_count_threads(uint32_t* out, bool atomic, DeviceStream stream);

// sums[0] += 1, sums[1] += 2 by one lane of each warp of 4 blocks, under a lock.
enum class LockFault {
  kNone,
  kNoLock,
  kPlainUnlock,
  kNoFenceBefore,
  kNoFenceAfter,
  kNeverUnlocked
};
void start_locked_sums(uint32_t* lock, uint32_t* sums, LockFault fault, DeviceStream stream);

// Threads that do not meet where they should.
enum class MeetFault {
  kNone,             // the upper half leaves, as it may, before a barrier of the rest
  kBareReturn,       // it just returns
  kTwoBarriers,      // the halves wait at different barriers
  kMaskTooWide,      // the mask names lanes that do not come
  kMaskWithoutSelf,  // the mask does not name a lane that comes
  kReadsOutsideMask  // a shuffle reads a lane that the mask does not name
};
void start_meeting(uint32_t* out, MeetFault fault, DeviceStream stream);

// *out = *address, wherever that is.
void start_read(const uint32_t* address, uint32_t* out, DeviceStream stream);
// Writes `count` words of the 64 that shared memory has, fixed or dynamic.
void start_fill_shared(uint32_t count, bool dynamic, DeviceStream stream);
// out[lane] = __shfl_*_sync of 100 + lane by all 32 lanes of a warp.
enum class Shuffle { kIndex, kUp, kDown, kXor };
void start_shuffle(uint32_t* out, Shuffle shuffle, uint32_t operand, uint32_t width,
                   DeviceStream stream);
// out[b] = how many blocks had begun when block b did.
void start_order_of_blocks(uint32_t* counter, uint32_t* out, uint32_t blocks, DeviceStream stream);
// An empty kernel of any shape.
void start_nothing(uint32_t blocks, uint32_t threads, uint32_t shared_bytes, DeviceStream stream);
// Whether the last of them was accepted.
Status start_status();

}  // namespace rowtide
