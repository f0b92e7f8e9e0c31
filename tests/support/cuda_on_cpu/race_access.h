#pragma once
// race_access — the door from the instrumented kernels to the shadow.

#include <cstddef>

namespace cuda_on_cpu {
struct Thread;

namespace race {

enum class Access { kRead, kWrite, kAtomic };

// Checks and notes an access to the region by the instruction at `code` (null: an intrinsic).
void access(Thread& thread, const void* memory, size_t bytes, Access access, const void* code);

}  // namespace race
}  // namespace cuda_on_cpu
