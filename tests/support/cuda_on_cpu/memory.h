#pragma once
// memory — the emulated GPU's memory: one region that the host may not touch.
//
// Its first part holds the shared memory of resident blocks, the rest is for cudaMalloc.  Every
// piece lies between redzones and is poisoned when it is made: a pattern that is a NaN in fp32,
// fp16 and bf16 and a wild number as an integer.  Freed memory is not used again until all is free.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace cuda_on_cpu {

inline constexpr size_t kBlockSharedBytes = 64 << 10;  // of one block, redzones included
inline constexpr size_t kMaxSharedBytes = 48 << 10;    // what CUDA gives without being asked
inline constexpr uint32_t kMaxResidentBlocks = 8;

// The whole region, and whether `address` lies in its shared or its device part.
const std::byte* region();
size_t region_bytes();
bool in_region(const void* address);
bool in_shared(const void* address);

// Device memory.  Null if there is no room.
void* allocate_device(size_t bytes);
// False if it was not allocated.
bool free_device(void* memory);
size_t free_device_bytes();
// Whether all of it lies in one live allocation.
bool is_device(const void* memory, size_t bytes);
// "device allocation 2 (400 bytes) + 8", or what else lies there.
std::string describe(const void* address);
// Reports allocations whose redzones were written, naming what was last run.
void check_redzones(const std::function<std::string()>& last);

// Pinned host memory.
void* allocate_pinned(size_t bytes);
bool free_pinned(void* memory);
bool is_pinned(const void* memory, size_t bytes);

// Opens the region while emulated work runs; the host that touches it otherwise is reported.
// Nests.
class RegionOpen {
 public:
  RegionOpen();
  ~RegionOpen();
  RegionOpen(const RegionOpen&) = delete;
  RegionOpen& operator=(const RegionOpen&) = delete;
};
// Says what the host touched since the last call: done at each call of the API.
void report_host_accesses();

void poison(void* memory, size_t bytes);

// The shared memory of one resident block, handed out piece by piece.
class SharedMemory {
 public:
  void begin(uint32_t resident, size_t dynamic_bytes);
  // What was written out of bounds, or "".
  std::string end();
  void* piece(int line, size_t bytes);  // null if the block has no room
  void* dynamic() const { return pieces_[0].memory; }
  const std::byte* arena() const { return arena_; }

 private:
  struct Piece {
    int line;
    std::byte* memory;
    size_t bytes;
  };
  std::byte* add(int line, size_t bytes);

  std::byte* arena_ = nullptr;
  size_t used_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace cuda_on_cpu
