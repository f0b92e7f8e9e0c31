#include "storage/key_domain.h"

#include <algorithm>
#include <bit>

namespace rowtide::storage {

KeyDomain::KeyDomain(std::span<const TableRows> tables) {
  if (tables.empty()) return;
  for (const TableRows& table : tables) {
    if (table.table >= tables_.size()) tables_.resize(table.table + 1);
    tables_[table.table].rows = table.rows;
  }
  uint64_t rows = 0;
  for (Table& table : tables_) {
    table.base = rows;
    rows += table.rows;
  }
  bits_ = std::max<int>(1, std::bit_width(rows > 0 ? rows - 1 : 0));
}

}  // namespace rowtide::storage
