#pragma once
// Syncer — makes what was written durable: flush, wait for the writes, fdatasync of every log file.
//
// Syncs are numbered.  One is under way at a time; it covers what was in the log when it began.

#include <cstdint>
#include <utility>

#include "storage/log.h"

namespace rowtide::storage {

class Syncer final : public IoUser {
 public:
  // `direct`: whether writes bypass the page cache.  If not, a failed sync may have lost what it
  // was asked to keep, so that no later one can promise it.
  Syncer(Log* log, WriteBuffer* buffer, const LogFiles* files, IoRouter* router, bool direct);

  // The number of the next sync to begin: it will cover all that is in the log now.
  uint64_t next() const { return begun_ + 1; }
  uint64_t completed() const { return completed_; }
  // Begins one as soon as the one under way has ended.
  void request() { wanted_ = true; }
  // Goes on if what it waits for has happened.
  void step();

  // No later sync can be promised: see `direct`.
  bool broken() const { return broken_; }
  uint64_t failures() const { return failures_; }
  const Status& last_error() const { return error_; }
  Status take_error() { return std::exchange(untold_, Status()); }

  void io_done(uint32_t id, int64_t result) override;

 private:
  enum class State { kIdle, kWriting, kSyncing };
  void begin();
  void end();

  Log* log_;
  WriteBuffer* buffer_;
  const LogFiles* files_;
  IoRouter* router_;
  bool direct_;
  State state_ = State::kIdle;
  bool wanted_ = false, failed_ = false, broken_ = false;
  uint64_t begun_ = 0, completed_ = 0, failures_ = 0;
  // Of the writes ever done; at first none are known to be durable, for recovery writes too.
  uint64_t synced_bytes_ = ~uint64_t{0}, syncing_bytes_ = 0;
  size_t in_flight_ = 0;
  Status error_, untold_;
};

}  // namespace rowtide::storage
