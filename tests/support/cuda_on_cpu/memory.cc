#include "tests/support/cuda_on_cpu/memory.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "runtime/base/status.h"
#include "tests/support/cuda_on_cpu/race.h"
#include "tests/support/cuda_on_cpu/report.h"

namespace cuda_on_cpu {
namespace {

constexpr size_t kSharedBytes = kMaxResidentBlocks * kBlockSharedBytes;
constexpr size_t kDeviceBytes = size_t{1} << 30;  // reserved, not taken
constexpr size_t kRedzone = 256;                  // also the alignment that cudaMalloc promises
constexpr size_t kSharedRedzone = 64;
constexpr unsigned char kRedzoneByte = 0xA5;

struct Allocation {
  size_t bytes;
  uint32_t number;
};

struct Device {
  std::map<std::byte*, Allocation> live;
  size_t used = 0;
  uint32_t made = 0;
  std::map<std::byte*, size_t> pinned;
};
Device device;
int opened = 0;

size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

std::byte* mutable_region() {
  static std::byte* const memory = [] {
    void* mapped = mmap(nullptr, kSharedBytes + kDeviceBytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ROWTIDE_CHECK(mapped != MAP_FAILED);
    ASAN_POISON_MEMORY_REGION(mapped, kSharedBytes + kDeviceBytes);
    return static_cast<std::byte*>(mapped);
  }();
  return memory;
}

void protect(int protection) {
  ROWTIDE_CHECK(mprotect(mutable_region(), region_bytes(), protection) == 0);
}

void make_redzone(std::byte* memory, size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
  std::memset(memory, kRedzoneByte, bytes);
  ASAN_POISON_MEMORY_REGION(memory, bytes);
}

// Looks past AddressSanitizer, to which a redzone is forbidden ground.
__attribute__((no_sanitize("address"))) bool redzone_is_whole(const std::byte* memory,
                                                              size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) {
    if (static_cast<unsigned char>(memory[i]) != kRedzoneByte) return false;
  }
  return true;
}

const std::byte* end_of(const std::map<std::byte*, Allocation>::value_type& allocation) {
  return allocation.first + allocation.second.bytes;
}

std::string text_of(const std::map<std::byte*, Allocation>::value_type& allocation) {
  return "device allocation " + std::to_string(allocation.second.number) + " (" +
         std::to_string(allocation.second.bytes) + " bytes)";
}

// The live allocation that begins last at or before `address`.
auto allocation_before(const void* address) {
  auto next = device.live.upper_bound(static_cast<std::byte*>(const_cast<void*>(address)));
  return next == device.live.begin() ? device.live.end() : std::prev(next);
}

}  // namespace

const std::byte* region() { return mutable_region(); }
size_t region_bytes() { return kSharedBytes + kDeviceBytes; }
bool in_region(const void* address) {
  const auto offset = static_cast<const std::byte*>(address) - region();
  return offset >= 0 && static_cast<size_t>(offset) < region_bytes();
}
bool in_shared(const void* address) {
  const auto offset = static_cast<const std::byte*>(address) - region();
  return offset >= 0 && static_cast<size_t>(offset) < kSharedBytes;
}

RegionOpen::RegionOpen() {
  if (opened++ == 0) protect(PROT_READ | PROT_WRITE);
}
RegionOpen::~RegionOpen() {
  if (--opened == 0) protect(PROT_NONE);
}

void poison(void* memory, size_t bytes) {
  constexpr uint16_t kPattern = 0xFFC1;
  auto* to = static_cast<std::byte*>(memory);
  for (size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(kPattern >> (i % 2 * 8) & 0xFF);
}

void* allocate_device(size_t bytes) {
  if (device.live.empty()) device.used = 0;
  const size_t whole = kRedzone + round_up(bytes, kRedzone) + kRedzone;
  if (whole < bytes || whole > kDeviceBytes - device.used) return nullptr;
  std::byte* const memory = mutable_region() + kSharedBytes + device.used + kRedzone;
  device.used += whole;
  device.live[memory] = {bytes, ++device.made};
  RegionOpen open;
  make_redzone(memory - kRedzone, kRedzone);
  make_redzone(memory + bytes, whole - kRedzone - bytes);
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
  poison(memory, bytes);
  race::allocated(memory, bytes);
  return memory;
}

bool free_device(void* memory) {
  const auto found = device.live.find(static_cast<std::byte*>(memory));
  if (found == device.live.end()) return false;
  const size_t bytes = found->second.bytes;
  RegionOpen open;
  poison(memory, bytes);
  ASAN_POISON_MEMORY_REGION(memory, bytes);
  race::freed(memory, bytes);
  device.live.erase(found);
  return true;
}

size_t free_device_bytes() { return kDeviceBytes - device.used; }

bool is_device(const void* memory, size_t bytes) {
  const auto found = allocation_before(memory);
  return found != device.live.end() &&
         static_cast<const std::byte*>(memory) + bytes <= end_of(*found);
}

std::string describe(const void* address) {
  if (in_shared(address)) {
    const size_t offset = static_cast<size_t>(static_cast<const std::byte*>(address) - region());
    return "shared memory + " + std::to_string(offset % kBlockSharedBytes);
  }
  if (!in_region(address)) return "host memory";
  const auto found = allocation_before(address);
  if (found == device.live.end()) return "device memory that is not allocated";
  const auto offset = static_cast<const std::byte*>(address) - found->first;
  return text_of(*found) + " + " + std::to_string(offset);
}

void check_redzones(const std::function<std::string()>& last) {
  RegionOpen open;
  for (const auto& allocation : device.live) {
    const std::byte* const end = end_of(allocation);
    const size_t behind = round_up(allocation.second.bytes, kRedzone) - allocation.second.bytes;
    if (!redzone_is_whole(allocation.first - kRedzone, kRedzone) ||
        !redzone_is_whole(end, behind + kRedzone)) {
      report("written out of bounds of " + text_of(allocation) + ", seen after " + last());
      make_redzone(allocation.first - kRedzone, kRedzone);
      make_redzone(allocation.first + allocation.second.bytes, behind + kRedzone);
    }
  }
}

void* allocate_pinned(size_t bytes) {
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(64, round_up(bytes, 64)));
  if (memory == nullptr) return nullptr;
  poison(memory, bytes);
  device.pinned[memory] = bytes;
  return memory;
}

bool free_pinned(void* memory) {
  if (device.pinned.erase(static_cast<std::byte*>(memory)) == 0) return false;
  std::free(memory);
  return true;
}

bool is_pinned(const void* memory, size_t bytes) {
  auto* const address = static_cast<std::byte*>(const_cast<void*>(memory));
  auto next = device.pinned.upper_bound(address);
  if (next == device.pinned.begin()) return false;
  const auto& [begin, size] = *std::prev(next);
  return address + bytes <= begin + size;
}

void SharedMemory::begin(uint32_t resident, size_t dynamic_bytes) {
  arena_ = mutable_region() + resident * kBlockSharedBytes;
  used_ = 0;
  pieces_.clear();
  add(/*line=*/0, dynamic_bytes);
}

std::string SharedMemory::end() {
  std::string fault;
  for (const Piece& piece : pieces_) {
    const size_t behind = round_up(piece.bytes, kSharedRedzone) - piece.bytes + kSharedRedzone;
    if (redzone_is_whole(piece.memory - kSharedRedzone, kSharedRedzone) &&
        redzone_is_whole(piece.memory + piece.bytes, behind)) {
      continue;
    }
    fault = "writes shared memory out of bounds, of the ";
    fault += piece.line == 0 ? "dynamic array" : "array of line " + std::to_string(piece.line);
  }
  ASAN_POISON_MEMORY_REGION(arena_, used_);
  race::freed(arena_, used_);
  pieces_.clear();
  return fault;
}

void* SharedMemory::piece(int line, size_t bytes) {
  for (const Piece& piece : pieces_) {
    if (piece.line == line) return piece.memory;
  }
  return add(line, bytes);
}

std::byte* SharedMemory::add(int line, size_t bytes) {
  const size_t whole = kSharedRedzone + round_up(bytes, kSharedRedzone) + kSharedRedzone;
  if (used_ + whole > kBlockSharedBytes) return nullptr;
  std::byte* const memory = arena_ + used_ + kSharedRedzone;
  used_ += whole;
  make_redzone(memory - kSharedRedzone, kSharedRedzone);
  make_redzone(memory + bytes, whole - kSharedRedzone - bytes);
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
  poison(memory, bytes);
  race::allocated(memory, bytes);
  pieces_.push_back({line, memory, bytes});
  return memory;
}

}  // namespace cuda_on_cpu
