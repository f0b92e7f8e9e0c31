#pragma once
// Fiber — a stack of its own, and the switch between two of them.
//
// On x86-64 a switch saves six registers; elsewhere it is ucontext's, some 50 times slower.

#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace cuda_on_cpu {

// Where a fiber stands while another runs.
struct Fiber {
  std::byte* stack = nullptr;  // its lowest byte; null: the stack of the host thread
  size_t stack_bytes = 0;
  void* fake_stack = nullptr;  // AddressSanitizer's
#if defined(__x86_64__)
  void* sp = nullptr;
#else
  ucontext_t context;
#endif
};

// Bytes of a CUDA thread's stack, a guard page below it not counted.
inline constexpr size_t kStackBytes = 64 << 10;

// Lays a fiber out on `stack` so that the first switch to it calls `entry`, which never returns.
void prepare(Fiber& fiber, std::byte* stack, void (*entry)());
// Suspends `from`, the running one, and goes on in `to`.
void switch_fiber(Fiber& from, Fiber& to);
// The same from a fiber that will never run again.
[[noreturn]] void leave_fiber(Fiber& from, Fiber& to);
// The first thing that an entry does.
void fiber_entered();
// Before and after a jump out of a fiber to the host thread's stack.
void before_jump_to_host(Fiber& host);
void after_jump_to_host();
// Forgets what abandoned fibers left in AddressSanitizer's shadow.
void clean_stack(std::byte* stack);

// The i-th stack of a pool that grows as asked, each above a guard page.  REQUIRES: i < kMaxStacks.
inline constexpr uint32_t kMaxStacks = 4096;
std::byte* stack_of(uint32_t i);

}  // namespace cuda_on_cpu
