#include "tests/support/cuda_on_cpu/fault.h"

#include <signal.h>
#include <sys/mman.h>

#include <string>

#include "tests/support/cuda_on_cpu/block.h"
#include "tests/support/cuda_on_cpu/memory.h"
#include "tests/support/cuda_on_cpu/report.h"

namespace cuda_on_cpu {
namespace {

// What the host touched, kept plain since a signal handler writes it.
const void* volatile touched = nullptr;

void go_on_with_region_open() {
  mprotect(const_cast<std::byte*>(region()), region_bytes(), PROT_READ | PROT_WRITE);
}

// A fault is raised by the very instruction that touches, so the handler runs at a known place:
// host code, which is let through and reported later, or a fiber, which is left for ever.
void on_fault(int signal, siginfo_t* info, void*) {
  if (running != nullptr) {
    report(describe(*running) + " touches " + describe(info->si_addr) + " at an address where " +
           "nothing is mapped");
    abandon_kernel();
  }
  if (in_region(info->si_addr)) {
    touched = info->si_addr;
    go_on_with_region_open();
    return;
  }
  ::signal(signal, SIG_DFL);  // the instruction runs again, and ends the program
}

}  // namespace

void watch_faults() {
  static std::byte stack[64 << 10];
  stack_t alternate = {};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

void report_host_accesses() {
  const void* const address = touched;
  touched = nullptr;
  if (address == nullptr) return;
  report("the host touches " + describe(address));
  mprotect(const_cast<std::byte*>(region()), region_bytes(), PROT_NONE);
}

}  // namespace cuda_on_cpu
