#include "runtime/base/host_arena.h"

#include <numa.h>
#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <utility>

namespace rowtide {
namespace {

constexpr uint64_t kPage = 4 << 10;
constexpr uint64_t kHuge = 2 << 20;  // a huge page of x86-64 and of aarch64 with 4 KiB pages
constexpr int kCollapse = 25;        // MADV_COLLAPSE, which the headers of Debian 12 do not name

uint64_t number_in(const char* path, uint64_t otherwise) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : otherwise;
}

uint64_t meminfo_available() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  uint64_t kib = 0;
  while (file >> name >> kib >> unit) {
    if (name == "MemAvailable:") return kib << 10;
  }
  return ~uint64_t{0};
}

// The value of a line "name value" of a file; 0: there is none.
uint64_t named_number_in(const char* path, const std::string& wanted) {
  std::ifstream file(path);
  std::string name;
  uint64_t value = 0;
  while (file >> name >> value) {
    if (name == wanted) return value;
  }
  return 0;
}

// Pages of files that were not used of late count as used, but go when memory is asked for.
uint64_t cgroup_available() {
  const uint64_t none = ~uint64_t{0};
  const uint64_t limit = number_in("/sys/fs/cgroup/memory.max", none);
  if (limit == none) return none;
  const uint64_t used = number_in("/sys/fs/cgroup/memory.current", 0);
  const uint64_t files = named_number_in("/sys/fs/cgroup/memory.stat", "inactive_file");
  return limit - std::min(limit, used - std::min(used, files));
}

}  // namespace

uint64_t available_host_bytes() { return std::min(meminfo_available(), cgroup_available()); }

Result<HostArena> HostArena::reserve(uint64_t bytes, const std::string& name) {
  HostArena arena;
  if (bytes == 0) return arena;
  const uint64_t there = available_host_bytes();
  void* memory = MAP_FAILED;
  if (bytes <= there) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (memory == MAP_FAILED) {
    return {Code::kNoSpace, name + " needs " + std::to_string(bytes) + " bytes of host memory, " +
                                std::to_string(there) + " are there"};
  }
  const bool sparse = bytes > there / 8;
  if (sparse) arena.joined_.resize(bytes / kHuge);
  if (bytes >= 2 * kHuge) madvise(memory, bytes, sparse ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
  // Threads of every node read it: spread it, so that no node's memory is the bottleneck.
  if (numa_available() >= 0 && numa_num_configured_nodes() > 1) {
    numa_interleave_memory(memory, bytes, numa_all_nodes_ptr);
  }
  arena.bytes_ = static_cast<std::byte*>(memory);
  arena.size_ = bytes;
  return arena;
}

void HostArena::join_pages() {
  if (joined_.empty()) return;
  const size_t piece = next_piece_++ % joined_.size();
  std::byte* at = bytes_ + (kHuge - reinterpret_cast<uintptr_t>(bytes_) % kHuge) % kHuge;
  at += piece * kHuge;
  if (joined_[piece] || at + kHuge > bytes_ + size_) return;
  unsigned char touched[kHuge / kPage];
  if (mincore(at, kHuge, touched) != 0) return;
  const auto count = std::count_if(std::begin(touched), std::end(touched),
                                   [](unsigned char page) { return (page & 1) != 0; });
  if (static_cast<uint64_t>(count) < kHuge / kPage / 2) return;
  joined_[piece] = true;
  if (madvise(at, kHuge, MADV_HUGEPAGE) == 0) madvise(at, kHuge, kCollapse);
}

HostArena::~HostArena() {
  if (bytes_ != nullptr) munmap(bytes_, size_);
}
HostArena::HostArena(HostArena&& other) noexcept { *this = std::move(other); }
HostArena& HostArena::operator=(HostArena&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(size_, other.size_);
  std::swap(joined_, other.joined_);
  std::swap(next_piece_, other.next_piece_);
  return *this;
}

}  // namespace rowtide
