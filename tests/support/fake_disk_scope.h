#pragma once
// FakeDiskScope — while it lives, runtimes open their stores on its fake disk.
//
// Set faults only while no runtime is open, or none has work to do: the disk has no locks.

#include <memory>

#include "storage/log_store.h"
#include "tests/support/fake_disk.h"

namespace rowtide {

class FakeDiskScope {
 public:
  explicit FakeDiskScope(uint64_t seed) : disk(seed) {
    storage::backend_for_tests() = [this] {
      return storage::StoreBackend{
          .files = &disk, .make_queue = [this](uint32_t) {
            return Result<std::unique_ptr<storage::IoQueue>>(disk.make_queue());
          }};
    };
  }
  ~FakeDiskScope() { storage::backend_for_tests() = nullptr; }
  FakeDiskScope(const FakeDiskScope&) = delete;

  storage::FakeDisk disk;
};

}  // namespace rowtide
