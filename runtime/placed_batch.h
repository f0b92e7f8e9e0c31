#pragma once
// PlacedBatch — what place and fetch add to a known batch: where its rows are, and who uses them.
//
// P + 2 of them exist: the steps that are placed and have not ended, and the one being placed.

#include <cstdint>

#include "runtime/base/carver.h"
#include "runtime/known_batches.h"
#include "runtime/place.h"

namespace rowtide {

struct PlacedBatch {
  Slot* slots = nullptr;                 // (rows) in the hot arena of the row's group
  Found* found = nullptr;                // (rows)
  uint8_t* refused = nullptr;            // (rows), null if admission is "always"
  uint32_t* occurrence_begin = nullptr;  // (rows + 1)
  uint32_t* occurrences = nullptr;       // (ids)
  int64_t* offsets = nullptr;            // (features * samples + 1)
  uint32_t* sample = nullptr;            // (ids) sample of each occurrence
  uint32_t reads_pending = 0;            // of the cold store, for this batch
  Status status;                         // why it could not be placed

  static PlacedBatch carve(const Layout& layout, bool admission, Carver& carver) {
    PlacedBatch batch;
    batch.slots = carver.take<Slot>(layout.max_ids);
    batch.found = carver.take<Found>(layout.max_ids);
    if (admission) batch.refused = carver.take<uint8_t>(layout.max_ids);
    batch.occurrence_begin = carver.take<uint32_t>(layout.max_ids + 1);
    batch.occurrences = carver.take<uint32_t>(layout.max_ids);
    batch.offsets = carver.take<int64_t>(layout.max_bags() + 1);
    batch.sample = carver.take<uint32_t>(layout.max_ids);
    return batch;
  }

  // Lists each row's occurrences and widens the offsets.
  void arrange(const Layout& layout, const KnownBatch& known) {
    sort_occurrences(known.rows.unique, known.ids, known.rows.count, occurrence_begin, occurrences);
    const size_t bags = layout.features.size() * known.samples;
    for (size_t bag = 0; bag <= bags; ++bag) offsets[bag] = known.offsets[bag];
    for (size_t f = 0; f < layout.features.size(); ++f) {
      if (known.one_hot[f] != 0) continue;
      for (uint64_t s = 0; s < known.samples; ++s) {
        const uint64_t bag = f * known.samples + s;
        for (int64_t i = offsets[bag]; i < offsets[bag + 1]; ++i) {
          sample[i] = static_cast<uint32_t>(s);
        }
      }
    }
  }
};

}  // namespace rowtide
