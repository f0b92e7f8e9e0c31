#pragma once
// Stopwatch — adds the seconds of a scope to a sum.

#include <chrono>

namespace rowtide {

class Stopwatch {
 public:
  explicit Stopwatch(double* sum) : sum_(sum), begin_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() {
    *sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double* sum_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace rowtide
