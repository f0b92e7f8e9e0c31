#pragma once
// count_allocations — how often anyone in this program has called operator new.
//
// The whole test program is counted, from all threads.  0 for ever where a sanitizer brings its
// own.

#include <cstdint>

namespace rowtide {

bool allocations_are_counted();
uint64_t allocation_count();

}  // namespace rowtide
