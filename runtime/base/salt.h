#pragma once
// salt — numbers that nobody can know beforehand: for names, and to keep ids from being chosen so
// that they collide in our hash tables (design.md, I10).

#include <cstdint>

namespace rowtide {

// Of the kernel; another each time.
uint64_t random_number();

// A random number, the same for the life of the process.  For hash tables whose order shows in no
// result: directories, which decide where rows go, do not take it.
uint64_t process_salt();

}  // namespace rowtide
