#pragma once
// salt — what keeps ids from being chosen so that they collide in our hash tables (design.md, I10).

#include <cstdint>

namespace rowtide {

// A random number, the same for the life of the process.  For hash tables whose order shows in no
// result: directories, which decide where rows go, do not take it.
uint64_t process_salt();

}  // namespace rowtide
