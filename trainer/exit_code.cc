#include "trainer/exit_code.h"

#include <cstdio>

namespace rowtide {
namespace {

int runtime_exit_code(Code code) {
  switch (code) {
    case Code::kOk:
      return kExitDone;
    case Code::kInvalid:
      return kExitUsage;
    case Code::kDevice:
    case Code::kUnavailable:
      return kExitDevice;
    default:
      return kExitStorage;
  }
}

// A plan looks at the store and the device that the configuration names.
int config_exit_code(Code code) {
  switch (code) {
    case Code::kIo:
    case Code::kCorrupt:
    case Code::kFormat:
    case Code::kLocked:
      return kExitStorage;
    case Code::kUnavailable:
      return kExitDevice;
    default:
      return kExitUsage;
  }
}

}  // namespace

int exit_code(const Failure& failure) {
  if (failure.ok()) return kExitDone;
  switch (failure.part) {
    case Part::kConfig:
      return config_exit_code(failure.status.code());
    case Part::kData:
      return kExitData;
    case Part::kRuntime:
      return runtime_exit_code(failure.status.code());
    case Part::kLoss:
      return kExitDiverged;
  }
  return kExitStorage;
}

int finish_command(const Failure& failure) {
  if (!failure.ok()) std::fprintf(stderr, "rowtide: %s\n", failure.status.to_string().c_str());
  std::fflush(stdout);
  return exit_code(failure);
}

const char* describe_exit_codes() {
  return "Exit codes: 0 done, 1 the loss became infinite or NaN, 2 usage or configuration,\n"
         "3 data, 4 storage, 5 device, 130 second Ctrl-C.";
}

}  // namespace rowtide
