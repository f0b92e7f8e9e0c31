#pragma once
// steady_seconds — the time of a clock that only goes forward.

#include <chrono>

namespace rowtide {

inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace rowtide
