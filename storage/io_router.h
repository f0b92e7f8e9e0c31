#pragma once
// IoRouter — one queue shared by the parts of the store: each gets the ends of its own requests.

#include <array>
#include <cstdint>
#include <vector>

#include "storage/io_queue.h"

namespace rowtide::storage {

// A part that asks for I/O.
class IoUser {
 public:
  virtual ~IoUser() = default;
  // The request that was submitted with this id has ended.
  virtual void io_done(uint32_t id, int64_t result) = 0;
  // It will be told so next: a hint to fetch into the cache what it will touch.
  virtual void io_ending(uint32_t) {}
};

class IoRouter {
 public:
  IoRouter(std::unique_ptr<IoQueue> queue, uint32_t depth) : queue_(std::move(queue)) {
    ended_.reserve(depth);
  }

  // `request.ticket` is the user's id for it, below 2^32.
  void submit(uint32_t user, IoRequest request) {
    request.ticket |= uint64_t{user} << 32;
    queue_->submit(request);
    ++in_flight_;
  }
  void attach(uint32_t user, IoUser* to) { users_[user] = to; }

  // Returns how many requests have ended.
  size_t poll(bool wait) {
    ended_.clear();
    queue_->poll(wait, ended_);
    in_flight_ -= ended_.size();
    for (const IoDone& done : ended_) {
      users_[done.ticket >> 32]->io_ending(static_cast<uint32_t>(done.ticket));
    }
    for (const IoDone& done : ended_) {
      users_[done.ticket >> 32]->io_done(static_cast<uint32_t>(done.ticket), done.result);
    }
    return ended_.size();
  }
  size_t in_flight() const { return in_flight_; }
  const char* name() const { return queue_->name(); }

 private:
  std::unique_ptr<IoQueue> queue_;
  std::array<IoUser*, 8> users_{};
  std::vector<IoDone> ended_;
  size_t in_flight_ = 0;
};

// The users' numbers.
enum IoUserId : uint32_t { kReads, kWrites, kSyncs, kCleaning, kBlocks, kIoUserCount };

}  // namespace rowtide::storage
