#pragma once
// count_allocations — how often, and for how many bytes, anyone in this program has called operator
// new.
//
// The whole test program is counted, from all threads.  0 for ever where a sanitizer brings its
// own.

#include <cstdint>

namespace rowtide {

bool allocations_are_counted();
uint64_t allocation_count();
uint64_t allocated_bytes();  // ever, freed or not

}  // namespace rowtide
