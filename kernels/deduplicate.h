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
  // Bytes of scratch for batches of at most `max_ids` ids of at most `tables` different tables;
  // `memory` is aligned to 8 bytes and must live as long as this.
  static uint64_t scratch_bytes(uint64_t max_ids, uint32_t tables);
  // `salt` decides which ids collide, and nothing that shows.
  Deduplicator(std::byte* memory, uint64_t max_ids, uint32_t tables, uint64_t salt);

  // Fills `out`, whose arrays have room for every id.  REQUIRES: at most max_ids ids, fewer than
  // 2^32 - 1, and at most `tables` different tables.
  void run(const Deduplicate& op, DistinctRows& out);

 private:
  // A small hash of its own for each table, of two entries an id: it stays in the L1 or L2 cache.
  struct Region {
    uint32_t table = 0;
    uint32_t features = 0;  // that share the table; 0: this place is free
    uint64_t ids = 0;       // of all of them
    uint64_t first = 0;     // entries [first, first + 2 * ids)
    bool cleared = false;
  };

  Region& region_of(uint32_t table);
  void plan_regions(const Deduplicate& op);
  void read_feature(const Deduplicate& op, uint32_t feature, const Region& region,
                    DistinctRows& out);

  uint64_t* entries_;  // (2 * max_ids) hash tag << 32 | unique index; all ones: empty
  Region* regions_;    // (region_capacity_) open addressing by table id
  uint32_t region_capacity_;
  uint64_t salt_;
};

// occurrence lists of each row by a stable counting sort: begin is (rows + 1), occurrences (ids
// that were not skipped), ascending within a row.
void sort_occurrences(const uint32_t* unique, uint64_t ids, uint32_t rows, uint32_t* begin,
                      uint32_t* occurrences);

}  // namespace rowtide
