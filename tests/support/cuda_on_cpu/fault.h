#pragma once
// fault — touching what one may not: the host device memory, a kernel anything unmapped.

namespace cuda_on_cpu {

// Takes SIGSEGV and SIGBUS over.  Faults that are neither of the two end the program as before.
void watch_faults();

// Leaves the running thread, and with it its kernel, for good.
[[noreturn]] void abandon_kernel();

}  // namespace cuda_on_cpu
