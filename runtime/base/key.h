#pragma once
// key — the name of a row: 16-bit table id, then 48-bit row number.
//
// A table's id is given once per name and never reused, so a key means the same row for ever.

#include <cstdint>

#include "runtime/base/host_device.h"

namespace rowtide {

using Key = uint64_t;

// A place for one record in an arena.
using Slot = uint32_t;
inline constexpr Slot kNoSlot = 0xFFFFFFFFu;

inline constexpr int kRowBits = 48;
inline constexpr uint64_t kMaxRows = uint64_t{1} << kRowBits;
inline constexpr uint32_t kMaxTables = 0xFFFFu;  // id 0xFFFF is never given, so kNoKey names no row
inline constexpr Key kNoKey = ~Key{0};

HOST_DEVICE constexpr Key make_key(uint32_t table, uint64_t row) {
  return Key{table} << kRowBits | row;
}
HOST_DEVICE constexpr uint32_t table_of(Key key) { return static_cast<uint32_t>(key >> kRowBits); }
HOST_DEVICE constexpr uint64_t row_of(Key key) { return key & (kMaxRows - 1); }

// A mixing of all 64 bits (the finaliser of MurmurHash3), the same on host and device.
HOST_DEVICE constexpr uint64_t mix64(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ull;
  return x ^ x >> 33;
}

// The upper 64 bits of the 96-bit product: a 64-bit hash becomes one of `n` places, for any n.
HOST_DEVICE constexpr uint64_t multiply_high(uint64_t x, uint32_t n) {
  return ((x >> 32) * n + ((x & 0xFFFFFFFFu) * n >> 32)) >> 32;
}

}  // namespace rowtide
