#include <algorithm>

#include "kernels/deduplicate.h"

namespace rowtide {
namespace {

constexpr uint64_t kEmpty = ~uint64_t{0};
constexpr uint64_t kEntriesPerId = 2;
constexpr uint64_t kAtOnce = 32;  // ids hashed and asked for before the first of them is probed

}  // namespace

uint64_t Deduplicator::scratch_bytes(uint64_t max_ids, uint32_t tables) {
  return max_ids * kEntriesPerId * sizeof(uint64_t) + (uint64_t{tables} * 2 + 1) * sizeof(Region);
}

Deduplicator::Deduplicator(std::byte* memory, uint64_t max_ids, uint32_t tables, uint64_t salt)
    : entries_(reinterpret_cast<uint64_t*>(memory)),
      regions_(reinterpret_cast<Region*>(memory + max_ids * kEntriesPerId * sizeof(uint64_t))),
      region_capacity_(tables * 2 + 1),
      salt_(salt) {}

Deduplicator::Region& Deduplicator::region_of(uint32_t table) {
  uint32_t at = static_cast<uint32_t>(mix64(table) % region_capacity_);
  while (regions_[at].features != 0 && regions_[at].table != table) {
    if (++at == region_capacity_) at = 0;
  }
  return regions_[at];
}

// The tables of one feature use the same entries one after the other, so that these stay in cache;
// those of several keep entries of their own until the last of them.
void Deduplicator::plan_regions(const Deduplicate& op) {
  std::fill_n(regions_, region_capacity_, Region{});
  for (uint32_t f = 0; f < op.features; ++f) {
    Region& region = region_of(op.table[f]);
    region.table = op.table[f];
    region.features += 1;
    region.ids += op.feature_begin[f + 1] - op.feature_begin[f];
  }
  uint64_t free = 0;
  for (uint32_t i = 0; i < region_capacity_; ++i) {
    if (regions_[i].features == 1) free = std::max(free, kEntriesPerId * regions_[i].ids);
  }
  for (uint32_t i = 0; i < region_capacity_; ++i) {
    if (regions_[i].features < 2) continue;
    regions_[i].first = free;
    free += kEntriesPerId * regions_[i].ids;
  }
}

// Found or new is decided without a branch, which no predictor could know: the next key is written
// beyond the last one and counts only if it was new.
void Deduplicator::read_feature(const Deduplicate& op, uint32_t feature, const Region& region,
                                DistinctRows& out) {
  const uint64_t size = kEntriesPerId * region.ids;
  uint64_t* entries = entries_ + region.first;
  uint32_t count = out.count;
  const uint64_t end = op.feature_begin[feature + 1];
  for (uint64_t begin = op.feature_begin[feature]; begin < end; begin += kAtOnce) {
    const uint64_t n = std::min(kAtOnce, end - begin);
    uint64_t start[kAtOnce], tag[kAtOnce];
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t hash = mix64(static_cast<uint64_t>(op.ids[begin + i]) ^ salt_);
      start[i] = static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * size) >> 64);
      tag[i] = hash << 32;
      __builtin_prefetch(entries + start[i], 1);
    }
    for (uint64_t i = 0; i < n; ++i) {
      if (op.ids[begin + i] == kSkippedId) {
        out.unique[begin + i] = kSkipped;
        continue;
      }
      const Key key = make_key(region.table, static_cast<uint64_t>(op.ids[begin + i]));
      out.keys[count] = key;
      uint64_t at = start[i];
      uint32_t index;
      bool is_new;
      for (;; at = at + 1 < size ? at + 1 : 0) {
        const uint64_t entry = entries[at];
        is_new = entry == kEmpty;
        index = is_new ? count : static_cast<uint32_t>(entry);
        const bool same_tag = (entry ^ tag[i]) >> 32 == 0;
        if ((is_new | same_tag) && out.keys[index] == key) break;
      }
      entries[at] = tag[i] | index;
      out.unique[begin + i] = index;
      count += is_new;
    }
  }
  out.count = count;
}

void Deduplicator::run(const Deduplicate& op, DistinctRows& out) {
  plan_regions(op);
  out.count = 0;
  for (uint32_t f = 0; f < op.features; ++f) {
    out.feature_rows[f] = out.count;
    Region& region = region_of(op.table[f]);
    if (!region.cleared) std::fill_n(entries_ + region.first, kEntriesPerId * region.ids, kEmpty);
    region.cleared = true;
    read_feature(op, f, region, out);
  }
  out.feature_rows[op.features] = out.count;
}

// `begin` holds counts, then ends, and walks down to the beginnings as the ids are read backwards:
// so occurrences ascend within a row.
void sort_occurrences(const uint32_t* unique, uint64_t ids, uint32_t rows, uint32_t* begin,
                      uint32_t* occurrences) {
  std::fill_n(begin, uint64_t{rows} + 1, 0u);
  for (uint64_t i = 0; i < ids; ++i) {
    if (unique[i] != kSkipped) ++begin[unique[i]];
  }
  uint32_t end = 0;
  for (uint32_t r = 0; r < rows; ++r) begin[r] = end += begin[r];
  begin[rows] = end;
  for (uint64_t i = ids; i-- > 0;) {
    if (unique[i] != kSkipped) occurrences[--begin[unique[i]]] = static_cast<uint32_t>(i);
  }
}

}  // namespace rowtide
