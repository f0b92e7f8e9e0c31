// What differs between the nets beyond what is linked.

#include <fcntl.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

#include "tests/support/cuda_on_cpu/control.h"
#include "tests/support/cuda_on_cpu/report.h"

namespace cuda_on_cpu {

const char* net() { return CUDA_ON_CPU_NET; }

#if !defined(__SANITIZE_ADDRESS__)

void print_sanitizer_reports(bool) {}

}  // namespace cuda_on_cpu

#else

void print_sanitizer_reports(bool print) {
  static const intptr_t nowhere = open("/dev/null", O_WRONLY);
  __sanitizer_set_report_fd(reinterpret_cast<void*>(print ? intptr_t{2} : nowhere));
}

}  // namespace cuda_on_cpu

// AddressSanitizer reports and goes on: its reports are collected like all others, so that a test
// can expect one.
extern "C" const char* __asan_default_options() {
  return "halt_on_error=0:suppress_equal_pcs=0:detect_leaks=0:allocator_may_return_null=1";
}

namespace {

// From "==1==ERROR: AddressSanitizer: use-after-poison on address ... #0 0x... in kernel a.cu:1"
// the kind and the place.
void on_error(const char* text) {
  const std::string_view all = text;
  const auto piece = [&](const char* from, const char* until) {
    const size_t begin = all.find(from);
    if (begin == std::string_view::npos) return std::string();
    return std::string(all.substr(begin, all.find(until, begin) - begin));
  };
  cuda_on_cpu::report(piece("AddressSanitizer: ", " on ") + piece(" in ", "\n"));
}

const bool collecting = (__asan_set_error_report_callback(on_error), true);

}  // namespace

#endif
