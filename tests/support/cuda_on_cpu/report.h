#pragma once
// report — faults collected while emulated work runs.

#include <string>

namespace cuda_on_cpu {

// Keeps `text` for take_reports(), once; at most 100 of them.
void report(std::string text);

// The function, and the file and line, of a code address, by addr2line; the bare address without
// it.
std::string name_of_code(const void* address);
std::string line_of_code(const void* address);

}  // namespace cuda_on_cpu
