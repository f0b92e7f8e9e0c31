#pragma once
// race — whether two accesses of one byte are ordered by anything but chance.
//
// One shadow cell a byte keeps the last write, read and atomic.  Two accesses of which one is a
// write (and not both atomic) must be ordered: by the same thread, by __syncthreads in a block, by
// __syncwarp in a warp, by streams and events between kernels and copies, or, between any two
// threads, by a fence before one atomic and a fence after another that saw it, which is how a lock
// orders what it protects.  Bytes never written must not be read; bytes never allocated not
// touched.
//
// race.cc and race_callbacks.cc are linked into the race net, race_absent.cc into the others.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cuda_on_cpu {

struct Thread;
struct Block;

// By stream number: how much of each stream's work comes before.
using Clock = std::vector<uint32_t>;

// One kernel or copy: work number `ticket` of `stream`, after everything in `clock`.
struct Work {
  uint32_t stream = 0;
  uint32_t ticket = 0;
  Clock clock;
  const char* what = "";         // for a copy
  const void* kernel = nullptr;  // its code

  std::string name() const;
};

namespace race {

// What a thread knows of others that are not in its warp, or were known through a fence: threads up
// to a clock, blocks up to an epoch.
struct Known {
  std::map<uint64_t, uint32_t> threads;
  std::map<uint32_t, uint32_t> blocks;
};
using KnownPointer = std::shared_ptr<const Known>;

struct ThreadOrder {
  uint32_t segment = 0;                // names its accesses until its order changes; 0: none yet
  uint32_t clock = 1;                  // grows with each __syncwarp and fence
  std::array<uint32_t, 32> seen = {};  // of the lanes of its warp: what comes before, exclusive
  KnownPointer known;                  // comes before whatever it does now
  KnownPointer released;               // what its last fence offers to readers of its later atomics
  KnownPointer pending;                // read by atomics; known from the next fence on
};
struct BlockOrder {
  uint32_t epoch = 1;  // grows with each __syncthreads
};

bool on();

void allocated(const void* memory, size_t bytes);
void freed(const void* memory, size_t bytes);

void work_begins(const Work& work);
void work_ends();
// The host has waited for all work: nothing earlier can race with anything later.
void all_done();
// An access by a copy.
void copy_accesses(const void* memory, size_t bytes, bool write);

void warp_synced(Thread* lanes, uint32_t mask);
void block_synced(Block& block);
void fenced(Thread& thread);
void atomic_access(Thread& thread, void* memory, size_t bytes);

}  // namespace race
}  // namespace cuda_on_cpu
