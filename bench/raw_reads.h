#pragma once
// RawReads — what the device gives: random reads of a log's file by the cold store's own I/O
// engine.
//
// The yardstick of everything that reads from the SSD: same file, same sizes, same engine, nothing
// in between.

#include <functional>
#include <memory>
#include <random>
#include <string>

#include "runtime/base/host_arena.h"
#include "storage/cold_store.h"
#include "storage/file_system.h"
#include "storage/io_queue.h"

namespace rowtide {

class RawReads {
 public:
  struct Range {
    uint64_t offset = 0;  // multiples of 4096
    uint32_t bytes = 0;
  };
  // Reads of at most `most_bytes`, so many in flight; draw(random, file bytes) says which.
  // Errors: kIo, kNotFound, kNoSpace.
  static Result<RawReads> open(const std::string& path, IoEngine engine, uint32_t in_flight,
                               uint32_t most_bytes,
                               std::function<Range(std::mt19937_64&, uint64_t)> draw);
  RawReads(RawReads&&) = default;
  ~RawReads();

  // Reads a second, over so many seconds.  Errors: kIo.
  Result<double> run(double seconds);

 private:
  RawReads() = default;

  std::unique_ptr<storage::FileSystem> files_;
  std::unique_ptr<storage::IoQueue> queue_;
  HostArena memory_;
  std::function<Range(std::mt19937_64&, uint64_t)> draw_;
  std::mt19937_64 random_{7};
  int file_ = -1;
  uint32_t in_flight_ = 0, most_bytes_ = 0;
  uint64_t file_bytes_ = 0;
};

// A random page of the file, but for the first.
RawReads::Range random_page(std::mt19937_64& random, uint64_t file_bytes);

}  // namespace rowtide
