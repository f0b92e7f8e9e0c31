#pragma once
// GpuCase — one comparison of a GPU op with its meaning, runnable on a GPU and on the CPU alike.
//
// It needs neither gtest nor CUDA's headers: the tests wrap it, `make gpu-check` loops over it.

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace rowtide {

struct GpuCase {
  std::string name;
  std::function<Status()> run;  // kCorrupt naming the first difference, or the device's error
};

inline void PrintTo(const GpuCase& test, std::ostream* out) { *out << test.name; }

std::vector<GpuCase> pooled_lookup_gpu_cases();
std::vector<GpuCase> directory_probe_gpu_cases();

}  // namespace rowtide
