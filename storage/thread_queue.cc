// A thread pool that reads and writes: for kernels and sandboxes without io_uring.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "runtime/base/signals.h"
#include "storage/io_queue.h"

namespace rowtide::storage {
namespace {

constexpr uint32_t kMostThreads = 16;  // each holds one request at the device

int64_t carry_out(const IoRequest& request) {
  int64_t result = -1;
  do {
    switch (request.kind) {
      case IoKind::kRead:
        result =
            pread(request.file, request.buffer, request.bytes, static_cast<off_t>(request.offset));
        break;
      case IoKind::kWrite:
        result =
            pwrite(request.file, request.buffer, request.bytes, static_cast<off_t>(request.offset));
        break;
      case IoKind::kSync:
        result = fdatasync(request.file);
        break;
    }
  } while (result < 0 && errno == EINTR);
  return result < 0 ? -errno : result;
}

class ThreadQueue final : public IoQueue {
 public:
  explicit ThreadQueue(uint32_t depth) {
    unsent_.reserve(depth);
    sent_.resize(std::max(depth, 1u));
    ended_.reserve(depth);
    for (uint32_t i = 0; i < std::clamp(depth, 1u, kMostThreads); ++i) {
      threads_.emplace_back([this] { work(); });
    }
  }
  ~ThreadQueue() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  void submit(const IoRequest& request) override { unsent_.push_back(request); }

  void poll(bool wait, std::vector<IoDone>& done) override {
    std::unique_lock lock(mutex_);
    for (const IoRequest& request : unsent_) sent_[(head_ + count_++) % sent_.size()] = request;
    in_flight_ += unsent_.size();
    if (unsent_.size() == 1) wake_.notify_one();
    if (unsent_.size() > 1) wake_.notify_all();
    unsent_.clear();
    if (wait && in_flight_ > 0) some_ended_.wait(lock, [this] { return !ended_.empty(); });
    done.insert(done.end(), ended_.begin(), ended_.end());
    in_flight_ -= ended_.size();
    ended_.clear();
  }

  const char* name() const override { return "threads"; }

 private:
  void work() {
    leave_signals_to_others();
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stop_ || count_ > 0; });
      if (count_ == 0) return;
      const IoRequest request = sent_[head_];
      head_ = (head_ + 1) % sent_.size();
      --count_;
      lock.unlock();
      const int64_t result = carry_out(request);
      lock.lock();
      ended_.push_back({request.ticket, result});
      some_ended_.notify_one();
    }
  }

  std::vector<IoRequest> unsent_;  // the owner's alone
  std::mutex mutex_;               // guards the rest
  std::condition_variable wake_, some_ended_;
  std::vector<IoRequest> sent_;  // a ring of `count_` requests from `head_`
  size_t head_ = 0, count_ = 0;
  std::vector<IoDone> ended_;
  size_t in_flight_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<IoQueue> make_thread_queue(uint32_t depth) {
  return std::make_unique<ThreadQueue>(depth);
}

}  // namespace rowtide::storage
