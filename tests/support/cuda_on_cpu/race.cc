#include "tests/support/cuda_on_cpu/race.h"

#include <sys/mman.h>

#include <algorithm>
#include <set>

#include "runtime/base/status.h"
#include "tests/support/cuda_on_cpu/block.h"
#include "tests/support/cuda_on_cpu/memory.h"
#include "tests/support/cuda_on_cpu/race_access.h"
#include "tests/support/cuda_on_cpu/report.h"

namespace cuda_on_cpu::race {
namespace {

// A stretch of one thread's accesses with the same order towards all others; or one copy.
struct Segment {
  uint32_t stream, ticket;
  uint32_t block, thread;  // kCopy in both for a copy
  uint32_t epoch, clock;
};
constexpr uint32_t kCopy = ~0u;

// Ids of segments, and two that are none.
constexpr uint32_t kUnallocated = 0;
constexpr uint32_t kUnwritten = 1;
struct Cell {
  uint32_t write = kUnallocated;
  uint32_t read = 0;
  uint32_t atomic = 0;
};

struct Shadow {
  std::vector<Segment> segments;
  uint32_t base = 2;  // id of the first of them; lower ones come before everything
  const Work* work = nullptr;
  uint32_t copy = 0;  // the segment of the work, once it is known to be a copy
  std::map<const void*, KnownPointer> atomics;  // what readers of an atomic come to know
  std::set<std::pair<const void*, std::string>> told;
};
Shadow shadow;

Cell* cell_of(const void* address) {
  static Cell* const cells = [] {
    void* memory = mmap(nullptr, region_bytes() * sizeof(Cell), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ROWTIDE_CHECK(memory != MAP_FAILED);
    return static_cast<Cell*>(memory);
  }();
  return cells + (static_cast<const std::byte*>(address) - region());
}

uint32_t add_segment(const Segment& segment) {
  shadow.segments.push_back(segment);
  return shadow.base + static_cast<uint32_t>(shadow.segments.size()) - 1;
}

uint32_t segment_of(Thread& thread) {
  if (thread.order.segment == 0) {
    thread.order.segment =
        add_segment({shadow.work->stream, shadow.work->ticket, thread.block->id, thread.index,
                     thread.block->order.epoch, thread.order.clock});
  }
  return thread.order.segment;
}

uint64_t name_of(uint32_t block, uint32_t thread) { return uint64_t{block} << 32 | thread; }

template <typename Map, typename Name>
uint32_t at(const Map& map, Name name) {
  const auto found = map.find(name);
  return found == map.end() ? 0 : found->second;
}

template <typename Map>
void merge(Map& into, const Map& from) {
  for (const auto& [name, until] : from) into[name] = std::max(into[name], until);
}

KnownPointer both(const KnownPointer& a, const KnownPointer& b) {
  if (a == b || b == nullptr) return a;
  if (a == nullptr) return b;
  Known known = *a;
  merge(known.threads, b->threads);
  merge(known.blocks, b->blocks);
  return std::make_shared<const Known>(std::move(known));
}

// Whether segment `id` comes before what `thread` (null: a copy) does now.
bool comes_before(uint32_t id, const Thread* thread) {
  if (id < shadow.base) return true;
  const Segment& segment = shadow.segments[id - shadow.base];
  if (segment.stream != shadow.work->stream || segment.ticket != shadow.work->ticket) {
    const Clock& clock = shadow.work->clock;
    return segment.stream < clock.size() && clock[segment.stream] >= segment.ticket;
  }
  if (thread == nullptr) return true;
  if (segment.block == thread->block->id) {
    if (segment.thread == thread->index || segment.epoch < thread->block->order.epoch) return true;
    const bool same_warp = segment.thread / kWarp == thread->index / kWarp;
    if (same_warp && segment.clock < thread->order.seen[segment.thread % kWarp]) return true;
  }
  const Known* known = thread->order.known.get();
  return known != nullptr &&
         (segment.epoch < at(known->blocks, segment.block) ||
          segment.clock < at(known->threads, name_of(segment.block, segment.thread)));
}

std::string text_of(uint32_t id) {
  const Segment& segment = shadow.segments[id - shadow.base];
  if (segment.block == kCopy) return "by a copy on another stream";
  std::string text =
      "by block " + std::to_string(segment.block) + ", thread " + std::to_string(segment.thread);
  const bool same_kernel =
      segment.stream == shadow.work->stream && segment.ticket == shadow.work->ticket;
  return same_kernel ? text : text + " of a kernel on another stream";
}

// Once for each place in the code, and kind.
void tell(const Thread* thread, const void* code, const void* address, const std::string& kind,
          const std::string& rest) {
  if (!shadow.told.insert({code, kind}).second) return;
  report((thread == nullptr ? shadow.work->name() : describe(*thread)) + " " + kind + " " +
         describe(address) + rest +
         (code == nullptr ? std::string() : ", at " + line_of_code(code)));
}

constexpr const char* kVerb[] = {"reads", "writes", "atomically changes"};

// Checks one byte against an earlier access of it.
bool conflicts(uint32_t earlier, const char* what, Thread* thread, const std::byte* byte,
               Access access, const void* code) {
  if (comes_before(earlier, thread)) return false;
  tell(thread, code, byte, kVerb[static_cast<int>(access)],
       std::string(", unordered with ") + what + " " + text_of(earlier));
  return true;
}

void access_byte(Thread* thread, uint32_t segment, const std::byte* byte, Access access,
                 const void* code) {
  Cell& cell = *cell_of(byte);
  if (cell.write == kUnallocated) {
    tell(thread, code, byte, std::string(kVerb[static_cast<int>(access)]) + " out of bounds,", "");
    return;
  }
  if (access != Access::kWrite && cell.write == kUnwritten && cell.atomic == 0) {
    tell(thread, code, byte, std::string(kVerb[static_cast<int>(access)]) + " uninitialised", "");
  }
  conflicts(cell.write, "a write", thread, byte, access, code) ||
      (access != Access::kAtomic &&
       conflicts(cell.atomic, "an atomic", thread, byte, access, code)) ||
      (access != Access::kRead && conflicts(cell.read, "a read", thread, byte, access, code));
  if (access == Access::kRead) cell.read = segment;
  if (access == Access::kWrite) cell.write = segment;
  if (access == Access::kAtomic) cell.atomic = segment;
}

void set_cells(const void* memory, size_t bytes, Cell cell) {
  std::fill_n(cell_of(memory), bytes, cell);
}

void orders_anew(Thread& thread) {
  ++thread.order.clock;
  thread.order.segment = 0;
}

}  // namespace

bool on() { return true; }
void allocated(const void* memory, size_t bytes) { set_cells(memory, bytes, {kUnwritten, 0, 0}); }
void freed(const void* memory, size_t bytes) { set_cells(memory, bytes, {}); }

void work_begins(const Work& work) {
  shadow.work = &work;
  shadow.copy = 0;
}

void work_ends() {
  shadow.work = nullptr;
  shadow.atomics.clear();
}

void all_done() {
  shadow.base += static_cast<uint32_t>(shadow.segments.size());
  ROWTIDE_CHECK(shadow.base < ~0u / 2);
  shadow.segments.clear();
  shadow.told.clear();
}

void access(Thread& thread, const void* memory, size_t bytes, Access access, const void* code) {
  const uint32_t segment = segment_of(thread);
  const auto* const first = static_cast<const std::byte*>(memory);
  for (size_t i = 0; i < bytes; ++i) access_byte(&thread, segment, first + i, access, code);
}

void copy_accesses(const void* memory, size_t bytes, bool write) {
  if (shadow.copy == 0) {
    shadow.copy =
        add_segment({shadow.work->stream, shadow.work->ticket, kCopy, kCopy, /*epoch=*/0, 0});
  }
  const auto* const first = static_cast<const std::byte*>(memory);
  for (size_t i = 0; i < bytes; ++i) {
    access_byte(nullptr, shadow.copy, first + i, write ? Access::kWrite : Access::kRead, nullptr);
  }
}

void warp_synced(Thread* lanes, uint32_t mask) {
  std::array<uint32_t, 32> seen = {};
  KnownPointer known;
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    ThreadOrder& order = lanes[lane].order;
    orders_anew(lanes[lane]);
    for (uint32_t i = 0; i < kWarp; ++i) seen[i] = std::max(seen[i], order.seen[i]);
    seen[lane] = std::max(seen[lane], order.clock);
    known = both(known, order.known);
  }
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    lanes[lane].order.seen = seen;
    lanes[lane].order.known = known;
  }
}

