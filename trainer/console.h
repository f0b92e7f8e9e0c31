#pragma once
// Console — what a person sees while a program works: notices, and one progress line.
//
// On a terminal the progress line is rewritten in place; elsewhere a line is printed every ten
// seconds.  Threads: any.

#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>

namespace rowtide {

struct Progress {
  std::string what;     // "train"
  double fraction = 0;  // 0 .. 1
  std::string details;  // "step 40 of 200, loss 0.52"
};

class Console {
 public:
  using Clock = std::function<double()>;  // seconds

  // Writes to stderr.
  Console();
  Console(std::FILE* out, bool terminal, int columns, Clock clock);
  ~Console();

  // A line of its own.
  void say(const std::string& line);
  // How far the work is.  The first call of a `what` begins its estimate of the end.
  void progress(const Progress& progress);
  // Ends the progress line, if one stands.
  void finish_progress();

 private:
  std::string estimate(const Progress& progress, double now);
  std::string bar_line(const Progress& progress, double now);
  void clear_line();

  std::FILE* out_;
  bool terminal_;
  int columns_;
  Clock clock_;
  std::mutex mutex_;
  bool line_stands_ = false;
  std::string what_;
  double began_ = 0, began_fraction_ = 0, last_ = 0;
};

// "1:05" for 65 seconds, "2:00:00" for two hours.
std::string minutes_and_seconds(double seconds);

}  // namespace rowtide
