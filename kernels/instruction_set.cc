#include "kernels/instruction_set.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace rowtide {
namespace {

constexpr InstructionSet kAll[] = {InstructionSet::kScalar, InstructionSet::kAvx2,
                                   InstructionSet::kAvx512};

size_t count_here() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  return avx512 ? 3 : avx2 ? 2 : 1;
#else
  return 1;
#endif
}

InstructionSet first_choice() {
  const auto here = instruction_sets();
  const char* wanted = std::getenv("ROWTIDE_ISA");
  for (InstructionSet set : here) {
    if (wanted != nullptr && std::string_view(wanted) == instruction_set_name(set)) return set;
  }
  return here.back();
}

std::atomic<InstructionSet>& chosen() {
  static std::atomic<InstructionSet> set{first_choice()};
  return set;
}

}  // namespace

InstructionSet instruction_set() { return chosen().load(std::memory_order_relaxed); }

std::span<const InstructionSet> instruction_sets() {
  static const size_t count = count_here();
  return {kAll, count};
}

void force_instruction_set(InstructionSet set) { chosen().store(set, std::memory_order_relaxed); }

const char* instruction_set_name(InstructionSet set) {
  switch (set) {
    case InstructionSet::kScalar:
      return "scalar";
    case InstructionSet::kAvx2:
      return "avx2";
    case InstructionSet::kAvx512:
      return "avx512";
  }
  return "unknown";
}

}  // namespace rowtide
