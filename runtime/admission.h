#pragma once
// Admission — whether a row that misses may take a place in a set, or only passes through transit.
//
//     always   everyone
//     count    from the second batch that uses the row on, as far as a small sketch remembers
//     profile  the rows that a file names
//
// A pure function of the batches, in order.  A refused row is served and updated all the same.

#include <string>

#include "runtime/base/carver.h"
#include "runtime/layout.h"

namespace rowtide {

// Errors: kInvalid, kNotFound (the profile file), naming option, file and line.
Status check_admission(const RuntimeOptions& options);

class Admission {
 public:
  Admission(const RuntimeOptions& options, const Layout& layout, Carver& ddr);

  // Writes refused[u] for rows [begin, end) of the batch.  Call once for each row of each batch.
  void judge(const Key* keys, uint32_t begin, uint32_t end, uint8_t* refused);

 private:
  enum class Kind { kAlways, kCount, kProfile };

  bool seen_before(Key key);
  Key* named(Key key) const;  // where the profile has it, or would have it

  Kind kind_;
  uint8_t* seen_ = nullptr;  // (capacity) a Bloom filter of two bits of its own per key
  Key* named_ = nullptr;     // (capacity) the profile's keys, open addressing; kNoKey: free
  uint64_t capacity_ = 0;
  uint64_t added_ = 0;
};

}  // namespace rowtide
