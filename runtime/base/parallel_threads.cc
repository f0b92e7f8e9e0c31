// Plain threads, for the thread-sanitizer build: oneTBB's own synchronisation is invisible to it.

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/base/parallel.h"

namespace rowtide {

class Parallel::Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
  }
  ~Pool() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (auto& worker : workers_) worker.join();
  }

  void run(size_t count, void (*call)(void*, size_t), void* task) {
    {
      std::lock_guard lock(mutex_);
      count_ = count, call_ = call, task_ = task, next_ = 0, busy_ = workers_.size(), ++round_;
    }
    wake_.notify_all();
    take_tasks();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void take_tasks() {
    for (size_t i = next_++; i < count_; i = next_++) call_(task_, i);
  }
  void work() {
    for (uint64_t seen = 0;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stop_ || round_ != seen; });
        if (stop_) return;
        seen = round_;
      }
      take_tasks();
      std::lock_guard lock(mutex_);
      if (--busy_ == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> workers_;
  std::atomic<size_t> next_{0};
  size_t count_ = 0, busy_ = 0;
  uint64_t round_ = 0;
  void (*call_)(void*, size_t) = nullptr;
  void* task_ = nullptr;
  bool stop_ = false;
};

Parallel::Parallel(int threads)
    : threads_(threads > 0 ? threads : static_cast<int>(std::thread::hardware_concurrency())) {
  if (threads_ < 1) threads_ = 1;
  if (threads_ > 1) pool_ = std::make_unique<Pool>(threads_);
}
Parallel::~Parallel() = default;

void Parallel::run_erased(size_t count, void (*call)(void*, size_t), void* task) {
  pool_->run(count, call, task);
}

}  // namespace rowtide
