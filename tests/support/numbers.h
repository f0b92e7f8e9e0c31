#pragma once
// numbers — values.h, and the fixture of tests that run on each instruction set.

#include <gtest/gtest.h>

#include <tuple>

#include "kernels/instruction_set.h"
#include "tests/support/values.h"

namespace rowtide {

// A fixture whose tests run once on each instruction set of this machine.
template <typename Parameter>
class OnEachInstructionSet
    : public ::testing::TestWithParam<std::tuple<InstructionSet, Parameter>> {
 protected:
  void SetUp() override { force_instruction_set(std::get<0>(this->GetParam())); }
  void TearDown() override { force_instruction_set(before_); }
  const Parameter& parameter() const { return std::get<1>(this->GetParam()); }

 private:
  InstructionSet before_ = instruction_set();
};

inline auto each_instruction_set() { return ::testing::ValuesIn(instruction_sets()); }

}  // namespace rowtide
