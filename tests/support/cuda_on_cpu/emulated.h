#pragma once
// emulated — what a kernel sees of a GPU: built-in variables, warp intrinsics, barriers, atomics,
// fences, shared memory, and launch().
//
// What is missing here does not compile, so nothing is silently untested.  Each barrier, intrinsic
// and atomic is known by its source line.  All but thin templates lives in .cc files, so that the
// race check instruments kernels and not this.

#include <cuda_runtime_api.h>
#include <vector_types.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <source_location>
#include <tuple>
#include <type_traits>
#include <utility>

// Of the CUDA thread that runs now.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace cuda_on_cpu {

using Location = std::source_location;

// A kernel with its arguments; called once for each CUDA thread.
struct Call {
  virtual ~Call() = default;
  virtual void run() const = 0;
  const void* kernel = nullptr;
  size_t bytes = 0;  // of the whole object: kernels may read their arguments in it
};

// Gives a kernel to a stream, as cudaLaunchKernel would.
void launch_call(std::unique_ptr<Call> call, dim3 grid, dim3 block, size_t shared_bytes,
                 cudaStream_t stream);

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
            cudaStream_t stream, Arguments&&... arguments) {
  struct KernelCall : Call {
    void run() const override { std::apply(function, parameters); }
    void (*function)(Parameters...);
    std::tuple<Parameters...> parameters;
    KernelCall(void (*f)(Parameters...), Arguments&&... a)
        : function(f), parameters(std::forward<Arguments>(a)...) {}
  };
  auto call = std::make_unique<KernelCall>(kernel, std::forward<Arguments>(arguments)...);
  call->kernel = reinterpret_cast<const void*>(kernel);
  call->bytes = sizeof(KernelCall);
  launch_call(std::move(call), grid, block, shared_bytes, stream);
}

// Marks the running thread as one that barriers need not wait for.
void leave();

// Shared memory of the running thread's block: the piece declared at `where`, the same for every
// thread, undefined until written; and the piece whose size came with the launch.
void* shared_memory(size_t bytes, Location where = Location::current());
void* dynamic_shared_memory();

enum class Exchange { kIndex, kUp, kDown, kXor };
uint64_t exchange(Exchange kind, uint32_t mask, uint64_t bits, uint32_t operand, int width,
                  Location where);
uint32_t ballot(uint32_t mask, bool predicate, Location where);
void sync_warp(uint32_t mask, Location where);
void sync_block(Location where);

enum class Atomic { kAdd, kExchange, kCompareAndSwap, kMin, kMax, kAnd, kOr };
// CUDA has integer atomics of these types; float ones are not used, since their order is not fixed.
template <typename T>
concept AtomicWord =
    std::is_same_v<T, int> || std::is_same_v<T, unsigned> || std::is_same_v<T, unsigned long long>;
template <AtomicWord T>
T atomic(Atomic kind, T* address, T operand, T compare, Location where);
void fence();

// Values travel through the scheduler as 64 bits.
template <typename T>
uint64_t to_bits(T value) {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8);
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<uint32_t>(value);
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<uint64_t>(value);
  if constexpr (std::is_integral_v<T>) return static_cast<uint64_t>(value);
}
template <typename T>
T from_bits(uint64_t bits) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<T>(static_cast<uint32_t>(bits));
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<T>(bits);
  if constexpr (std::is_integral_v<T>) return static_cast<T>(bits);
}

}  // namespace cuda_on_cpu

#define CUDA_ON_CPU_SHARED(type, name, count) \
  auto& name = *static_cast<type(*)[count]>(::cuda_on_cpu::shared_memory(sizeof(type[count])))
#define CUDA_ON_CPU_DYNAMIC_SHARED(type, name) \
  type* const name = static_cast<type*>(::cuda_on_cpu::dynamic_shared_memory())

#define CUDA_ON_CPU_HERE ::cuda_on_cpu::Location where = ::cuda_on_cpu::Location::current()

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize, CUDA_ON_CPU_HERE) {
  using namespace cuda_on_cpu;
  return from_bits<T>(exchange(Exchange::kIndex, mask, to_bits(value), lane, width, where));
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = warpSize, CUDA_ON_CPU_HERE) {
  using namespace cuda_on_cpu;
  return from_bits<T>(exchange(Exchange::kUp, mask, to_bits(value), by, width, where));
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = warpSize, CUDA_ON_CPU_HERE) {
  using namespace cuda_on_cpu;
  return from_bits<T>(exchange(Exchange::kDown, mask, to_bits(value), by, width, where));
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int with, int width = warpSize, CUDA_ON_CPU_HERE) {
  using namespace cuda_on_cpu;
  return from_bits<T>(exchange(Exchange::kXor, mask, to_bits(value), with, width, where));
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_ON_CPU_HERE) {
  return cuda_on_cpu::ballot(mask, predicate != 0, where);
}
inline int __any_sync(unsigned mask, int predicate, CUDA_ON_CPU_HERE) {
  return cuda_on_cpu::ballot(mask, predicate != 0, where) != 0;
}
inline int __all_sync(unsigned mask, int predicate, CUDA_ON_CPU_HERE) {
  return cuda_on_cpu::ballot(mask, predicate != 0, where) == mask;
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, CUDA_ON_CPU_HERE) {
  cuda_on_cpu::sync_warp(mask, where);
}
inline void __syncthreads(CUDA_ON_CPU_HERE) { cuda_on_cpu::sync_block(where); }
inline void __threadfence() { cuda_on_cpu::fence(); }

#define CUDA_ON_CPU_ATOMIC(function, kind)                              \
  template <cuda_on_cpu::AtomicWord T>                                  \
  T function(T* address, std::type_identity_t<T> x, CUDA_ON_CPU_HERE) { \
    using cuda_on_cpu::Atomic;                                          \
    return cuda_on_cpu::atomic<T>(kind, address, x, T{}, where);        \
  }
CUDA_ON_CPU_ATOMIC(atomicAdd, Atomic::kAdd)
CUDA_ON_CPU_ATOMIC(atomicExch, Atomic::kExchange)
CUDA_ON_CPU_ATOMIC(atomicMin, Atomic::kMin)
CUDA_ON_CPU_ATOMIC(atomicMax, Atomic::kMax)
CUDA_ON_CPU_ATOMIC(atomicAnd, Atomic::kAnd)
CUDA_ON_CPU_ATOMIC(atomicOr, Atomic::kOr)
template <cuda_on_cpu::AtomicWord T>
T atomicCAS(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> x,
            CUDA_ON_CPU_HERE) {
  return cuda_on_cpu::atomic<T>(cuda_on_cpu::Atomic::kCompareAndSwap, address, x, compare, where);
}

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
