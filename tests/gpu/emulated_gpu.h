#pragma once
// EmulatedGpu — the fixture of tests that run kernels on the CPU: nothing may be reported.

#include <gtest/gtest.h>

#include <string>

#include "tests/support/cuda_on_cpu/control.h"

namespace rowtide {

class EmulatedGpu : public ::testing::Test {
 protected:
  void SetUp() override { cuda_on_cpu::reset(/*seed=*/1); }
  void TearDown() override {
    for (const std::string& report : cuda_on_cpu::take_reports()) {
      ADD_FAILURE() << report << "\n(replay: ROWTIDE_GPU_SEED=" << cuda_on_cpu::seed() << ")";
    }
  }
};

}  // namespace rowtide
