// Runs a grid: some blocks at a time, their threads one by one in a seeded order.
//
//     while a thread can run:  pick one at random; run it until it waits, yields or ends
//
// A block none of whose threads can run is deadlocked.  A kernel whose threads do nothing but
// failing atomics for long is livelocked.  Either is reported, and the kernel abandoned: its fibers
// are never resumed.

#include <algorithm>
#include <csetjmp>
#include <map>
#include <numeric>

#include "runtime/base/status.h"
#include "tests/support/cuda_on_cpu/block.h"
#include "tests/support/cuda_on_cpu/fault.h"
#include "tests/support/cuda_on_cpu/random.h"
#include "tests/support/cuda_on_cpu/report.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cuda_on_cpu {

Thread* running = nullptr;

namespace {

constexpr uint32_t kMaxResidentThreads = 2048;
// How long a kernel may change nothing, in plain accesses; an atomic counts as many of them.
constexpr uint64_t kIdleOfAtomic = 1024;
constexpr uint64_t kMaxIdle = 10'000 * kIdleOfAtomic;
constexpr uint64_t kMaxIdlePerThread = 200 * kIdleOfAtomic;

uint32_t threads_of(dim3 block) { return block.x * block.y * block.z; }

uint3 position_in(uint64_t index, dim3 shape) {
  return {static_cast<uint32_t>(index % shape.x), static_cast<uint32_t>(index / shape.x % shape.y),
          static_cast<uint32_t>(index / shape.x / shape.y)};
}

// The grid that runs now.  Grids run one after another on the one host thread.
struct Grid {
  const Launch* launch = nullptr;
  Fiber host;
  sigjmp_buf abandon;
  std::vector<uint32_t> order;  // block ids, shuffled; taken from the back
  std::vector<Block> blocks;    // resident ones
  std::vector<Thread*> runnable;
  uint64_t idle = 0;  // since anything last changed
};
Grid grid;

void thread_main() {
  fiber_entered();
  grid.launch->call->run();
  Thread& me = *running;
  me.state = me.leaving ? State::kLeft : State::kReturned;
  leave_fiber(me.fiber, grid.host);
}

void begin_thread(Block& block, uint32_t index) {
  Thread& thread = block.threads[index];
  thread = {};
  thread.block = &block;
  thread.index = index;
  thread.position = position_in(index, grid.launch->block);
  const uint32_t stack = block.resident * static_cast<uint32_t>(block.threads.size()) + index;
  prepare(thread.fiber, stack_of(stack), thread_main);
  grid.runnable.push_back(&thread);
}

void begin_block(Block& block) {
  block.id = grid.order.back();
  grid.order.pop_back();
  block.position = position_in(block.id, grid.launch->grid);
  block.alive = block.runnable = static_cast<uint32_t>(block.threads.size());
  block.at_barrier = block.returned = 0;
  block.order = {};
  block.shared.begin(block.resident, grid.launch->shared_bytes);
  for (uint32_t i = 0; i < block.threads.size(); ++i) begin_thread(block, i);
}

// Makes the grid's blocks and lets the first of them in.
void begin(const Launch& launch) {
  grid.launch = &launch;
  grid.idle = 0;
  grid.runnable.clear();
  grid.order.resize(size_t{launch.grid.x} * launch.grid.y * launch.grid.z);
  std::iota(grid.order.begin(), grid.order.end(), 0u);
  for (size_t i = grid.order.size(); i > 1; --i) {
    std::swap(grid.order[i - 1], grid.order[random().below(i)]);
  }
  const uint32_t threads = threads_of(launch.block);
  const uint32_t room = std::clamp(kMaxResidentThreads / threads, 1u, kMaxResidentBlocks);
  grid.blocks.resize(std::min<size_t>(room, grid.order.size()));
  for (uint32_t i = 0; i < grid.blocks.size(); ++i) {
    grid.blocks[i].resident = i;
    grid.blocks[i].threads.resize(threads);
    begin_block(grid.blocks[i]);
  }
}

std::string text_of_waiting(const Thread& thread) {
  switch (thread.state) {
    case State::kReturned:
      return "returned without ROWTIDE_LEAVE";
    case State::kLeft:
      return "left";
    case State::kAtBarrier:
      return "at the barrier of " + describe(thread.where);
    case State::kAtWarp: {
      char mask[16];
      std::snprintf(mask, sizeof mask, "%08x", thread.offer.mask);
      return "at the warp intrinsic of " + describe(thread.where) + " with mask " + mask;
    }
    case State::kRunnable:
      break;
  }
  return "last seen at " + describe(thread.where);
}

// Who waits where, threads in the same state together.
std::string waiting_threads(const Block& block) {
  std::map<std::string, std::vector<uint32_t>> groups;
  for (const Thread& thread : block.threads) {
    groups[text_of_waiting(thread)].push_back(thread.index);
  }
  std::string all;
  for (const auto& [text, threads] : groups) {
    all += (all.empty() ? "" : "; ") + std::to_string(threads.size()) + " threads, the first " +
           std::to_string(threads.front()) + ", " + text;
  }
  return all;
}

std::string text_of_block(const Block& block) {
  return grid.launch->name() + ", block (" + std::to_string(block.position.x) + "," +
         std::to_string(block.position.y) + "," + std::to_string(block.position.z) + ")";
}

void end_block(Block& block) {
  const std::string fault = block.shared.end();
  if (!fault.empty()) report(text_of_block(block) + " " + fault);
}

void end_thread(Thread& thread) {
  Block& block = *thread.block;
  --block.alive;
  --block.runnable;
  grid.idle = 0;
  if (thread.state == State::kReturned) ++block.returned;
  pass_barrier_if_all_came(block);
  if (block.alive > 0) return;
  end_block(block);
  if (!grid.order.empty()) begin_block(block);
}

// Goes on with `thread` until it waits, yields or ends.
void resume(Thread& thread) {
  running = &thread;
  threadIdx = thread.position;
  blockIdx = thread.block->position;
  switch_fiber(grid.host, thread.fiber);
  running = nullptr;
}

// False if the kernel is stuck.
bool run_one() {
  const uint32_t pick = random().below(grid.runnable.size());
  Thread& thread = *grid.runnable[pick];
  grid.runnable[pick] = grid.runnable.back();
  grid.runnable.pop_back();
  resume(thread);
  if (thread.state == State::kLeft || thread.state == State::kReturned) end_thread(thread);
  const Block& block = *thread.block;
  if (block.runnable == 0 && block.alive > 0) {
    report(text_of_block(block) + ": deadlock: " + waiting_threads(block));
    return false;
  }
  if (grid.idle > kMaxIdle + kMaxIdlePerThread * grid.runnable.size()) {
    report(text_of_block(block) + ": livelock: " + waiting_threads(block));
    return false;
  }
  return true;
}

void clean_up_abandoned() {
  for (Block& block : grid.blocks) {
    for (Thread& thread : block.threads) clean_stack(thread.fiber.stack);
    end_block(block);
  }
}

}  // namespace

