#pragma once
// instruction_set — which of the compiled versions of an op runs on this machine.
//
// A file X_lanes.cc is one plain 32-lane source, compiled once for each instruction set into the
// namespace of that name; X_cpu.cc picks one.  All give the same bits.

#include <span>

namespace rowtide {

enum class InstructionSet { kScalar, kAvx2, kAvx512 };

// The best that this machine has, or what the environment variable ROWTIDE_ISA (scalar, avx2,
// avx512) or force_instruction_set() asks for if the machine has it.
InstructionSet instruction_set();
// Those that this machine can run, scalar first.
std::span<const InstructionSet> instruction_sets();
// For tests and benchmarks.  REQUIRES: it is in instruction_sets(); no op is running.
void force_instruction_set(InstructionSet set);
const char* instruction_set_name(InstructionSet set);

// Calls the version of `name` (a function in the namespaces scalar, avx2, avx512) that runs here.
#if defined(__x86_64__)
#define ROWTIDE_FOR_THIS_CPU(name)                             \
  (instruction_set() == InstructionSet::kAvx512 ? avx512::name \
   : instruction_set() == InstructionSet::kAvx2 ? avx2::name   \
                                                : scalar::name)
#else
#define ROWTIDE_FOR_THIS_CPU(name) (scalar::name)
#endif

}  // namespace rowtide
