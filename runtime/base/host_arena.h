#pragma once
// HostArena — one reserved piece of host memory, zeroed, of a size fixed at open.
//
// Every large thing of the runtime lies in one, so that what was predicted is what is used.
// It knows nothing of what lies in it.
//
// Pages: a huge page (2 MiB) saves address translation, but costs all of it once a byte is touched.
// An arena of at most an eighth of the memory that is there gets huge pages at once.  A larger one,
// of which a run may touch a few rows only, gets small ones; join_pages() then joins those of each
// piece that proves to be used.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace rowtide {

class HostArena {
 public:
  HostArena() = default;
  ~HostArena();
  HostArena(HostArena&& other) noexcept;
  HostArena& operator=(HostArena&& other) noexcept;

  // Reserves `bytes`, aligned to a page; a page costs memory once it is touched.
  // `name` is for messages: "the warm slots of group 64+4".
  // Errors: kNoSpace naming bytes asked and bytes there.
  static Result<HostArena> reserve(uint64_t bytes, const std::string& name);

  // Of an arena with small pages: joins the next 2 MiB if at least half of them were touched, as
  // far as the kernel grants it (Linux 6.1).  Takes some 10 us, or 1 ms if it joins. Threads: one
  // at a time, while others use the arena.
  void join_pages();

  std::byte* bytes() const { return bytes_; }
  uint64_t size() const { return size_; }

 private:
  std::byte* bytes_ = nullptr;
  uint64_t size_ = 0;
  std::vector<bool> joined_;  // by piece of 2 MiB; empty: nothing to join
  size_t next_piece_ = 0;
};

// Memory that this process can still take, in bytes: the least of what the machine has available
// and what its control group allows.
uint64_t available_host_bytes();

}  // namespace rowtide
