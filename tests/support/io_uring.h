#pragma once
// io_uring — whether this machine lets a test use it.

#include <string>

#include "storage/io_queue.h"

namespace rowtide {

// Empty, or why not.
inline std::string why_no_io_uring() {
  const auto queue = storage::make_uring_queue(/*depth=*/8);
  return queue.ok() ? "" : queue.status().to_string();
}

}  // namespace rowtide
