#include "runtime/base/status.h"

#include <cstdio>
#include <cstdlib>

namespace rowtide {

const char* code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalid:
      return "invalid";
    case Code::kNotFound:
      return "not found";
    case Code::kIo:
      return "io error";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kDevice:
      return "device error";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kBusy:
      return "busy";
    case Code::kNoSpace:
      return "no space";
    case Code::kLocked:
      return "locked";
    case Code::kFormat:
      return "wrong format";
    case Code::kInterrupted:
      return "interrupted";
  }
  return "unknown";
}

std::string Status::to_string() const {
  if (ok()) return code_name(code_);
  return std::string(code_name(code_)) + ": " + message_;
}

void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: bug: this must hold: %s\n", file, line, condition);
  std::abort();
}

}  // namespace rowtide