void block_synced(Block& block) {
  ++block.order.epoch;
  KnownPointer known;
  for (const Thread& thread : block.threads) known = both(known, thread.order.known);
  for (Thread& thread : block.threads) {
    thread.order.known = known;
    thread.order.segment = 0;
  }
}

void fenced(Thread& thread) {
  ThreadOrder& order = thread.order;
  order.known = both(order.known, order.pending);
  Known released = order.known == nullptr ? Known() : *order.known;
  const uint32_t block = thread.block->id;
  released.blocks[block] = thread.block->order.epoch;
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    const uint32_t until = lane == thread.lane() ? order.clock + 1 : order.seen[lane];
    const uint64_t name = name_of(block, thread.index / kWarp * kWarp + lane);
    if (until > 0) released.threads[name] = std::max(released.threads[name], until);
  }
  order.released = std::make_shared<const Known>(std::move(released));
  orders_anew(thread);
}

void atomic_access(Thread& thread, void* memory, size_t bytes) {
  if (!in_region(memory)) return;
  access(thread, memory, bytes, Access::kAtomic, nullptr);
  KnownPointer& offered = shadow.atomics[memory];
  ThreadOrder& order = thread.order;
  order.pending = both(order.pending, offered);
  offered = both(offered, order.released);
}

}  // namespace cuda_on_cpu::race
