#pragma once
// KeyDomain — which keys can exist, numbered densely.
//
// With the tables given, a key's number is its row plus the rows of the tables before its own, so
// that few bits name it exactly and the index stays small.  Without, every 64-bit key may come and
// is its own number.

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/key.h"
#include "storage/cold_store.h"

namespace rowtide::storage {

class KeyDomain {
 public:
  explicit KeyDomain(std::span<const TableRows> tables);

  bool contains(Key key) const {
    if (tables_.empty()) return true;
    const uint32_t table = table_of(key);
    return table < tables_.size() && row_of(key) < tables_[table].rows;
  }
  // REQUIRES: contains(key).
  uint64_t number(Key key) const {
    return tables_.empty() ? key : tables_[table_of(key)].base + row_of(key);
  }
  uint32_t table_of_number(uint64_t number) const;
  size_t table_count() const { return tables_.size(); }  // 0: the open domain
  int bits() const { return bits_; }                     // every number is below 2^bits

 private:
  struct Table {
    uint64_t rows = 0, base = 0;
  };
  std::vector<Table> tables_;  // by table id; empty: the open domain
  int bits_ = 64;
};

}  // namespace rowtide::storage
