#pragma once
// hints — a file of the caller's that may be lost: of one commit, and for one open (format 1).
//
//     HintsHeader (40 bytes), then the parts back to back
//
// Written as HINTS.new, synced, renamed, and the directory synced.  Taking it removes it, so one
// that is there was left by the last writer that closed the store.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "storage/file_system.h"

namespace rowtide::storage {

struct HintsHeader {
  uint64_t magic = 0x31544E4948545752ull;  // "RWTHINT1"
  uint64_t store = 0, epoch = 0;           // the store, and its last commit
  uint64_t bytes = 0;                      // of the parts
  uint64_t checksum = 0;                   // of the header before it, then part by part
};
static_assert(sizeof(HintsHeader) == 40, "HintsHeader is on disk: do not change it");

class HintsFile {
 public:
  HintsFile(FileSystem* files, std::string directory, uint64_t store, uint32_t epoch)
      : files_(files), directory_(std::move(directory)), header_{.store = store, .epoch = epoch} {}

  static uint64_t bytes(std::span<const std::span<const std::byte>> parts);
  // Errors: kIo, kNoSpace; then there is none.
  Status write(std::span<const std::span<const std::byte>> parts);
  // As ColdStore::take_hints.
  bool take(std::span<const std::span<std::byte>> parts);

 private:
  std::string path() const { return directory_ + "/HINTS"; }
  template <typename Parts>
  HintsHeader header_of(const Parts& parts) const;
  bool read(std::span<const std::span<std::byte>> parts);

  FileSystem* files_;
  std::string directory_;
  HintsHeader header_;
};

}  // namespace rowtide::storage
