#pragma once
// StoreTester — a cold store on a fake disk, with calls that read as facts.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "storage/log_store.h"
#include "tests/support/fake_disk.h"

namespace rowtide::storage {

// The payload of a row: a function of key and version that no two share.
std::vector<std::byte> payload_of(Key key, uint64_t version, uint32_t bytes);

struct StoreTester {
  explicit StoreTester(uint64_t seed = 1) : disk(seed) {
    options.directories = {{"dir", 4 << 20}};
    options.payload_bytes = {68};
    options.tables = {{0, 100000}};
    options.max_rows = 100000;
    options.write_buffer_bytes = 256 << 10;
    options.reads_in_flight = 16;
  }

  Status open();
  // Opens the last commit, or another kept one, beside the writer.
  Result<std::unique_ptr<ColdStore>> open_reader(uint32_t commit = 0);
  void close() { store.reset(); }
  // The process dies and the disk loses what was not synced.
  void crash() {
    disk.crash();
    store.reset();
  }

  // The process dies alone.
  void kill() {
    disk.kill();
    store.reset();
  }

  // Appends, polling as long as the store asks for it.
  Status put(Key key, uint64_t version, uint32_t epoch, uint32_t type = 0);
  Status commit(uint32_t epoch, const std::string& meta = "");

  DiskFaults& faults() { return disk.faults; }
  uint32_t bytes_of(uint32_t type) const { return options.payload_bytes[type]; }

  FakeDisk disk;
  std::vector<ColdStore::Done> ended;  // reads that ended while put() polled
  ColdStoreOptions options;
  std::unique_ptr<ColdStore> store;
};

// "absent", a version as number, or the name of an error.
std::string read_row(ColdStore& store, Key key, uint32_t bytes, uint64_t most_version = 200);

// Whether a store holds just these versions: by contains(), reads, scan() and stats().
::testing::AssertionResult holds(ColdStore& store, const std::map<Key, uint64_t>& versions,
                                 uint64_t keys, uint32_t bytes);

}  // namespace rowtide::storage
