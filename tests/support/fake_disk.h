#pragma once
// FakeDisk — files in memory that behave as badly as disks may: a FileSystem and its IoQueue.
//
// - A crash forgets: each 4 KiB page that was not synced survives or not, by seed; of renames, new
//   and removed names a random prefix survives; writes in flight count as unsynced.
// - freeze_after(n): the n-th change from now, and all later ones, fail: the moment of a crash.
// - It can delay and reorder, transfer less than asked, fail, run out of space, and rot.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "storage/file_system.h"
#include "storage/io_queue.h"

namespace rowtide::storage {

// A number that a test may change while another thread uses the disk.
template <typename T>
class Setting {
 public:
  Setting(T value) : value_(value) {}  // NOLINT: it stands for its value
  Setting(const Setting& other) : value_(T{other}) {}
  Setting& operator=(const Setting& other) {
    value_.store(other, std::memory_order_relaxed);
    return *this;
  }
  operator T() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<T> value_;
};

struct DiskFaults {
  Setting<double> delay = 0.0;           // that a request in flight does not end with this poll
  Setting<double> short_transfer = 0.0;  // that only some pages of it are moved
  Setting<double> read_error = 0.0, write_error = 0.0, sync_error = 0.0;
  Setting<double> allocate_error = 0.0;
  Setting<uint64_t> capacity = ~uint64_t{0};  // bytes of all files together
};

class FakeDisk final : public FileSystem {
 public:
  explicit FakeDisk(uint64_t seed) : random_(seed) {}

  DiskFaults faults;

  std::unique_ptr<IoQueue> make_queue();
  void crash();
  void kill();  // the process alone dies: what is not synced stays, and a later crash may forget it
  void freeze_after(uint64_t changes) { freeze_at_ = changes_ + changes; }
  bool frozen() const { return changes_ >= freeze_at_; }
  uint64_t changes() const { return changes_; }

  uint64_t bytes_written() const { return bytes_written_; }  // through queues
  uint64_t bytes_of(const std::string& path) const;          // size of a file; 0: none
  uint64_t bytes_taken() const;                              // of the capacity, by whole pages
  void flip_bit(const std::string& path, uint64_t offset);
  void truncate(const std::string& path, uint64_t bytes);
  void put_file(const std::string& path);  // an empty one
  bool has(const std::string& path) const { return names_.contains(path); }

  Status make_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  std::string type_of(const std::string&) override { return "fake"; }
  Result<int> open(const std::string& path, bool create, bool write, bool* direct) override;
  void close(int file) override;
  Status read_at(int file, uint64_t offset, std::span<std::byte> out) override;
  Result<uint64_t> size(int file) override;
  Status allocate(int file, uint64_t offset, uint64_t bytes) override;
  Status release(int file, uint64_t offset, uint64_t bytes) override;
  Result<std::vector<std::byte>> read_file(const std::string& path) override;
  using FileSystem::write_file;
  Status write_file(const std::string& path,
                    const std::function<Status(const Append&)>& produce) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Result<int> lock_writer(const std::string& path) override;
  bool share_byte(int file, uint64_t byte) override;
  void unshare_byte(int file, uint64_t byte) override;
  bool is_shared(int file, uint64_t byte) override;
  uint64_t random_number() override { return random_(); }

 private:
  friend class FakeQueue;
  struct Inode {
    std::vector<std::byte> bytes, synced;
    std::set<uint64_t> unsynced_pages;
    std::set<uint64_t> allocated_pages;
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>>;
  struct Handle {
    std::shared_ptr<Inode> inode;  // null: closed
    bool writer_lock = false;
    std::set<uint64_t> shared;
  };

  bool chance(double p) { return std::uniform_real_distribution<>()(random_) < p; }
  // Counts a change.  False: the disk is frozen.
  bool change() { return !frozen() && (++changes_, !frozen()); }
  void changed_names(Names before);
  void write(Inode& inode, uint64_t offset, std::span<const std::byte> from);
  bool room_for(Inode& inode, uint64_t offset, uint64_t bytes);
  static void sync(Inode& inode);
  int64_t carry_out(const IoRequest& request, uint64_t life);
  void lose_unsynced(Inode& inode);

  std::mt19937_64 random_;
  Names names_;
  std::vector<Names> history_;  // names since the last sync_directory, oldest first
  std::set<std::string> directories_;
  std::vector<Handle> handles_;
  std::vector<IoRequest> in_flight_writes_;  // that a crash may have carried out in part
  uint64_t life_ = 0;                        // counts crashes: requests of an older one are lost
  std::atomic<uint64_t> changes_{0}, freeze_at_{~uint64_t{0}};  // freezes under way
  uint64_t bytes_written_ = 0;
};

}  // namespace rowtide::storage
