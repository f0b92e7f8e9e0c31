#pragma once
// exit_code — what the program returns for which failure; scripts rely on it.

#include "runtime/base/status.h"

namespace rowtide {

enum ExitCode : int {
  kExitDone = 0,
  kExitDiverged = 1,  // the loss is no finite number
  kExitUsage = 2,     // usage or configuration
  kExitData = 3,
  kExitStorage = 4,
  kExitDevice = 5,
  kExitKilled = 130,  // the second Ctrl-C
};

// Which part of the program met a failure.
enum class Part { kConfig, kData, kRuntime, kLoss };

// A failure and the part that met it.
struct Failure {
  Status status;
  Part part = Part::kRuntime;
  bool ok() const { return status.ok(); }
};

int exit_code(const Failure& failure);

// Prints why a command failed, if it did; its exit code.
int finish_command(const Failure& failure);

// One line for each code, for --help.
const char* describe_exit_codes();

}  // namespace rowtide

// Returns a Failure of `part` from the enclosing function if a Status is one.
#define ROWTIDE_TRY_PART(part, expression)                          \
  do {                                                              \
    if (auto rowtide_status = (expression); !rowtide_status.ok()) { \
      return ::rowtide::Failure{rowtide_status, part};              \
    }                                                               \
  } while (0)
