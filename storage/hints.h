#pragma once
// hints — a file of the caller's that may be lost: of one commit, and for one open (format 1).
//
//     HintsHeader (40 bytes) · the caller's bytes · checksum 8: XXH3 of them, block by block
//
// Written as HINTS.new, synced, renamed, and the directory synced.  Taking it removes it, so one
// that is there was left by the last writer that closed the store.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "storage/file_system.h"

namespace rowtide::storage {

struct HintsHeader {
  uint64_t magic = 0x31544E4948545752ull;  // "RWTHINT1"
  uint64_t store = 0, epoch = 0;           // the store, and its last commit
  uint64_t bytes = 0;                      // the caller's
  uint64_t checksum = 0;                   // of the header before it
};
static_assert(sizeof(HintsHeader) == 40, "HintsHeader is on disk: do not change it");

class HintsFile {
 public:
  static constexpr const char* kName = "HINTS";
  static constexpr uint64_t kBeside = sizeof(HintsHeader) + sizeof(uint64_t);
  static constexpr uint32_t kBlock = 64 << 10;
  using Append = FileSystem::Append;
  using Visit = std::function<void(std::span<const std::byte>)>;

  HintsFile(FileSystem* files, std::string directory, uint64_t store, uint32_t epoch)
      : files_(files), directory_(std::move(directory)), store_(store), epoch_(epoch) {}

  // As ColdStore::save_hints and take_hints.
  Status write(uint64_t bytes, const std::function<Status(const Append&)>& produce);
  void take(const Visit& visit);

 private:
  std::string path() const { return directory_ + "/" + kName; }
  bool verify(int file, uint64_t* bytes);
  Status for_each_block(int file, uint64_t bytes, const Visit& visit);

  FileSystem* files_;
  std::string directory_;
  uint64_t store_;
  uint32_t epoch_;
};

}  // namespace rowtide::storage
