#pragma once
// deduplicate — the distinct rows of a batch, and who uses each.
//
// Ids are feature-major: feature f owns occurrences [feature_begin[f], feature_begin[f + 1]).
// Distinct keys come out by first occurrence, so those first seen by one feature are contiguous and
// all belong to its table.  Pure: the same arrays whatever the thread or machine.

#include <cstdint>
#include <vector>

#include "kernels/rows.h"

namespace rowtide {

struct Deduplicate {
  const int64_t* ids = nullptr;  // (ids) rows of the feature's table, all valid or kSkippedId
  const uint64_t* feature_begin = nullptr;  // (features + 1)
  const uint32_t* table = nullptr;          // (features) table id of each feature
  uint32_t features = 0;
};
inline constexpr int64_t kSkippedId = -1;

// Capacity is fixed by reserve(); nothing is allocated afterwards.
struct DistinctRows {
  uint32_t count = 0;
  Key* keys = nullptr;               // (count) by first occurrence
  uint32_t* unique = nullptr;        // (ids) index of each occurrence's row, or kSkipped
  uint32_t* feature_rows = nullptr;  // (features + 1) rows first seen by feature f:
                                     // [feature_rows[f], feature_rows[f + 1])
};

// The scratch of one thread that deduplicates.
class Deduplicator {
 public:
  // Bytes of scratch for batches of at most `max_ids` ids; `memory` must live as long as this.
  static uint64_t scratch_bytes(uint64_t max_ids, uint32_t tables);
  Deduplicator(std::byte* memory, uint64_t max_ids, uint32_t tables);

  // Fills `out`, whose arrays have room for every id.  REQUIRES: at most max_ids ids.
  void run(const Deduplicate& op, DistinctRows& out);

 private:
  uint32_t* table_;   // open addressing: unique index + 1, or 0
  uint32_t* region_;  // (tables + 1) per-table regions of this batch
  uint64_t capacity_;
  uint32_t tables_;
};

// occurrence lists of each row by a stable counting sort: begin is (rows + 1), occurrences (ids
// that were not skipped), ascending within a row.
void sort_occurrences(const uint32_t* unique, uint64_t ids, uint32_t rows, uint32_t* begin,
                      uint32_t* occurrences);

}  // namespace rowtide
