#pragma once
// Reads — random reads of records, many in flight; those of one page in flight share one I/O.
//
// A read that fails or does not verify is tried once more.  A row that was written again while its
// read was in flight is read again, so that the newer value wins.

#include <cstdint>
#include <vector>

#include "runtime/base/host_arena.h"
#include "storage/index.h"
#include "storage/io_router.h"
#include "storage/log_files.h"
#include "storage/segments.h"
#include "storage/write_buffer.h"

namespace rowtide::storage {

class Reads final : public IoUser {
 public:
  struct Parts {
    const Layout* layout;
    const LogFiles* files;
    const KeyDomain* domain;
    const Index* index;
    Segments* segments;
    const WriteBuffer* buffer;
    IoRouter* router;
  };
  // Errors: kNoSpace.
  static Result<std::unique_ptr<Reads>> create(const Parts& parts, uint32_t reads_in_flight);

  // Starts to read a record's payload.  kDone: it was in the write buffer.
  ColdStore::Read start(uint64_t record, Key key, std::byte* out, uint64_t ticket);
  void step();                                    // starts those again that were overtaken
  void take(std::vector<ColdStore::Done>& done);  // what has ended

  bool any_ended() const { return !ended_.empty(); }

  uint32_t pending() const { return pending_; }
  // Records that did not verify where the index says they are.  A reader beside a writer looks
  // them up anew: the cleaner may have moved them.
  bool any_moved() const { return moved_ != kNone; }
  // The index was built anew, or could not be.
  void look_up_moved(const Status& built);
  void expect_moves() { expect_moves_ = true; }

  uint64_t device_reads() const { return device_reads_; }
  uint64_t device_bytes() const { return device_bytes_; }
  uint64_t joined() const { return joined_; }
  uint64_t buffered() const { return buffered_; }

  uint64_t reserved_bytes() const;
  static uint64_t predict(const Layout& layout, uint32_t reads_in_flight);

  void io_done(uint32_t id, int64_t result) override;
  void io_ending(uint32_t id) override;

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  static constexpr uint32_t kWaitersPerRead = 4;
  // One I/O: whole pages of one segment.
  struct Op {
    uint32_t segment = 0, begin = 0, bytes = 0;
    uint32_t moved = 0;  // bytes that came so far
    uint32_t waiters = kNone;
    uint32_t next = kNone;  // in its bucket, or of the free ones
    bool again = false;     // this is the second try
  };
  struct Waiter {
    uint64_t record = 0;
    Key key = 0;
    std::byte* out = nullptr;
    uint64_t ticket = 0;
    uint32_t next = kNone;
    bool moved = false;  // it was looked up anew already
  };

  uint32_t& bucket(uint32_t segment, uint32_t begin);
  bool join_or_read(uint32_t waiter);
  bool read_from_buffer(uint64_t record, std::byte* out) const;
  void submit(uint32_t op);
  void finish(uint32_t op, const Status& error, bool verified);
  void deliver(uint32_t waiter, const Op& op, bool verified);
  void end(uint32_t waiter, Status status);
  bool verifies(const Op& op) const;
  const std::byte* record_in(const Op& op, const Waiter& waiter) const;
  std::byte* memory(uint32_t op) const {
    return arena_.bytes() + uint64_t{op} * parts_.layout->read_bytes;
  }

  Parts parts_{};
  HostArena arena_;
  std::vector<Op> ops_;
  std::vector<Waiter> waiters_;
  std::vector<uint32_t> buckets_;
  uint32_t free_op_ = kNone, free_waiter_ = kNone;
  uint32_t overtaken_ = kNone, moved_ = kNone;  // waiters
  uint32_t pending_ = 0;
  bool expect_moves_ = false;
  uint64_t device_reads_ = 0, device_bytes_ = 0, joined_ = 0, buffered_ = 0;
  std::vector<ColdStore::Done> ended_;
};

}  // namespace rowtide::storage
