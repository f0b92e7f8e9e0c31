// What kernels compiled with -fsanitize=thread call at each access, in place of ThreadSanitizer.
//
// Accesses to the emulated GPU's memory are checked.  The thread's own stack, its arguments, the
// program's constants and pinned memory are left alone; all else is memory that a GPU cannot reach.
// Now and then an access lets other threads run, so that a lost update is lost indeed.

#include "tests/support/cuda_on_cpu/block.h"
#include "tests/support/cuda_on_cpu/memory.h"
#include "tests/support/cuda_on_cpu/race_access.h"
#include "tests/support/cuda_on_cpu/random.h"
#include "tests/support/cuda_on_cpu/report.h"

extern "C" const char __executable_start, _end;

namespace cuda_on_cpu {
namespace {

using race::Access;

bool lies_in(const void* address, const void* begin, size_t bytes) {
  const auto offset = static_cast<const char*>(address) - static_cast<const char*>(begin);
  return offset >= 0 && static_cast<size_t>(offset) < bytes;
}

bool may_touch_host(const void* memory, size_t bytes, Access access) {
  const Call& call = *current_launch().call;
  const size_t image = static_cast<size_t>(&_end - &__executable_start);
  return lies_in(memory, running->fiber.stack, kStackBytes) ||
         (access == Access::kRead &&
          (lies_in(memory, &call, call.bytes) || lies_in(memory, &__executable_start, image))) ||
         is_pinned(memory, bytes);
}

void let_others_run() {
  static uint32_t left = 1;
  if (--left != 0) return;
  left = 1 + random().below(512);
  yield_after(left);
}

void on_access(const void* memory, size_t bytes, Access access, const void* after) {
  if (running == nullptr || lies_in(memory, running->fiber.stack, kStackBytes)) return;
  // A return address is that of the next instruction.
  const void* const code = static_cast<const char*>(after) - 1;
  if (!in_region(memory)) {
    if (!may_touch_host(memory, bytes, access)) {
      report(describe(*running) + " touches host memory, at " + line_of_code(code));
    }
    return;
  }
  if (in_shared(memory) && !lies_in(memory, running->block->shared.arena(), kBlockSharedBytes)) {
    report(describe(*running) + " touches another block's shared memory, at " + line_of_code(code));
  }
  race::access(*running, memory, bytes, access, code);
  let_others_run();
}

}  // namespace
}  // namespace cuda_on_cpu

// The names and signatures are those of the compiler's calls.
#define ON_ACCESS(name, bytes, kind)                                       \
  extern "C" void __tsan_##name(void* memory) {                            \
    cuda_on_cpu::on_access(memory, bytes, cuda_on_cpu::race::Access::kind, \
                           __builtin_return_address(0));                   \
  }
ON_ACCESS(read1, 1, kRead)
ON_ACCESS(read2, 2, kRead)
ON_ACCESS(read4, 4, kRead)
ON_ACCESS(read8, 8, kRead)
ON_ACCESS(read16, 16, kRead)
ON_ACCESS(write1, 1, kWrite)
ON_ACCESS(write2, 2, kWrite)
ON_ACCESS(write4, 4, kWrite)
ON_ACCESS(write8, 8, kWrite)
ON_ACCESS(write16, 16, kWrite)
ON_ACCESS(unaligned_read2, 2, kRead)
ON_ACCESS(unaligned_read4, 4, kRead)
ON_ACCESS(unaligned_read8, 8, kRead)
ON_ACCESS(unaligned_read16, 16, kRead)
ON_ACCESS(unaligned_write2, 2, kWrite)
ON_ACCESS(unaligned_write4, 4, kWrite)
ON_ACCESS(unaligned_write8, 8, kWrite)
ON_ACCESS(unaligned_write16, 16, kWrite)
#undef ON_ACCESS

extern "C" {
void __tsan_read_range(void* memory, size_t bytes) {
  cuda_on_cpu::on_access(memory, bytes, cuda_on_cpu::race::Access::kRead,
                         __builtin_return_address(0));
}
void __tsan_write_range(void* memory, size_t bytes) {
  cuda_on_cpu::on_access(memory, bytes, cuda_on_cpu::race::Access::kWrite,
                         __builtin_return_address(0));
}
void __tsan_vptr_update(void**, void*) {}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
}
