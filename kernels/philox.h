#pragma once
// philox — Philox4x32-10, the counter-based random numbers of Rowtide.
//
// A pure function of a 64-bit seed and a 128-bit counter, so that a random number depends on what
// it is for and never on who asked before.  The same code on host and device.
//
// Functions are static: an object compiled for one instruction set keeps its own copy, and the
// linker can never hand it to a machine that lacks those instructions.

#include <cstdint>

#include "runtime/base/key.h"

namespace rowtide {

struct PhiloxBlock {
  uint32_t word[4];
};

// One of ten rounds.
static constexpr PhiloxBlock philox_round(PhiloxBlock c, uint32_t key0, uint32_t key1) {
  const uint64_t a = uint64_t{0xD2511F53u} * c.word[0];
  const uint64_t b = uint64_t{0xCD9E8D57u} * c.word[2];
  return {{static_cast<uint32_t>(b >> 32) ^ c.word[1] ^ key0, static_cast<uint32_t>(b),
           static_cast<uint32_t>(a >> 32) ^ c.word[3] ^ key1, static_cast<uint32_t>(a)}};
}

static constexpr PhiloxBlock philox4x32_10(uint64_t seed, PhiloxBlock counter) {
  uint32_t key0 = static_cast<uint32_t>(seed);
  uint32_t key1 = static_cast<uint32_t>(seed >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    counter = philox_round(counter, key0, key1);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// The counters of Rowtide's two uses.  Element d of a row takes word d mod 4 of block d / 4.
// A step has 54 bits, a block number 10 (width <= 4096); the initial values' last word is one that
// no step below 2^54 - 2^32 has, so that the two uses never share a number.
static constexpr PhiloxBlock rounding_counter(Key key, uint64_t step, uint32_t block) {
  return {{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32),
           static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32) << 10 | block}};
}
static constexpr PhiloxBlock initial_counter(Key key, uint32_t block) {
  return {{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32), block, 0xFFFFFFFFu}};
}

}  // namespace rowtide
