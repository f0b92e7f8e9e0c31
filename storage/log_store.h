#pragma once
// LogStore — the ColdStore: puts its parts together and carries out commits.
//
//     append ──► Log ──► WriteBuffer ──► IoQueue          Index: key ► record
//     start_read ──► Reads ──► WriteBuffer or IoQueue     Segments: liveness, free space
//     poll ──► Cleaner, Syncer, Reads                     StoreFiles: manifest, arrays, locks
//     commit ──► Syncer ──► StoreFiles
//     open ──► StoreFiles ──► Recovery

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/block_io.h"
#include "storage/cleaner.h"
#include "storage/cold_store.h"
#include "storage/index.h"
#include "storage/log.h"
#include "storage/reads.h"
#include "storage/recovery.h"
#include "storage/store_files.h"
#include "storage/syncer.h"

namespace rowtide::storage {

// Where a store lives: the real disk, or a fake one in tests.  Both must outlive the store.
struct StoreBackend {
  FileSystem* files = nullptr;
  std::function<Result<std::unique_ptr<IoQueue>>(uint32_t depth)> make_queue;
};

// Tests put a fake disk in the place of the real one; empty: the real one.
std::function<StoreBackend()>& backend_for_tests();

class LogStore final : public ColdStore {
 public:
  static Result<std::unique_ptr<ColdStore>> open(ColdStoreOptions options, StoreBackend backend,
                                                 std::unique_ptr<FileSystem> owned = nullptr);
  ~LogStore() override;

  const CommitContent& last_commit() const override { return last_commit_; }
  uint32_t next_epoch() const override { return next_epoch_; }
  Result<bool> append(uint32_t type, Key key, uint32_t epoch, std::span<const std::byte> weights,
                      std::span<const std::byte> state) override;
  bool contains(Key key) const override;
  void prefetch(Key key) const override;
  Read start_read(Key key, std::byte* out, uint64_t ticket) override;
  void poll(bool wait, std::vector<Done>& done) override;
  uint32_t reads_pending() const override { return reads_->pending(); }
  Status begin_commit(uint32_t epoch) override;
  Status commit(const CommitContent& content) override;
  bool wants_commit(std::span<const uint64_t> owed) const override;
  Status scan(
      const std::function<Status(Key, uint32_t type, std::span<const std::byte> payload)>& visit,
      uint64_t* skipped) override;
  Status save_hints(uint64_t bytes, const std::function<Status(const Append&)>& produce) override;
  void take_hints(const std::function<void(std::span<const std::byte>)>& visit) override;
  Status take_write_error() override;
  ColdStoreStats stats() const override;
  const char* engine_name() const override { return router_->name(); }
  const std::string& file_system() const override { return store_files_.file_system(); }

 private:
  using Visit = std::function<Status(Key, uint32_t, std::span<const std::byte>)>;

  LogStore(ColdStoreOptions options, FileSystem* files, std::unique_ptr<FileSystem> owned);
  Status start(const StoreBackend& backend);
  Status make_parts(const StoreBackend& backend);
  Status find_allocated();
  Status recover();
  void start_log();
  void count_commit_bytes();
  Status load_commit();
  Status check_append(Key key, uint32_t epoch, uint64_t there) const;
  Status full() const;
  void step();
  Status sync_all();
  std::vector<uint32_t> kept_after(uint32_t epoch);
  Status too_many_pins(const std::vector<uint32_t>& kept) const;
  uint32_t epoch_with(const ArraysFile& file);
  Status clean_for_commit(const CommitContent& content, const ArraysFile& file);
  Result<KeptCommit> write_arrays(const CommitContent& content, const ArraysFile& file);
  Status write_manifest(Manifest* next);
  void finish_commit(Manifest next, const CommitContent& content);
  Status settle();
  void hold_open(const Manifest& manifest);
  void look_up_moved();
  Status look_again();
  Status scan_segment(uint32_t segment, std::vector<std::byte>& record, const Visit& visit,
                      uint64_t* skipped);

  ColdStoreOptions options_;
  std::unique_ptr<FileSystem> owned_files_;
  StoreFiles store_files_;
  KeyDomain domain_;
  Layout layout_;
  std::unique_ptr<LogFiles> files_;
  std::unique_ptr<Index> index_;
  std::unique_ptr<Segments> segments_;
  std::unique_ptr<WriteBuffer> buffer_;
  std::unique_ptr<Log> log_;
  std::unique_ptr<Reads> reads_;
  std::unique_ptr<Syncer> syncer_;
  std::unique_ptr<Cleaner> cleaner_;
  std::unique_ptr<BlockIo> blocks_;
  std::unique_ptr<IoRouter> router_;  // goes first, so that no I/O outlives its memory

  CommitContent last_commit_;
  uint32_t next_epoch_ = 1;
  uint32_t pending_ = 0;        // the commit being made; 0: none
  uint32_t newest_epoch_ = 0;   // of any record ever appended
  std::vector<uint32_t> held_;  // segments that the manifest lists as open
  // The commit that failed while its manifest became the one on the disk: it may be there or not.
  std::optional<std::pair<Manifest, CommitContent>> unsure_;
  uint64_t records_appended_ = 0, bytes_appended_ = 0, commits_ = 0;
};

// What open() reserves, by name.
std::vector<MemoryLine> predict_memory(const ColdStoreOptions& options, const Layout& layout,
                                       int domain_bits);
// The most requests in flight at once.
uint32_t queue_depth(const ColdStoreOptions& options, const Layout& layout);

}  // namespace rowtide::storage
