#include <liburing.h>

#include <algorithm>
#include <cstring>

#include "storage/io_queue.h"

namespace rowtide::storage {
namespace {

constexpr uint32_t kMostEntries = 4096;  // of the submission ring; more in flight is fine

class UringQueue final : public IoQueue {
 public:
  ~UringQueue() override {
    std::vector<IoDone> ended;  // the kernel may still write to the caller's buffers
    while (in_flight_ > 0) poll(true, ended);
    if (open_) io_uring_queue_exit(&ring_);
  }

  int open(uint32_t depth) {
    io_uring_params params{};
    params.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    params.cq_entries = std::max(depth, 8u) * 2;
    const int error =
        io_uring_queue_init_params(std::clamp(depth, 8u, kMostEntries), &ring_, &params);
    open_ = error == 0;
    return error;
  }

  void submit(const IoRequest& request) override {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    while (entry == nullptr) {  // more than one ring full since the last poll
      io_uring_submit(&ring_);
      entry = io_uring_get_sqe(&ring_);
    }
    switch (request.kind) {
      case IoKind::kRead:
        io_uring_prep_read(entry, request.file, request.buffer, request.bytes, request.offset);
        break;
      case IoKind::kWrite:
        io_uring_prep_write(entry, request.file, request.buffer, request.bytes, request.offset);
        break;
      case IoKind::kSync:
        io_uring_prep_fsync(entry, request.file, IORING_FSYNC_DATASYNC);
        break;
    }
    io_uring_sqe_set_data64(entry, request.ticket);
    ++in_flight_;
  }

  void poll(bool wait, std::vector<IoDone>& done) override {
    if (in_flight_ == 0) return;
    if (wait) {
      do {
        io_uring_submit_and_wait(&ring_, 1);
      } while (io_uring_cq_ready(&ring_) == 0);  // a signal came first
    } else if (io_uring_sq_ready(&ring_) > 0) {
      io_uring_submit(&ring_);
    }
    uint32_t head = 0, ended = 0;
    io_uring_cqe* entry = nullptr;
    io_uring_for_each_cqe(&ring_, head, entry) {
      done.push_back({entry->user_data, entry->res});
      ++ended;
    }
    io_uring_cq_advance(&ring_, ended);
    in_flight_ -= ended;
  }

  const char* name() const override { return "io_uring"; }

 private:
  io_uring ring_{};
  bool open_ = false;
  uint32_t in_flight_ = 0;
};

}  // namespace

Result<std::unique_ptr<IoQueue>> make_uring_queue(uint32_t depth) {
  auto queue = std::make_unique<UringQueue>();
  if (const int error = queue->open(depth); error != 0) {
    return {Code::kUnavailable, std::string("io_uring is refused: ") + std::strerror(-error)};
  }
  return std::unique_ptr<IoQueue>(std::move(queue));
}

Result<std::unique_ptr<IoQueue>> make_queue(IoEngine engine, uint32_t depth,
                                            const std::function<void(const std::string&)>& log) {
  if (engine == IoEngine::kThreads) return make_thread_queue(depth);
  auto queue = make_uring_queue(depth);
  if (queue.ok() || engine == IoEngine::kUring) return queue;
  if (log) log(queue.status().message() + "; a thread pool does the I/O instead");
  return make_thread_queue(depth);
}

}  // namespace rowtide::storage
