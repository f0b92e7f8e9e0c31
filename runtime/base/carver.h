#pragma once
// Carver — cuts a reserved memory into arrays; over no memory it only measures.
//
// The same function lays a component out and predicts its bytes, so the two cannot differ.

#include <cstddef>
#include <cstdint>

namespace rowtide {

class Carver {
 public:
  explicit Carver(std::byte* memory = nullptr) : memory_(memory) {}

  // The next array of `count` T, at a multiple of 64 bytes; null if this only measures.
  template <typename T>
  T* take(uint64_t count) {
    std::byte* at = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += (count * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(at);
  }

  uint64_t used() const { return used_; }

 private:
  std::byte* memory_;
  uint64_t used_ = 0;
};

}  // namespace rowtide
