#pragma once
// Manifest — what the last commit is: the one file that a crash returns to.
//
// Written as MANIFEST.new, synced, renamed over MANIFEST, and the directory synced (format 1,
// packed, little-endian; a text is its length, 8 bytes, and its bytes; a list its count, 8 bytes,
// and its members):
//
//     magic 8 · format 4 · store 8 · epoch 4 · sequence 8 · rows 8
//     list of record types: payload bytes 4
//     list of dead epochs: first 4 · last 4
//     list of kept commits: epoch 4 · arrays: epoch 4, bytes 8, checksum 8 · meta text
//     list of open segments: place 8 · sequence 8 · slots 4 · records 4
//     list of directories: bytes of the log file 8
//     checksum 8: XXH3 of all before
//
// The arrays of a commit lie in arrays-EPOCH, EPOCH being the first commit that had these bytes:
//
//     magic 8 · format 4 · list of arrays: name text · dtype text · list of sizes 8 · bytes text
//
// Files of the first directory: LOG, LOCK, READERS, MANIFEST, HINTS, arrays-*; of the others LOG
// and LOCK.

#include <cstdint>
#include <string>
#include <vector>

#include "storage/cold_store.h"
#include "storage/file_system.h"

namespace rowtide::storage {

struct KeptCommit {
  uint32_t epoch = 0;
  uint32_t arrays_epoch = 0;  // names their file; 0: the commit has none
  uint64_t arrays_bytes = 0, arrays_checksum = 0;
  std::string meta;
};

// A segment that had no footer when the commit was made.
struct OpenSegment {
  uint64_t place = 0, sequence = 0;
  uint32_t slots = 0, records = 0;  // that were synced
};

struct DeadEpochs {
  uint32_t first = 0, last = 0;
};

struct Manifest {
  uint64_t store = 0;
  uint32_t epoch = 0;     // of the last commit; 0: none yet
  uint64_t sequence = 0;  // of the next segment to open: those below were opened before the commit
  uint64_t rows = 0;
  std::vector<uint32_t> payload_bytes;
  std::vector<DeadEpochs> dead;
  std::vector<KeptCommit> kept;  // by epoch
  std::vector<OpenSegment> open;
  std::vector<uint64_t> log_bytes;

  bool is_dead(uint32_t epoch) const;
  const KeptCommit* find(uint32_t epoch) const;
  uint64_t arrays_bytes() const;  // of all files of kept commits
};

std::vector<std::byte> encode_manifest(const Manifest& manifest);
// Errors: kFormat, kCorrupt; both name `path`.
Result<Manifest> decode_manifest(std::span<const std::byte> bytes, const std::string& path);

// The parts of an arrays file, to be written without one more copy.
struct ArraysFile {
  std::vector<std::vector<std::byte>> heads;
  std::vector<std::span<const std::byte>> parts;
  uint64_t bytes = 0, checksum = 0;
};
ArraysFile encode_arrays(const std::vector<NamedArray>& arrays);
// Errors: kFormat, kCorrupt, kIo; all name `path`.
Result<std::vector<NamedArray>> read_arrays(FileSystem& files, const std::string& path,
                                            const KeptCommit& commit);
std::string arrays_name(uint32_t epoch);

}  // namespace rowtide::storage
