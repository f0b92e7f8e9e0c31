#include "runtime/next_uses.h"

#include <algorithm>

namespace rowtide {

NextUses::NextUses(const Layout& layout, Carver& carver, uint64_t salt) : salt_(salt) {
  uint64_t rows = 0;
  for (const GroupLayout& group : layout.groups) rows += group.most_rows;
  const uint64_t window = layout.known - layout.placed + 1;
  capacity_ = layout.policy->foresees ? std::max<uint64_t>(1, window * rows * 4 / 3 + 1) : 0;
  entries_ = carver.take<uint64_t>(capacity_);
}

}  // namespace rowtide
