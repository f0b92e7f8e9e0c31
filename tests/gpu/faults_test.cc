// What keeps the emulator honest: faults that it must catch, by a report or by a wrong result, over
// twenty seeds; and the right versions of the same kernels, of which it must say nothing.

#include <gtest/gtest.h>

#include <functional>

#include "tests/gpu/emulated_gpu.h"
#include "tests/gpu/faulty_kernels.h"
#include "tests/gpu/two_streams.h"

namespace rowtide {
namespace {

constexpr uint32_t kBlocks = 4, kWords = kBlocks * kFaultyThreads;
constexpr int kSeeds = 20;

// Each runs a kernel and says whether the result is right.

bool sums_blocks(bool faulty) {
  TwoStreams gpu;
  auto in = gpu.words(kWords, 3), out = gpu.words(kBlocks, 0);
  start_block_sum(in.device(), out.device(), kBlocks, /*barrier=*/!faulty, gpu.stream.get());
  return gpu.read(out) == std::vector<uint32_t>(kBlocks, 3 * kFaultyThreads);
}

bool reverses_warps(bool faulty) {
  TwoStreams gpu;
  auto in = gpu.counted(kWords, kWords), out = gpu.words(kWords, 0);
  start_warp_reverse(in.device(), out.device(), kBlocks, /*sync=*/!faulty, gpu.stream.get());
  std::vector<uint32_t> expected(kWords);
  for (uint32_t i = 0; i < kWords; ++i) expected[i] = i ^ 31;
  return gpu.read(out) == expected;
}

bool stays_in_bounds(bool faulty) {
  TwoStreams gpu;
  auto in = gpu.words(1000, 5), out = gpu.words(1000, 0), next = gpu.words(1000, 0);
  start_add_one(in.device(), out.device(), 1000, /*bounds_check=*/!faulty, gpu.stream.get());
  return gpu.read(out) == std::vector<uint32_t>(1000, 6) &&
         gpu.read(next) == std::vector<uint32_t>(1000, 0);
}

bool clears_shared_memory(bool faulty) {
  TwoStreams gpu;
  auto in = gpu.counted(kWords, 32), out = gpu.words(32, 0);
  start_count_values(in.device(), out.device(), kBlocks, /*cleared=*/!faulty, gpu.stream.get());
  return gpu.read(out) == std::vector<uint32_t>(32, kWords / 32);
}

bool counts_atomically(bool faulty) {
  TwoStreams gpu;
  auto out = gpu.words(1, 0);
  start_count_threads(out.device(), /*atomic=*/!faulty, gpu.stream.get());
  return gpu.read(out) == std::vector<uint32_t>{kFaultyThreads};
}

bool sums_under_a_lock(LockFault fault) {
  TwoStreams gpu;
  auto lock = gpu.words(1, 0), sums = gpu.words(2, 0);
  start_locked_sums(lock.device(), sums.device(), fault, gpu.stream.get());
  return gpu.read(sums) == std::vector<uint32_t>{32, 64};
}

// One stream fills what another reads; only an event makes the second wait.
bool waits_between_streams(bool faulty) {
  TwoStreams gpu;
  auto in = gpu.words(kWords, 1), middle = gpu.words(kWords, 0), out = gpu.words(kWords, 0);
  Event filled = std::move(*Event::create());
  start_add_one(in.device(), middle.device(), kWords, true, gpu.other.get());
  EXPECT_TRUE(filled.record(gpu.other).ok());
  EXPECT_TRUE(faulty || gpu.stream.wait(filled).ok());
  start_add_one(middle.device(), out.device(), kWords, true, gpu.stream.get());
  return gpu.read(out) == std::vector<uint32_t>(kWords, 3);
}

bool host_waits_for_a_copy(bool faulty) {
  TwoStreams gpu;
  auto in = gpu.words(1, 7);
  PinnedArena host = std::move(*PinnedArena::reserve(4, "a word"));
  EXPECT_TRUE(copy_to_host(host.bytes(), in.device(), 4, gpu.stream.get()).ok());
  EXPECT_TRUE(faulty || gpu.stream.synchronize().ok());
  uint32_t value;
  std::memcpy(&value, host.bytes(), 4);
  return value == 7;
}

bool host_keeps_off_device_memory(bool faulty) {
  TwoStreams gpu;
  auto in = gpu.words(1, 7);
  if (faulty) {
    volatile uint32_t* const word = in.device();
    *word = 8;
  }
  return gpu.read(in) == std::vector<uint32_t>{7};
}

struct Experiment {
  const char* name;
  std::function<bool(bool faulty)> run;
  // In how many of twenty seeds the fault must be caught.  Fewer than 20 where chance decides which
  // stream goes first; 0 where this net is blind.
  int plain, asan, race;

  int least() const {
    const std::string net = cuda_on_cpu::net();
    return net == "plain" ? plain : net == "asan" ? asan : race;
  }
};

void PrintTo(const Experiment& experiment, std::ostream* out) { *out << experiment.name; }

std::function<bool(bool)> lock_with(LockFault fault) {
  return [fault](bool faulty) { return sums_under_a_lock(faulty ? fault : LockFault::kNone); };
}

const Experiment kExperiments[] = {
    {"SyncthreadsRemoved", sums_blocks, 20, 20, 20},
    {"SyncwarpRemoved", reverses_warps, 20, 20, 20},
    {"BoundsCheckRemoved", stays_in_bounds, 20, 20, 20},
    {"SharedMemoryNotCleared", clears_shared_memory, 20, 20, 20},
    {"PlainAddForAtomicAdd", counts_atomically, 0, 0, 20},
    {"LockRemoved", lock_with(LockFault::kNoLock), 20, 20, 20},
    {"LockFreedByPlainStore", lock_with(LockFault::kPlainUnlock), 0, 0, 20},
    {"FenceBeforeUnlockRemoved", lock_with(LockFault::kNoFenceBefore), 0, 0, 20},
    {"FenceAfterLockRemoved", lock_with(LockFault::kNoFenceAfter), 0, 0, 20},
    {"LockNeverFreed", lock_with(LockFault::kNeverUnlocked), 20, 20, 20},
    {"StreamWaitRemoved", waits_between_streams, 10, 10, 20},
    {"HostWaitRemoved", host_waits_for_a_copy, 20, 20, 20},
    {"HostTouchesDeviceMemory", host_keeps_off_device_memory, 20, 20, 20},
};

class FaultTest : public EmulatedGpu, public ::testing::WithParamInterface<Experiment> {
 protected:
  FaultTest() { cuda_on_cpu::print_sanitizer_reports(false); }
  ~FaultTest() override { cuda_on_cpu::print_sanitizer_reports(true); }
};

TEST_P(FaultTest, IsCaughtAndItsAbsenceIsNot) {
  int caught = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    cuda_on_cpu::reset(seed);
    EXPECT_TRUE(GetParam().run(/*faulty=*/false)) << "seed " << seed;
    EXPECT_EQ(cuda_on_cpu::take_reports(), std::vector<std::string>()) << "seed " << seed;
    cuda_on_cpu::reset(seed);
    const bool right = GetParam().run(/*faulty=*/true);
    const bool reported = !cuda_on_cpu::take_reports().empty();
    caught += reported || !right;
  }
  EXPECT_GE(caught, GetParam().least());
}

INSTANTIATE_TEST_SUITE_P(Twenty, FaultTest, ::testing::ValuesIn(kExperiments),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace rowtide
