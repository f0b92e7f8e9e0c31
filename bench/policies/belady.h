#pragma once
// belady — the most hits that any policy can have on a trace of single requests.

#include <cstdint>
#include <span>

namespace rowtide::textbook {

enum class Bypass { kNo, kYes };  // yes: a miss need not come in

uint64_t most_hits(std::span<const uint64_t> trace, uint32_t capacity, Bypass bypass);

}  // namespace rowtide::textbook
