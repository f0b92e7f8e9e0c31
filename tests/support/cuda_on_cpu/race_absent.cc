// What the nets without the race check link in place of race.cc.

#include "tests/support/cuda_on_cpu/race.h"

namespace cuda_on_cpu::race {

bool on() { return false; }
void allocated(const void*, size_t) {}
void freed(const void*, size_t) {}
void work_begins(const Work&) {}
void work_ends() {}
void all_done() {}
void copy_accesses(const void*, size_t, bool) {}
void warp_synced(Thread*, uint32_t) {}
void block_synced(Block&) {}
void fenced(Thread&) {}
void atomic_access(Thread&, void*, size_t) {}

}  // namespace cuda_on_cpu::race
