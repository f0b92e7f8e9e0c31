#pragma once
// ColdStore — the coldest tier: a log of records on SSD, found through an index in DDR.
//
// It knows keys, epochs and bytes; nothing of steps, tiers above, or policies.  Records are
// appended to typed segments, space comes back by copying the live part of the emptiest segment
// (cleaning), and a commit makes everything appended so far a point to which a crash returns.  The
// log is thus also the incremental checkpoint.
//
// Rules that bind (found by an executable model):
// - A record accepted by append() is readable at once, from the write buffer if need be.
// - Newest of a key = greatest (epoch, append number), not last in the log.
// - Kept: the last two commits, the one being made, and those that a reader's shared lock pins.
//   Cleaning keeps, per key, the newest record and the newest of each kept commit; liveness is
//   checked at the moment of the copy.  Visibility is per record, never per segment.
// - A segment is reused only when its live copies are synced and no read of it is in flight; a
//   record's checksum covers the segment's use number, so bytes of an earlier use never verify.
// - Recovery from the last manifest E: visible are records with epoch <= E and not dead; the next
//   epoch is one above the greatest found in any record, and the epochs between are dead and are
//   listed in every later manifest.
//
// Threads: one owner thread makes all calls; I/O engines may have threads of their own.
// Memory: everything is reserved at open and fits predict(); the steady state allocates nothing.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/key.h"
#include "runtime/base/status.h"

namespace rowtide {

struct StoreDirectory {
  std::string path;    // made if missing; refused if it holds anything but a store
  uint64_t bytes = 0;  // the most that its files may take
};

// A table whose rows may come; a store that is given all of them keeps a smaller index.
struct TableRows {
  uint16_t table = 0;
  uint64_t rows = 0;
};

enum class IoEngine { kAuto, kUring, kThreads };  // kAuto: io_uring, else threads, said once

struct ColdStoreOptions {
  std::vector<StoreDirectory> directories;  // several: segments stripe over them
  std::vector<uint32_t> payload_bytes;      // of each record type, 1 .. 49152
  uint64_t max_rows = 0;          // distinct keys that can ever be appended; the index reserves for
                                  // min(this, records that fit the directories)
  std::vector<TableRows> tables;  // all tables of the store, ever: then the index takes at most 9
                                  // bytes a row and other keys are kInvalid.  Empty: any key
  uint64_t write_buffer_bytes = 8 << 20;
  uint32_t reads_in_flight = 256;
  IoEngine engine = IoEngine::kAuto;
  bool read_only = false;  // a shared lock: opens the last commit, beside a writer too
  uint32_t commit = 0;     // read_only: the epoch of another kept commit to open; 0: the last
  std::function<void(const std::string&)> log;  // one-line notices; may be empty
};

// A typed array that the caller keeps in a commit.
struct NamedArray {
  std::string name;   // "dense/bottom.0.weight"
  std::string dtype;  // "float32", "int64", "uint8", ...
  std::vector<uint64_t> shape;
  std::vector<std::byte> bytes;  // row-major, little-endian
};

struct CommitContent {
  uint32_t epoch = 0;
  std::string meta;  // the runtime's own description (JSON); opaque here
  std::vector<NamedArray> arrays;
};

// What a store says of itself without being opened; empty if there is none yet.
struct StoreSummary {
  std::string meta;                     // of the last commit
  std::vector<uint32_t> payload_bytes;  // of its record types; more may be added behind them
};

struct ColdStoreStats {
  uint64_t records_appended = 0, bytes_appended = 0;  // by append(): demotion and commit
  uint64_t records_cleaned = 0, bytes_cleaned = 0;    // copies made by cleaning
  uint64_t reads = 0, read_bytes = 0;                 // reads of the device
  uint64_t reads_joined = 0, reads_buffered = 0;      // served by another's page; by the buffer
  uint64_t rows = 0;                                  // distinct keys ever written and visible
  std::vector<uint64_t> table_rows;                   // the same by table id, if tables were given
  uint64_t bytes_used = 0, bytes_budget = 0;          // on SSD
  uint64_t ddr_used = 0, ddr_reserved = 0;            // index, buffers, liveness
  uint64_t commits = 0;
};

// One line of memory that open() will reserve.
struct MemoryLine {
  std::string name;
  uint64_t bytes = 0;
};

// What open() says of the options, as far as no file tells it otherwise.
struct DiskBudget {
  uint64_t least_bytes = 0;  // that suffice, however the directories share them
  Status status;             // kNoSpace: they have less; kInvalid: other options are wrong
};

class ColdStore {
 public:
  static DiskBudget judge_budget(const ColdStoreOptions& options);

