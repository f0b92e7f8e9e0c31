#pragma once
// disk_error — what a failed write is called.

#include <cerrno>
#include <cstring>
#include <string>

#include "runtime/base/status.h"

namespace rowtide {

// kNoSpace, with a file that may not grow further as well, or kIo.
inline Status disk_error(const std::string& what, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return {full ? Code::kNoSpace : Code::kIo, what + ": " + std::strerror(error)};
}

}  // namespace rowtide
