#pragma once
// commands — what each sub-command of `rowtide` does; main.cc reads their arguments.
//
// Each prints its results to stdout and its progress and errors to stderr, and returns the exit
// code of the program.

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/synth.h"

namespace rowtide {

struct TrainArguments {
  std::string config;
  std::vector<std::string> sets;  // section.key=value
  bool resume = false;
  uint64_t steps = 0;  // stop after so many steps in all; 0: as the configuration says
};
int train_command(const TrainArguments& arguments);

struct EvalArguments {
  std::string directory;
  std::vector<std::string> files;
};
int eval_command(const EvalArguments& arguments);

struct PlanArguments {
  std::string config;
  std::vector<std::string> sets;
};
int plan_command(const PlanArguments& arguments);

struct InspectArguments {
  std::string directory;
  bool digest = false;
  std::vector<std::string> rows;  // table:id
};
int inspect_command(const InspectArguments& arguments);

int synth_command(SynthOptions options);

}  // namespace rowtide
