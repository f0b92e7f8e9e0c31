#pragma once
// The table of cases that every implementation of directory_probe is held against, CPU and GPU.
// Needs no gtest.

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "kernels/directory.h"

namespace rowtide {

struct DirectoryProbeCase {
  std::string name;
  uint32_t sets = 0;
  uint32_t put = 0;      // keys that stand in it, as far as their sets have room
  uint32_t probes = 0;   // half of them of such keys, the rest of absent ones; with duplicates
  bool one_tag = false;  // all keys fall into one set and have one tag
};

inline std::vector<DirectoryProbeCase> directory_probe_cases() {
  std::vector<DirectoryProbeCase> cases;
  for (const uint32_t probes : {0, 1, 31, 32, 33, 255, 256, 257, 5000}) {
    cases.push_back({"Probes" + std::to_string(probes), /*sets=*/5, /*put=*/100, probes});
  }
  for (const uint32_t sets : {0, 1, 2, 31, 32, 33, 1000}) {
    cases.push_back({"Sets" + std::to_string(sets), sets, /*put=*/sets * 24, /*probes=*/1000});
  }
  cases.push_back({"FullSets", /*sets=*/7, /*put=*/7 * kWays * 4, /*probes=*/1000});
  cases.push_back({"Empty", /*sets=*/7, /*put=*/0, /*probes=*/100});
  cases.push_back({"OneTag", /*sets=*/3, /*put=*/kWays + 8, /*probes=*/200, /*one_tag=*/true});
  return cases;
}

// The arrays of a case, made without the functions of directory.h that change one.
class DirectoryProbeInput {
 public:
  explicit DirectoryProbeInput(const DirectoryProbeCase& test)
      : tags(size_t{test.sets} * kWays, kFreeTag), keys(size_t{test.sets} * kWays, kNoKey) {
    std::mt19937_64 random(test.probes + test.sets);
    view.sets = test.sets;
    view.salt = 7;
    const auto key = [&](uint64_t i) {
      return test.one_tag ? key_of_hash(i << 16 | 0x1234) : make_key(i % 3, i);
    };
    for (uint64_t i = 0; i < test.put; ++i) put(key(i));
    for (uint64_t i = 0; i < test.probes; ++i) {
      const uint64_t range = std::max<uint64_t>(test.put, 1);
      probes.push_back(key(random() % range + (random() % 2) * range));
    }
  }

  // What is found, by looking at every slot.
  std::vector<Slot> expected() const {
    std::vector<Slot> slots;
    for (const Key probe : probes) {
      const auto found = std::find(keys.begin(), keys.end(), probe);
      slots.push_back(found == keys.end() ? kNoSlot : static_cast<Slot>(found - keys.begin()));
    }
    return slots;
  }

  DirectoryView view;  // without arrays
  std::vector<uint16_t> tags;
  std::vector<Key> keys;
  std::vector<Key> probes;

 private:
  // The key with this hash: mix64() backwards.
  Key key_of_hash(uint64_t hash) const {
    const auto unshift = [](uint64_t x) { return x ^ x >> 33; };
    uint64_t x = unshift(hash) * 0x9cb4b2f8129337dbull;  // inverses of mix64's factors mod 2^64
    x = unshift(x) * 0x4f74430c22a54005ull;
    return unshift(x) ^ view.salt;
  }
  void put(Key key) {
    if (view.sets == 0) return;
    const size_t first = size_t{view.set_of(key)} * kWays;
    // From a way that depends on the key, so that ways are used in no order.
    for (size_t i = 0; i < kWays; ++i) {
      const size_t slot = first + (key + i) % kWays;
      if (tags[slot] != kFreeTag) continue;
      tags[slot] = view.tag_of(key);
      keys[slot] = key;
      return;
    }
  }
};

}  // namespace rowtide
