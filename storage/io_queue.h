#pragma once
// IoQueue — reads, writes and syncs of files, many in flight, ended in any order.
//
// It knows files, offsets and bytes; nothing of segments or records.  Short transfers and errors
// are reported as they come: who asked decides whether to try again.  Engines: uring_queue.cc,
// thread_queue.cc, and a fake in tests/support.
//
// Threads: one owner; an engine may have threads of its own.
// Memory:  a buffer must live until its request has ended.  Buffers, offsets and sizes are
// multiples
//          of kPageBytes, so that every engine can use O_DIRECT.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "storage/cold_store.h"

namespace rowtide::storage {

inline constexpr uint32_t kPageBytes = 4096;  // the unit of O_DIRECT and of what a crash may tear

enum class IoKind : uint8_t { kRead, kWrite, kSync };

struct IoRequest {
  IoKind kind = IoKind::kRead;
  int file = -1;  // of the FileSystem that the queue belongs to
  uint64_t offset = 0;
  std::byte* buffer = nullptr;
  uint32_t bytes = 0;
  uint64_t ticket = 0;
};

struct IoDone {
  uint64_t ticket = 0;
  int64_t result = 0;  // bytes moved, or a negative errno
};

class IoQueue {
 public:
  virtual ~IoQueue() = default;

  // Takes the request; it is sent with the next poll() at the latest.
  // REQUIRES: fewer requests are in flight than the depth that the queue was made with.
  virtual void submit(const IoRequest& request) = 0;

  // Sends what was submitted and appends what has ended to `done`.  With `wait`, waits for one end
  // if anything is in flight.
  virtual void poll(bool wait, std::vector<IoDone>& done) = 0;

  virtual const char* name() const = 0;
};

// Errors: kUnavailable (the kernel refuses io_uring).
Result<std::unique_ptr<IoQueue>> make_uring_queue(uint32_t depth);
std::unique_ptr<IoQueue> make_thread_queue(uint32_t depth);

// The engine asked for; kAuto falls back from io_uring to threads and says so once to `log`.
// Errors: kUnavailable.
Result<std::unique_ptr<IoQueue>> make_queue(IoEngine engine, uint32_t depth,
                                            const std::function<void(const std::string&)>& log);

}  // namespace rowtide::storage
