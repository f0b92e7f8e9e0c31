#include "storage/syncer.h"

#include <cstring>

namespace rowtide::storage {

Syncer::Syncer(Log* log, WriteBuffer* buffer, const LogFiles* files, IoRouter* router, bool direct)
    : log_(log), buffer_(buffer), files_(files), router_(router), direct_(direct) {
  router->attach(kSyncs, this);
}

void Syncer::step() {
  if (state_ == State::kIdle && wanted_ && !broken_) begin();
  if (state_ != State::kWriting || !buffer_->flushed()) return;
  syncing_bytes_ = buffer_->bytes_written();
  state_ = State::kSyncing;
  failed_ = false;
  if (syncing_bytes_ == synced_bytes_) return end();
  for (uint32_t d = 0; d < files_->count(); ++d) {
    ++in_flight_;
    router_->submit(kSyncs, {.kind = IoKind::kSync, .file = (*files_)[d].file, .ticket = d});
  }
}

void Syncer::begin() {
  wanted_ = false;
  ++begun_;
  log_->flush();
  state_ = State::kWriting;
}

void Syncer::io_done(uint32_t directory, int64_t result) {
  --in_flight_;
  if (result < 0) {
    failed_ = true;
    error_ = {Code::kIo, (*files_)[directory].path +
                             ": cannot sync: " + std::strerror(static_cast<int>(-result))};
  }
  if (in_flight_ == 0) end();
}

void Syncer::end() {
  state_ = State::kIdle;
  if (failed_) {
    ++failures_;
    broken_ = !direct_;
    untold_ = error_;
    return;
  }
  synced_bytes_ = syncing_bytes_;
  completed_ = begun_;
}

}  // namespace rowtide::storage
