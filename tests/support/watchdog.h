#pragma once
// Watchdog — ends the program with a message if a scope is not left in time: a deadlock fails.

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

namespace rowtide {

class Watchdog {
 public:
  explicit Watchdog(std::string what, std::chrono::seconds limit = std::chrono::seconds(120))
      : what_(std::move(what)), thread_([this, limit] { watch(limit); }) {}
  ~Watchdog() {
    {
      std::lock_guard lock(mutex_);
      done_ = true;
    }
    wakes_.notify_all();
    thread_.join();
  }

 private:
  void watch(std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    if (wakes_.wait_for(lock, limit, [this] { return done_; })) return;
    std::fprintf(stderr, "hangs: %s\n", what_.c_str());
    std::abort();
  }

  std::string what_;
  std::mutex mutex_;
  std::condition_variable wakes_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace rowtide