std::string Launch::name() const { return name_of_code(call->kernel); }

const Launch& current_launch() { return *grid.launch; }

void wait(State state, Location where) {
  running->state = state;
  running->where = where;
  --running->block->runnable;
}

void wake(Thread& thread) {
  thread.state = State::kRunnable;
  ++thread.block->runnable;
  grid.runnable.push_back(&thread);
  grid.idle = 0;
}

void suspend() { switch_fiber(running->fiber, grid.host); }

void maybe_yield(bool progress, Location where) {
  running->where = where;
  grid.idle = progress ? 0 : grid.idle + kIdleOfAtomic;
  if (random().below(4) != 0) return;
  grid.runnable.push_back(running);
  suspend();
}

void yield_after(uint32_t accesses) {
  grid.idle += accesses;
  grid.runnable.push_back(running);
  suspend();
}

std::string describe(Location where) {
  return std::string(where.file_name()) + ":" + std::to_string(where.line());
}

std::string describe(const Thread& thread) {
  return text_of_block(*thread.block) + ", thread (" + std::to_string(thread.position.x) + "," +
         std::to_string(thread.position.y) + "," + std::to_string(thread.position.z) + ")";
}

void abandon_kernel() {
  before_jump_to_host(grid.host);
  siglongjmp(grid.abandon, 1);
}

void fail(const std::string& what, Location where) {
  report(describe(*running) + " " + what + ", at " + describe(where));
  abandon_kernel();
}

bool run_grid(const Launch& launch) {
  blockDim = launch.block;
  gridDim = launch.grid;
  begin(launch);
  if (sigsetjmp(grid.abandon, 1) != 0) {
    after_jump_to_host();
    running = nullptr;
    clean_up_abandoned();
    return false;
  }
  while (!grid.runnable.empty()) {
    if (!run_one()) {
      clean_up_abandoned();
      return false;
    }
  }
  return true;
}

}  // namespace cuda_on_cpu
