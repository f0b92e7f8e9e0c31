#pragma once
// control — what a test says to the emulated GPU, and what it hears from it.

#include <cstdint>
#include <string>
#include <vector>

namespace cuda_on_cpu {

// Forgets reports and errors of what ran before, and fixes every choice from here on: the order of
// blocks and threads, and when streams run.  ROWTIDE_GPU_SEED in the environment replaces `seed`.
// Work that streams still hold is dropped.
void reset(uint64_t seed);

// The seed in use, for messages.
uint64_t seed();

// Faults found since reset() or the last call, each distinct text once.
std::vector<std::string> take_reports();

// Whether AddressSanitizer prints what it finds; it is collected either way.
void print_sanitizer_reports(bool print);

// The net this program was built with: "plain", "asan" or "race".
const char* net();

// The seed that ROWTIDE_GPU_SEED asks for, or `otherwise`.
uint64_t seed_or(uint64_t otherwise);

}  // namespace cuda_on_cpu
