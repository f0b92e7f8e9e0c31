// The GPU ops on the CPU: every case under several orders of threads and streams.

#include <gtest/gtest.h>

#include "tests/gpu/device_array.h"
#include "tests/gpu/emulated_gpu.h"
#include "tests/gpu/gpu_case.h"

namespace rowtide {

const size_t kGuardBytes = 0;

namespace {

using Parameter = std::tuple<GpuCase, uint64_t>;

class GpuOpTest : public EmulatedGpu, public ::testing::WithParamInterface<Parameter> {};

TEST_P(GpuOpTest, EqualsItsMeaning) {
  const auto& [test, seed] = GetParam();
  cuda_on_cpu::reset(seed);
  EXPECT_EQ(test.run().to_string(), "ok");
}

std::string name_of(const ::testing::TestParamInfo<Parameter>& info) {
  return std::get<0>(info.param).name + "Seed" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(PooledLookup, GpuOpTest,
                         ::testing::Combine(::testing::ValuesIn(pooled_lookup_gpu_cases()),
                                            ::testing::Values(1, 2, 3)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(DirectoryProbe, GpuOpTest,
                         ::testing::Combine(::testing::ValuesIn(directory_probe_gpu_cases()),
                                            ::testing::Values(1, 2, 3)),
                         name_of);

}  // namespace
}  // namespace rowtide
