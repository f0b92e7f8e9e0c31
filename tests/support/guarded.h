#pragma once
// Guarded — an array between guard words: whoever writes outside it is found when it goes.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

namespace rowtide {

template <typename T>
class Guarded {
 public:
  explicit Guarded(size_t size = 0, T value = T{})
      : size_(size), memory_(2 * kGuard + kAlign + size * sizeof(T), kMark) {
    std::fill_n(data(), size, value);
  }
  explicit Guarded(const std::vector<T>& values) : Guarded(values.size()) {
    std::copy(values.begin(), values.end(), data());
  }
  Guarded(const Guarded& other) : Guarded(other.vector()) {}
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { EXPECT_TRUE(intact()) << "written outside an array of " << size_; }

  // Aligned to 64 bytes.
  T* data() { return reinterpret_cast<T*>(memory_.data() + offset()); }
  const T* data() const { return reinterpret_cast<const T*>(memory_.data() + offset()); }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  std::vector<T> vector() const { return {data(), data() + size_}; }

  bool intact() const {
    const auto is_mark = [](std::byte b) { return b == kMark; };
    const auto begin = memory_.begin() + offset(), end = begin + size_ * sizeof(T);
    return std::all_of(memory_.begin(), begin, is_mark) && std::all_of(end, memory_.end(), is_mark);
  }

 private:
  static constexpr size_t kGuard = 64, kAlign = 64;
  static constexpr std::byte kMark{0xA5};
  ptrdiff_t offset() const {
    const auto begin = reinterpret_cast<uintptr_t>(memory_.data()) + kGuard;
    return static_cast<ptrdiff_t>(kGuard + (kAlign - begin % kAlign) % kAlign);
  }

  size_t size_;
  std::vector<std::byte> memory_;
};

}  // namespace rowtide
