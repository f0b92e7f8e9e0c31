#include "trainer/wait_watch.h"

#include <chrono>

#include "trainer/steady_seconds.h"

namespace rowtide {
namespace {

constexpr double kPatienceSeconds = 5;
constexpr std::chrono::milliseconds kLook{250};

}  // namespace

WaitWatch::WaitWatch(std::function<void(const std::string&)> say, Clock clock)
    : say_(std::move(say)), clock_(std::move(clock)) {}

WaitWatch::WaitWatch(std::function<void(const std::string&)> say)
    : WaitWatch(std::move(say), steady_seconds) {
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, kLook, [this] { return stop_; })) {
      lock.unlock();
      check();
      lock.lock();
    }
  });
}

WaitWatch::~WaitWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void WaitWatch::check() {
  std::string line;
  {
    const std::lock_guard lock(mutex_);
    if (what_ == nullptr || told_ || clock_() - since_ < kPatienceSeconds) return;
    told_ = true;
    line = std::string(what_) + ", for 5 s now";
  }
  say_(line);
}

WaitWatch::Wait::Wait(WaitWatch& watch, const char* what) : watch_(watch) {
  const std::lock_guard lock(watch_.mutex_);
  watch_.what_ = what;
  watch_.since_ = watch_.clock_();
  watch_.told_ = false;
}

WaitWatch::Wait::~Wait() {
  const std::lock_guard lock(watch_.mutex_);
  watch_.what_ = nullptr;
}

}  // namespace rowtide
