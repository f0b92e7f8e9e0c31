#pragma once

#include <unordered_map>
#include <vector>

#include "kernels/deduplicate.h"

namespace rowtide {

struct DistinctRowsReference {
  std::vector<Key> keys;
  std::vector<uint32_t> unique, feature_rows;
};

inline DistinctRowsReference deduplicate_reference(const Deduplicate& op) {
  DistinctRowsReference out;
  std::unordered_map<Key, uint32_t> index;
  for (uint32_t f = 0; f < op.features; ++f) {
    out.feature_rows.push_back(static_cast<uint32_t>(out.keys.size()));
    for (uint64_t i = op.feature_begin[f]; i < op.feature_begin[f + 1]; ++i) {
      if (op.ids[i] == kSkippedId) {
        out.unique.push_back(kSkipped);
        continue;
      }
      const Key key = make_key(op.table[f], static_cast<uint64_t>(op.ids[i]));
      const auto [at, is_new] = index.try_emplace(key, static_cast<uint32_t>(out.keys.size()));
      if (is_new) out.keys.push_back(key);
      out.unique.push_back(at->second);
    }
  }
  out.feature_rows.push_back(static_cast<uint32_t>(out.keys.size()));
  return out;
}

}  // namespace rowtide
