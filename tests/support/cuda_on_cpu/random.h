#pragma once
// Random — the seeded source of every choice of the emulator (splitmix64).

#include <cstdint>

namespace cuda_on_cpu {

class Random {
 public:
  explicit Random(uint64_t seed = 0) : state_(seed) {}

  uint64_t next() {
    uint64_t x = state_ += 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
  }
  // In [0, n).  REQUIRES: 0 < n < 2^32.
  uint32_t below(uint64_t n) { return static_cast<uint32_t>((next() >> 32) * n >> 32); }

 private:
  uint64_t state_;
};

Random& random();

}  // namespace cuda_on_cpu
