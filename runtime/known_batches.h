#pragma once
// KnownBatches — the batches that were submitted and have not ended, deduplicated.
//
// A ring of L + 1 entries of fixed capacity, filled by submit() from the caller's arrays, so that
// the caller may free them at once.  It knows nothing of places.

#include <cstdint>
#include <vector>

#include "kernels/deduplicate.h"
#include "runtime/base/carver.h"
#include "runtime/layout.h"
#include "runtime/rowtide.h"

namespace rowtide {

struct KnownBatch {
  uint64_t step = 0;
  uint64_t samples = 0, ids = 0, skipped = 0;
  DistinctRows rows;         // keys, unique, feature_rows
  uint32_t* next = nullptr;  // (rows) next step of the known window that uses the row (lookahead)
  uint32_t* offsets = nullptr;  // (features * samples + 1)
  float* weights = nullptr;     // (ids), null if the batch has none
  float* weight_store = nullptr;
  uint8_t* one_hot = nullptr;  // (features) 1: every bag has exactly one id
};

// Checks a batch against the layout. Errors: kInvalid, naming feature, table, sample and id.
Status check_batch(const Layout& layout, const RuntimeOptions& options, const Batch& batch);

// Cuts one entry; measures it over a Carver without memory.
KnownBatch carve_known_batch(const Layout& layout, bool weighted, Carver& carver);

// Copies and deduplicates a checked batch into an entry.
class BatchCopier {
 public:
  BatchCopier(const Layout& layout, bool skip_bad_ids, Carver& carver);
  static void measure(const Layout& layout, bool skip_bad_ids, Carver& carver);
  void copy(const Batch& batch, KnownBatch& into);

 private:
  const int64_t* skip_bad_ids(const Batch& batch, KnownBatch& into);

  const Layout& layout_;
  int64_t* valid_ids_;              // (max_ids) ids with the bad ones replaced; null: none are bad
  uint64_t* feature_begin_;         // (features + 1)
  std::vector<uint32_t> table_id_;  // (features)
  std::vector<uint64_t> table_rows_;
  Deduplicator deduplicator_;
};

}  // namespace rowtide
