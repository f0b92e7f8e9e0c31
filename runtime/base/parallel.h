#pragma once
// parallel — the one door to host threads that compute.
//
// A Parallel runs a numbered list of tasks on a fixed number of threads.  Which thread runs which
// task is not defined, so a task's result must not depend on it: then no result depends on the
// number of threads.  Built on oneTBB; on plain threads in the thread-sanitizer build.

#include <cstddef>
#include <memory>
#include <type_traits>

namespace rowtide {

class Parallel {
 public:
  // `threads` includes the caller; 0 means one for each core.
  explicit Parallel(int threads);
  ~Parallel();
  Parallel(const Parallel&) = delete;
  Parallel& operator=(const Parallel&) = delete;

  int threads() const { return threads_; }

  // Runs task(i) for every i in [0, count) and waits for all of them.  With one thread, or one
  // task, they run in the caller in order.  Tasks must not throw.
  // Threads: one call at a time for one Parallel.
  template <typename Task>
  void run(size_t count, Task&& task) {
    if (threads_ == 1 || count < 2) {
      for (size_t i = 0; i < count; ++i) task(i);
      return;
    }
    using Pointer = std::remove_reference_t<Task>*;
    run_erased(
        count, [](void* t, size_t i) { (*static_cast<Pointer>(t))(i); },
        const_cast<void*>(static_cast<const void*>(&task)));
  }

 private:
  class Pool;
  void run_erased(size_t count, void (*call)(void*, size_t), void* task);

  int threads_;
  std::unique_ptr<Pool> pool_;
};

}  // namespace rowtide
