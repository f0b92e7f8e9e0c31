#pragma once
// HostArena — one reserved piece of host memory, zeroed, of a size fixed at open.
//
// Every large thing of the runtime lies in one, so that what was predicted is what is used.
// It knows nothing of what lies in it.

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/base/status.h"

namespace rowtide {

class HostArena {
 public:
  HostArena() = default;
  ~HostArena();
  HostArena(HostArena&& other) noexcept;
  HostArena& operator=(HostArena&& other) noexcept;

  // Reserves `bytes`, aligned to a page, with huge pages where the kernel grants them;
  // a page costs memory once it is touched.
  // `name` is for messages: "the warm slots of group 64+4".
  // Errors: kNoSpace naming bytes asked and bytes there.
  static Result<HostArena> reserve(uint64_t bytes, const std::string& name);

  std::byte* bytes() const { return bytes_; }
  uint64_t size() const { return size_; }

 private:
  std::byte* bytes_ = nullptr;
  uint64_t size_ = 0;
};

// Memory that this process can still take, in bytes: the least of what the machine has available
// and what its control group allows.
uint64_t available_host_bytes();

}  // namespace rowtide
