#pragma once
// pooled_lookup — the rows of each bag summed, or averaged, into one vector.
//
//     out[b, :] = sum over i in [offsets[b], offsets[b + 1]) of weight[i] * row(i)     (kSum)
//     out[b, :] = the same / (offsets[b + 1] - offsets[b])                             (kMean)
//     row(i)    = planes.weights[slots[unique[i]]], widened to fp32; nothing if unique[i] is
//     kSkipped
//
// In bag order from +0, product and sum rounded one after the other, so the same bits from every
// implementation.  An empty bag is +0.  The length of a mean counts skipped ids too.
//
// sequence_lookup — kNone: one row out for each id, out[i - offsets[0], :] = weight[i] * row(i);
// zeros for a skipped id.

#include <cstdint>

#include "kernels/rows.h"

namespace rowtide {

struct PooledLookup {
  RowFormat format;
  RowPlanes planes;
  const Slot* slots = nullptr;       // (rows) of the batch's distinct rows
  const uint32_t* unique = nullptr;  // (ids) index into slots, or kSkipped
  const int64_t* offsets = nullptr;  // (bags + 1) into unique
  const float* weights = nullptr;    // (ids) per-sample weights, or null: all 1, no product
  Pooling pooling = Pooling::kSum;
  float* out = nullptr;     // (bags, width), rows out_stride floats apart
  uint64_t out_stride = 0;  // floats
  uint64_t bags = 0;
};

// Pools bags [begin, end).  Single-threaded: the caller splits bags over threads.
void pooled_lookup_cpu(const PooledLookup& op, uint64_t begin, uint64_t end);

// Writes the rows of ids [begin, end), counted from offsets[0].  REQUIRES: pooling is kNone.
void sequence_lookup_cpu(const PooledLookup& op, uint64_t begin, uint64_t end);

}  // namespace rowtide
