#include "runtime/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace rowtide {
namespace {

TEST(ParallelTest, RunsEveryTaskOnce) {
  for (int threads : {1, 2, 5}) {
    Parallel parallel(threads);
    for (size_t count : {0, 1, 2, 3, 100, 10007}) {
      std::vector<std::atomic<int>> runs(count);
      parallel.run(count, [&](size_t i) { runs[i]++; });
      for (auto& r : runs) ASSERT_EQ(r, 1) << threads << " threads, " << count << " tasks";
    }
  }
}

TEST(ParallelTest, WhatTasksWroteIsThereAfterwards) {
  Parallel parallel(3);
  std::vector<size_t> squares(1000);
  for (int round = 0; round < 100; ++round) {
    parallel.run(squares.size(), [&](size_t i) { squares[i] = i * i + round; });
    for (size_t i = 0; i < squares.size(); ++i) ASSERT_EQ(squares[i], i * i + round);
  }
}

}  // namespace
}  // namespace rowtide
