// The emulated GPU itself: that it does what CUDA defines, and says what went wrong, and where.

#include <gtest/gtest.h>

#include "tests/gpu/emulated_gpu.h"
#include "tests/gpu/faulty_kernels.h"
#include "tests/gpu/two_streams.h"

namespace rowtide {
namespace {

using ::testing::Values;

// Tests that expect reports take them; any other is a failure.
class EmulatorTest : public EmulatedGpu {
 protected:
  EmulatorTest() { cuda_on_cpu::print_sanitizer_reports(false); }
  ~EmulatorTest() override { cuda_on_cpu::print_sanitizer_reports(true); }

  static bool net_is(const std::string& name) { return cuda_on_cpu::net() == name; }

  // Whether something was reported, and each of the words in one report.
  static ::testing::AssertionResult reported(const std::vector<std::string>& words) {
    std::string all;
    for (const std::string& report : cuda_on_cpu::take_reports()) {
      bool has_all = true;
      for (const std::string& word : words) has_all &= report.find(word) != std::string::npos;
      if (has_all) return ::testing::AssertionSuccess();
      all += "\n  " + report;
    }
    return ::testing::AssertionFailure() << "reported was only:" << all;
  }
};

uint32_t shuffled_by_definition(Shuffle shuffle, uint32_t lane, uint32_t operand, uint32_t width) {
  const uint32_t first = lane / width * width, end = first + width;
  const uint32_t from = shuffle == Shuffle::kIndex  ? first + operand % width
                        : shuffle == Shuffle::kUp   ? lane - operand
                        : shuffle == Shuffle::kDown ? lane + operand
                                                    : lane ^ operand;
  const bool clamped = shuffle == Shuffle::kUp ? lane < first + operand : from >= end;
  return 100 + (clamped ? lane : from);
}

TEST_F(EmulatorTest, ShufflesAreThoseOfCuda) {
  TwoStreams gpu;
  auto out = gpu.words(32, 0);
  for (const Shuffle shuffle : {Shuffle::kIndex, Shuffle::kUp, Shuffle::kDown, Shuffle::kXor}) {
    for (const uint32_t width : {1, 2, 8, 16, 32}) {
      for (const uint32_t operand : {0, 1, 3, 7, 16, 31}) {
        start_shuffle(out.device(), shuffle, operand, width, gpu.stream.get());
        const auto values = gpu.read(out);
        for (uint32_t lane = 0; lane < 32; ++lane) {
          EXPECT_EQ(values[lane], shuffled_by_definition(shuffle, lane, operand, width))
              << static_cast<int>(shuffle) << " width " << width << " operand " << operand;
        }
      }
    }
  }
}

TEST_F(EmulatorTest, ASeedFixesTheOrderAndAnotherChangesIt) {
  const auto order = [](uint64_t seed) {
    cuda_on_cpu::reset(seed);
    TwoStreams gpu;
    auto counter = gpu.words(1, 0), out = gpu.words(50, 0);
    start_order_of_blocks(counter.device(), out.device(), 50, gpu.stream.get());
    return gpu.read(out);
  };
  EXPECT_EQ(order(1), order(1));
  const bool replays = cuda_on_cpu::seed_or(0) != 0;
  EXPECT_TRUE(replays || order(1) != order(2));
}

TEST_F(EmulatorTest, AThreadThatSaysSoMayLeaveBeforeABarrier) {
  TwoStreams gpu;
  auto out = gpu.words(1, 7);
  start_meeting(out.device(), MeetFault::kNone, gpu.stream.get());
  EXPECT_EQ(gpu.read(out), std::vector<uint32_t>{0});
}

class MeetingTest : public EmulatorTest,
                    public ::testing::WithParamInterface<std::pair<MeetFault, const char*>> {};

TEST_P(MeetingTest, ThatFailsIsReportedWithKernelBlockThreadAndLine) {
  TwoStreams gpu;
  auto out = gpu.words(1, 7);
  start_meeting(out.device(), GetParam().first, gpu.stream.get());
  EXPECT_EQ(gpu.stream.synchronize().code(), Code::kDevice);
  EXPECT_TRUE(reported(
      {"meeting_kernel, block (0,0,0)", "thread", "faulty_kernels.cu:", GetParam().second}));
}

INSTANTIATE_TEST_SUITE_P(
    All, MeetingTest,
    Values(std::pair{MeetFault::kBareReturn, "32 threads, the first 32, returned without"},
           std::pair{MeetFault::kTwoBarriers, "32 threads, the first 0, at the barrier"},
           std::pair{MeetFault::kMaskTooWide, "deadlock"},
           std::pair{MeetFault::kMaskWithoutSelf, "is not in the mask it gives"},
           std::pair{MeetFault::kReadsOutsideMask, "which is not in the mask"}));

TEST_F(EmulatorTest, ALivelockIsReported) {
  TwoStreams gpu;
  auto lock = gpu.words(1, 1), sums = gpu.words(2, 0);
  start_locked_sums(lock.device(), sums.device(), LockFault::kNone, gpu.stream.get());
  EXPECT_EQ(gpu.stream.synchronize().code(), Code::kDevice);
  EXPECT_TRUE(reported({"locked_sums_kernel", "livelock", "faulty_kernels.cu:"}));
}

TEST_F(EmulatorTest, AfterAFaultNothingRunsUntilReset) {
  TwoStreams gpu;
  auto out = gpu.words(1, 7);
  start_meeting(out.device(), MeetFault::kBareReturn, gpu.stream.get());
  EXPECT_FALSE(gpu.stream.synchronize().ok());
  start_nothing(1, 32, 0, gpu.stream.get());
  EXPECT_EQ(start_status().code(), Code::kDevice);
  cuda_on_cpu::reset(2);
  start_nothing(1, 32, 0, gpu.stream.get());
  EXPECT_TRUE(start_status().ok());
  EXPECT_TRUE(gpu.stream.synchronize().ok());
}

TEST_F(EmulatorTest, ShapesThatCudaRefusesAreRefused) {
  TwoStreams gpu;
  const auto refused = [&](uint32_t blocks, uint32_t threads, uint32_t shared_bytes) {
    start_nothing(blocks, threads, shared_bytes, gpu.stream.get());
    return start_status().code() == Code::kDevice && start_status().ok();
  };
  EXPECT_TRUE(refused(0, 32, 0));
  EXPECT_TRUE(refused(1, 0, 0));
  EXPECT_TRUE(refused(1, 1056, 0));
  EXPECT_TRUE(refused(1, 32, (48 << 10) + 1));
  EXPECT_FALSE(refused(1, 1024, 48 << 10));
  EXPECT_TRUE(refused(1, 33, 0));
  EXPECT_TRUE(reported({"nothing_kernel", "no multiple of 32"}));
}

TEST_F(EmulatorTest, TheDefaultStreamIsReported) {
  start_nothing(1, 32, 0, nullptr);
  EXPECT_FALSE(start_status().ok());
  EXPECT_TRUE(reported({"default stream"}));
}

TEST_F(EmulatorTest, ACopyFromPageableMemoryIsReported) {
  TwoStreams gpu;
  auto in = gpu.words(1, 7);
  uint32_t pageable = 8;
  EXPECT_FALSE(copy_to_device(in.device(), &pageable, 4, gpu.stream.get()).ok());
  EXPECT_TRUE(reported({"not pinned"}));
}

TEST_F(EmulatorTest, ACopyBeyondAnAllocationIsReported) {
  TwoStreams gpu;
  auto in = gpu.words(1, 7);
  const PinnedArena host = std::move(*PinnedArena::reserve(8, "two words"));
  EXPECT_FALSE(copy_to_device(in.device(), host.bytes(), 8, gpu.stream.get()).ok());
  EXPECT_TRUE(reported({"a copy to the device writes device allocation", "(4 bytes) + 0"}));
}

TEST_F(EmulatorTest, AWildPointerEndsTheKernelNotTheProgram) {
  TwoStreams gpu;
  auto out = gpu.words(1, 0);
  start_read(reinterpret_cast<const uint32_t*>(uintptr_t{64}), out.device(), gpu.stream.get());
  EXPECT_EQ(gpu.stream.synchronize().code(), Code::kDevice);
  EXPECT_TRUE(reported({"read_kernel, block (0,0,0), thread (0,0,0) touches"}));
  cuda_on_cpu::take_reports();
}

TEST_F(EmulatorTest, FreedMemoryIsPoisonedAndTheOtherNetsSayWhoReadIt) {
  TwoStreams gpu;
  auto out = gpu.words(1, 0);
  const uint32_t* freed = gpu.words(1, 0).device();
  start_read(freed, out.device(), gpu.stream.get());
  EXPECT_EQ(gpu.read(out), std::vector<uint32_t>{0xFFC1FFC1u});
  EXPECT_TRUE(net_is("plain") || reported({"read_kernel"}));
}

TEST_F(EmulatorTest, TheRaceNetKnowsAKernelThatReadsHostMemory) {
  TwoStreams gpu;
  auto out = gpu.words(1, 0);
  const auto host = std::make_unique<uint32_t>(7);
  start_read(host.get(), out.device(), gpu.stream.get());
  EXPECT_EQ(gpu.read(out), std::vector<uint32_t>{7});
  EXPECT_TRUE(!net_is("race") || reported({"read_kernel", "touches host memory"}));
}

TEST_F(EmulatorTest, SharedMemoryEndsWhereItEnds) {
  for (const bool dynamic : {false, true}) {
    TwoStreams gpu;
    start_fill_shared(64, dynamic, gpu.stream.get());
    EXPECT_TRUE(gpu.stream.synchronize().ok());
    EXPECT_EQ(cuda_on_cpu::take_reports(), std::vector<std::string>());
    start_fill_shared(65, dynamic, gpu.stream.get());
    EXPECT_TRUE(gpu.stream.synchronize().ok());
    EXPECT_TRUE(reported({"fill_shared_kernel"}));
    cuda_on_cpu::take_reports();
  }
}

TEST_F(EmulatorTest, DeviceMemoryThatIsNotThereIsNamed) {
  const auto arena = DeviceArena::reserve(uint64_t{1} << 40, "the hot slots");
  EXPECT_EQ(arena.status().code(), Code::kNoSpace);
  EXPECT_NE(arena.status().message().find("the hot slots needs 1099511627776 bytes"),
            std::string::npos);
}

TEST_F(EmulatorTest, FreshDeviceMemoryHoldsNan) {
  TwoStreams gpu;
  const DeviceArena fresh = std::move(*DeviceArena::reserve(4, "a float"));
  const PinnedArena host = std::move(*PinnedArena::reserve(4, "a float"));
  ASSERT_TRUE(copy_to_host(host.bytes(), fresh.bytes(), 4, gpu.stream.get()).ok());
  ASSERT_TRUE(gpu.stream.synchronize().ok());
  float value;
  std::memcpy(&value, host.bytes(), 4);
  EXPECT_NE(value, value);
  EXPECT_TRUE(!net_is("race") || reported({"copy to the host", "uninitialised"}));
}

}  // namespace
}  // namespace rowtide
