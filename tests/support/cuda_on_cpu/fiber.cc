#include "tests/support/cuda_on_cpu/fiber.h"

#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "runtime/base/status.h"

#if defined(__x86_64__)
// Saves the registers that a called function must keep, and the stack pointer in *rdi; takes those
// of the stack in rsi.
asm(R"(
.text
.globl cuda_on_cpu_switch
.type cuda_on_cpu_switch, @function
cuda_on_cpu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cuda_on_cpu_switch, .-cuda_on_cpu_switch
)");
extern "C" void cuda_on_cpu_switch(void** save, void* load);
#endif

namespace cuda_on_cpu {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAsan = true;
#else
constexpr bool kAsan = false;
#endif

#if defined(__x86_64__)
void raw_switch(Fiber& from, Fiber& to) { cuda_on_cpu_switch(&from.sp, to.sp); }
#else
void raw_switch(Fiber& from, Fiber& to) { swapcontext(&from.context, &to.context); }
#endif

// The host thread's stack, which AddressSanitizer wants to hear of when we go back to it.
const void* host_stack = nullptr;
size_t host_stack_bytes = 0;

void start_switch(void** save, const Fiber& to) {
  if constexpr (kAsan) {
    __sanitizer_start_switch_fiber(save, to.stack != nullptr ? to.stack : host_stack,
                                   to.stack != nullptr ? to.stack_bytes : host_stack_bytes);
  }
}

void finish_switch(void* fake_stack, bool from_host) {
  if constexpr (kAsan) {
    const void* old = nullptr;
    size_t old_bytes = 0;
    __sanitizer_finish_switch_fiber(fake_stack, &old, &old_bytes);
    if (from_host && host_stack == nullptr) host_stack = old, host_stack_bytes = old_bytes;
  }
}

}  // namespace

void prepare(Fiber& fiber, std::byte* stack, void (*entry)()) {
  fiber.stack = stack;
  fiber.stack_bytes = kStackBytes;
  fiber.fake_stack = nullptr;
#if defined(__x86_64__)
  // Six registers, then the address that `ret` takes; after it the stack pointer is 8 mod 16, as at
  // the entry of every function.
  void** top = reinterpret_cast<void**>(stack + kStackBytes) - 2;
  *top = reinterpret_cast<void*>(entry);
  std::memset(top - 6, 0, 6 * sizeof(void*));
  fiber.sp = top - 6;
#else
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = stack;
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, entry, 0);
#endif
}

void switch_fiber(Fiber& from, Fiber& to) {
  start_switch(&from.fake_stack, to);
  raw_switch(from, to);
  finish_switch(from.fake_stack, /*from_host=*/false);
}

void leave_fiber(Fiber& from, Fiber& to) {
  start_switch(nullptr, to);
  raw_switch(from, to);
  __builtin_unreachable();
}

void fiber_entered() { finish_switch(nullptr, /*from_host=*/true); }

void before_jump_to_host(Fiber& host) { start_switch(nullptr, host); }
void after_jump_to_host() { finish_switch(nullptr, /*from_host=*/false); }

void clean_stack([[maybe_unused]] std::byte* stack) {
  ASAN_UNPOISON_MEMORY_REGION(stack, kStackBytes);
}

std::byte* stack_of(uint32_t i) {
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  static std::byte* const pool = [] {
    void* memory = mmap(nullptr, kMaxStacks * (kStackBytes + page), PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ROWTIDE_CHECK(memory != MAP_FAILED);
    return static_cast<std::byte*>(memory);
  }();
  static uint32_t made = 0;
  ROWTIDE_CHECK(i < kMaxStacks);
  for (; made <= i; ++made) {
    std::byte* stack = pool + made * (kStackBytes + page) + page;
    ROWTIDE_CHECK(mprotect(stack, kStackBytes, PROT_READ | PROT_WRITE) == 0);
  }
  return pool + i * (kStackBytes + page) + page;
}

}  // namespace cuda_on_cpu