  // DDR that open() will reserve: index, liveness, write and read buffers, by name.  Of a disk
  // budget that is too small: with the least.
  static std::vector<MemoryLine> predict(const ColdStoreOptions& options);

  // Errors: kIo, kFormat, kCorrupt.
  static Result<StoreSummary> summary(const std::vector<StoreDirectory>& directories);

  // Opens or makes a store and returns to its last commit.
  // Errors: kInvalid (options; a changed record type), kIo, kNoSpace (memory or disk, need and
  // have), kLocked (pid of the writer), kFormat (foreign files, another version), kCorrupt.
  static Result<std::unique_ptr<ColdStore>> open(ColdStoreOptions options);
  virtual ~ColdStore() = default;

  // The last commit, or an empty content with epoch 0 if there is none.  The first epoch to write
  // is next_epoch(), at least 1.  A commit raises it, also one that failed so late that the disk
  // may have it: from then on nothing may be appended under its epoch.
  virtual const CommitContent& last_commit() const = 0;
  virtual uint32_t next_epoch() const = 0;

  // Accepts a record of `type` into the write buffer: weights, then state.  False: the buffer is
  // full, or cleaning must free a segment first; call poll() and come again.
  // REQUIRES: epoch is the pending commit's or above; sizes sum to the type's payload.
  // Errors: kNoSpace (the log is full of live records: need, have, what is pinned), kIo.
  virtual Result<bool> append(uint32_t type, Key key, uint32_t epoch,
                              std::span<const std::byte> weights,
                              std::span<const std::byte> state) = 0;

  // Whether the key has a record, without reading it.
  virtual bool contains(Key key) const = 0;
  virtual void prefetch(Key key) const = 0;  // touches the index line

  enum class Read { kAbsent, kDone, kStarted, kFull };
  // Reads the newest record's payload to `out` (its type's size).  kAbsent: never written.
  // kDone: it was in the write buffer.  kStarted: a poll() will report `ticket`, until then `out`
  // must live.  kFull: poll() and come again.  Reads of one page in flight cost one I/O.
  virtual Read start_read(Key key, std::byte* out, uint64_t ticket) = 0;

  struct Done {
    uint64_t ticket;
    Status status;  // kIo, kCorrupt: names file, offset, table and row
  };
  // Drives reads, writes and cleaning; appends ended reads to `done`.  With `wait`, waits until
  // something ends if anything is in flight.  Writes that failed are retried by later polls.
  virtual void poll(bool wait, std::vector<Done>& done) = 0;
  virtual uint32_t reads_pending() const = 0;

  // From now on records of `epoch` and below are live until the commit ends: called at the cut.
  // Finds out first whether the disk has a commit that failed late.  Errors: kIo.
  virtual Status begin_commit(uint32_t epoch) = 0;
  // Writes all that was appended, syncs, writes the manifest, renames it, syncs the directory.
  // Waits.  Reads that end meanwhile are reported by the next poll().  On failure the store goes on
  // and the commit may be tried again, under next_epoch() if that has risen.
  // Errors: kIo, kNoSpace.
  virtual Status commit(const CommitContent& content) = 0;

  // Whether a commit should be made soon, though `owed` records of each type would be appended
  // first: the log is nearly full, partly of versions that only older commits need.
  virtual bool wants_commit(std::span<const uint64_t> owed) const = 0;

  // Calls visit(key, payload) for the newest record of every key, in log order, buffer included:
  // one sequential pass in bounded memory.  Stops at the first error, also of visit.  With
  // `skipped` records that cannot be read or do not verify are passed over and counted there.
  virtual Status scan(
      const std::function<Status(Key, uint32_t type, std::span<const std::byte> payload)>& visit,
      uint64_t* skipped) = 0;

  // What the caller may lose and would like to find at the next open (which rows were in memory):
  // one file beside the commits, which counts for the last commit only and for one open.
  // produce() appends its `bytes` piece by piece.  Errors: kIo, kNoSpace; then there is none.
  using Append = std::function<Status(std::span<const std::byte>)>;
  virtual Status save_hints(uint64_t bytes,
                            const std::function<Status(const Append&)>& produce) = 0;
  // Hands them over in pieces of a multiple of 16 bytes, but for the last, and removes the file.
  // Nothing if there are none of the last commit, or they do not verify.
  virtual void take_hints(const std::function<void(std::span<const std::byte>)>& visit) = 0;

  // Not a failure to have: the last write error since the last call, cleared.
  virtual Status take_write_error() = 0;
  virtual ColdStoreStats stats() const = 0;
  virtual const char* engine_name() const = 0;         // "io_uring", "threads", "fake"
  virtual const std::string& file_system() const = 0;  // "ext4", for the run's record
};

}  // namespace rowtide
