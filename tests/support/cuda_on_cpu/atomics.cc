// Atomics, fences and shared memory of the running thread.

#include <algorithm>

#include "tests/support/cuda_on_cpu/block.h"

namespace cuda_on_cpu {
namespace {

template <typename T>
T changed(Atomic kind, T old, T operand, T compare) {
  switch (kind) {
    case Atomic::kAdd:  // wraps, for int too
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) +
                            static_cast<std::make_unsigned_t<T>>(operand));
    case Atomic::kExchange:
      return operand;
    case Atomic::kCompareAndSwap:
      return old == compare ? operand : old;
    case Atomic::kMin:
      return std::min(old, operand);
    case Atomic::kMax:
      return std::max(old, operand);
    case Atomic::kAnd:
      return old & operand;
    case Atomic::kOr:
      return old | operand;
  }
  return old;
}

}  // namespace

template <AtomicWord T>
T atomic(Atomic kind, T* address, T operand, T compare, Location where) {
  race::atomic_access(*running, address, sizeof(T));
  const T old = *address;
  *address = changed(kind, old, operand, compare);
  maybe_yield(/*progress=*/*address != old, where);
  return old;
}
template int atomic(Atomic, int*, int, int, Location);
template unsigned atomic(Atomic, unsigned*, unsigned, unsigned, Location);
template unsigned long long atomic(Atomic, unsigned long long*, unsigned long long,
                                   unsigned long long, Location);

void fence() { race::fenced(*running); }

void* shared_memory(size_t bytes, Location where) {
  void* const memory = running->block->shared.piece(static_cast<int>(where.line()), bytes);
  if (memory == nullptr) fail("asks for more shared memory than a block has", where);
  return memory;
}

void* dynamic_shared_memory() { return running->block->shared.dynamic(); }

}  // namespace cuda_on_cpu
