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

// The last table that begins at or before the number; tables without rows begin where the next
// does.
uint32_t KeyDomain::table_of_number(uint64_t number) const {
  if (tables_.empty()) return table_of(number);
  const auto next = std::ranges::upper_bound(tables_, number, {}, &Table::base);
  return static_cast<uint32_t>(next - tables_.begin()) - 1;
}

}  // namespace rowtide::storage
