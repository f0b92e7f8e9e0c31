#pragma once
// Thread, Block — a CUDA thread and a resident block, as the scheduler sees them.

#include <vector_types.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/cuda_on_cpu/emulated.h"
#include "tests/support/cuda_on_cpu/fiber.h"
#include "tests/support/cuda_on_cpu/memory.h"
#include "tests/support/cuda_on_cpu/race.h"

namespace cuda_on_cpu {

inline constexpr uint32_t kWarp = 32;

enum class State { kRunnable, kAtBarrier, kAtWarp, kReturned, kLeft };

// What a lane brings to a warp intrinsic, and takes from it.  The last lane to come calls `finish`,
// which fills the results of all lanes in the mask.
struct Offer {
  void (*finish)(struct Thread* lanes, uint32_t mask) = nullptr;
  uint32_t mask = 0;
  uint64_t bits = 0;
  Exchange kind = Exchange::kIndex;
  uint32_t operand = 0;
  int width = 0;
  uint64_t result = 0;
};

struct Block;
struct Thread {
  Fiber fiber;
  Block* block = nullptr;
  uint32_t index = 0;  // in the block
  uint3 position = {};
  State state = State::kRunnable;
  bool leaving = false;
  Location where;  // of the last barrier, intrinsic or atomic it came to
  Offer offer;
  race::ThreadOrder order;

  uint32_t lane() const { return index % kWarp; }
};

struct Block {
  uint32_t id = 0;  // in the grid
  uint32_t resident = 0;
  uint3 position = {};
  std::vector<Thread> threads;
  uint32_t alive = 0;       // neither returned nor left
  uint32_t runnable = 0;    // of these
  uint32_t at_barrier = 0;  // of these
  uint32_t returned = 0;    // without saying so
  SharedMemory shared;
  race::BlockOrder order;

  Thread* warp_of(const Thread& thread) { return &threads[thread.index / kWarp * kWarp]; }
};

// A kernel with the shape of its grid.
struct Launch {
  std::shared_ptr<Call> call;
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;

  std::string name() const;
};

// The thread that runs now; null while the host does.
extern Thread* running;

// The launch that runs now.  REQUIRES: a thread runs.
const Launch& current_launch();

// Marks the running thread as waiting; lets one that waits go on; runs others until the running
// thread may go on, which it may have been told already.
void wait(State state, Location where);
void wake(Thread& thread);
void suspend();
// Opens the block's barrier if all threads that have not left are at it.
void pass_barrier_if_all_came(Block& block);
// Lets others run first, perhaps.  `progress`: whether the running thread changed anything.
void maybe_yield(bool progress, Location where);
// Lets others run first, after so many plain accesses of the race check.
void yield_after(uint32_t accesses);
// Reports a fault of the running thread and abandons the kernel.
[[noreturn]] void fail(const std::string& what, Location where);

// "kernel NAME, block (1,0,0), thread (3,0,0)".
std::string describe(const Thread& thread);
std::string describe(Location where);

// Runs a whole grid; false if a fault made it give up, which has been reported.
bool run_grid(const Launch& launch);

}  // namespace cuda_on_cpu
