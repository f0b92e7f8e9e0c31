#include "tests/support/count_allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

namespace rowtide {

bool allocations_are_counted() { return false; }
uint64_t allocation_count() { return 0; }
uint64_t allocated_bytes() { return 0; }

}  // namespace rowtide

#else

namespace {

std::atomic<uint64_t> count{0}, sum{0};

void* allocate(std::size_t bytes, std::size_t alignment) {
  count.fetch_add(1, std::memory_order_relaxed);
  sum.fetch_add(bytes, std::memory_order_relaxed);
  void* memory = nullptr;
  if (alignment <= alignof(std::max_align_t)) {
    memory = std::malloc(bytes != 0 ? bytes : 1);
  } else {
    memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  }
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// The other forms call these.
void* operator new(std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace rowtide {

bool allocations_are_counted() { return true; }
uint64_t allocation_count() { return count.load(std::memory_order_relaxed); }
uint64_t allocated_bytes() { return sum.load(std::memory_order_relaxed); }

}  // namespace rowtide

#endif
