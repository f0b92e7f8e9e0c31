// What differs between the nets beyond what is linked.

#include <sanitizer/asan_interface.h>

#include "tests/support/cuda_on_cpu/control.h"
#include "tests/support/cuda_on_cpu/report.h"

namespace cuda_on_cpu {

const char* net() { return CUDA_ON_CPU_NET; }

}  // namespace cuda_on_cpu

#if defined(__SANITIZE_ADDRESS__)

// AddressSanitizer reports and goes on: its reports are collected like all others, so that a test
// can expect one.
extern "C" const char* __asan_default_options() {
  return "halt_on_error=0:detect_leaks=0:allocator_may_return_null=1";
}

namespace {

// From "==1==ERROR: AddressSanitizer: use-after-poison on address ..." the one line that matters.
void on_error(const char* text) {
  std::string line = text;
  const size_t begin = line.find("AddressSanitizer: ");
  if (begin != std::string::npos) line = line.substr(begin);
  cuda_on_cpu::report(line.substr(0, line.find('\n')));
}

const bool collecting = (__asan_set_error_report_callback(on_error), true);

}  // namespace

#endif
