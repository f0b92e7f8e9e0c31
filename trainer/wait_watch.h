#pragma once
// WaitWatch — says who waits for whom when a wait takes long.
//
// A wait of five seconds is told once.  A thread of its own looks four times a second, so that the
// line comes while the wait lasts.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace rowtide {

class WaitWatch {
 public:
  using Clock = std::function<double()>;  // seconds

  explicit WaitWatch(std::function<void(const std::string&)> say);
  // Without a thread: check() is called by hand, `clock` tells the time.
  WaitWatch(std::function<void(const std::string&)> say, Clock clock);
  ~WaitWatch();

  // Marks a wait while it lives: "the trainer waits for the reader".
  class Wait {
   public:
    Wait(WaitWatch& watch, const char* what);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    WaitWatch& watch_;
  };

  void check();

 private:
  std::function<void(const std::string&)> say_;
  Clock clock_;
  std::mutex mutex_;
  std::condition_variable ended_;
  const char* what_ = nullptr;
  double since_ = 0;
  bool told_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace rowtide
