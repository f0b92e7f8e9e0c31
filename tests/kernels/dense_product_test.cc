#include "kernels/dense_product.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "tests/support/guarded.h"
#include "tests/support/numbers.h"

namespace rowtide {
namespace {

struct Shape {
  uint64_t rows, columns, inner;
};

class DenseProductTest : public ::testing::TestWithParam<std::tuple<Shape, bool, bool, bool>> {};

TEST_P(DenseProductTest, IsTheSumOfProductsWithinItsTolerance) {
  const auto [shape, a_transposed, b_transposed, add] = GetParam();
  const auto [rows, columns, inner] = shape;
  const uint64_t a_stride = (a_transposed ? rows : inner) + 3;
  const uint64_t b_stride = (b_transposed ? inner : columns) + 1;
  const Guarded<float> a(random_floats((a_transposed ? inner : rows) * a_stride, 1));
  const Guarded<float> b(random_floats((b_transposed ? columns : inner) * b_stride, 2));
  const auto before =
      add ? random_floats(rows * columns, 3) : std::vector<float>(rows * columns, std::nanf(""));
  Guarded<float> c(before);
  dense_product_cpu({a.data(), a_stride, a_transposed, b.data(), b_stride, b_transposed, c.data(),
                     columns, rows, columns, inner, add});
  for (uint64_t i = 0; i < rows; ++i) {
    for (uint64_t j = 0; j < columns; ++j) {
      const double start = add ? before[i * columns + j] : 0;
      double sum = start, size = std::abs(start);
      for (uint64_t k = 0; k < inner; ++k) {
        const double product = double{a[a_transposed ? k * a_stride + i : i * a_stride + k]} *
                               b[b_transposed ? j * b_stride + k : k * b_stride + j];
        sum += product;
        size += std::abs(product);
      }
      ASSERT_NEAR(c[i * columns + j], sum, static_cast<double>(inner + 1) * 0x1p-23 * size)
          << i << ", " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, DenseProductTest,
                         ::testing::Combine(::testing::Values(Shape{1, 1, 1}, Shape{1, 16, 7},
                                                              Shape{3, 1, 33}, Shape{17, 15, 16},
                                                              Shape{65, 33, 129}),
                                            ::testing::Bool(), ::testing::Bool(),
                                            ::testing::Bool()));

size_t threads_of_this_process() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    ++count;
  }
  return count;
}

// What a large product gives on the calling thread.
std::vector<float> large_product() {
  constexpr uint64_t kSize = 512;
  static const auto a = random_floats(kSize * kSize, 1), b = random_floats(kSize * kSize, 2);
  std::vector<float> c(kSize * kSize);
  dense_product_cpu(
      {a.data(), kSize, false, b.data(), kSize, true, c.data(), kSize, kSize, kSize, kSize});
  return c;
}

TEST(DenseProductTest, StaysOnTheCallingThreadAndLeavesItsOpenMpSettingAlone) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(3);
  const size_t threads = threads_of_this_process();
  large_product();
  EXPECT_EQ(threads_of_this_process(), threads);
  EXPECT_EQ(omp_get_max_threads(), 3);
  omp_set_num_threads(before);
}

TEST(DenseProductTest, GivesTheSameBitsOnEveryThreadAtOnce) {
  const auto expected = large_product();
  std::vector<std::vector<float>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&result] { result = large_product(); });
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(first_difference(expected, result), "");
}

// The caller's arrays lie anywhere, and resuming must not change a bit.
TEST(DenseProductTest, GivesTheSameBitsAtEveryAlignment) {
  constexpr uint64_t kRows = 256, kColumns = 64, kInner = 13;
  const auto a = random_floats(kRows * kInner, 1), b = random_floats(kColumns * kInner, 2);
  std::vector<float> expected;
  for (size_t shift = 0; shift < 17; ++shift) {
    std::vector<float> moved(shift + a.size()), c(kRows * kColumns + shift);
    std::copy(a.begin(), a.end(), moved.begin() + shift);
    dense_product_cpu({moved.data() + shift, kInner, false, b.data(), kInner, true,
                       c.data() + shift, kColumns, kRows, kColumns, kInner});
    c.erase(c.begin(), c.begin() + shift);
    if (shift == 0) expected = c;
    EXPECT_EQ(first_difference(expected, c), "") << "moved by " << shift << " floats";
  }
}

}  // namespace
}  // namespace rowtide
