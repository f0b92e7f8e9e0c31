#pragma once
// Stream, Event — an ordered queue of device work, and a mark in one that others can wait for.
//
// Owners of CUDA's streams and events, for code that must not see CUDA's headers.  They know
// nothing of the work.  Work on one stream runs in order; work on two is unordered unless one
// waits.

#include <utility>

#include "runtime/base/status.h"

struct CUstream_st;
struct CUevent_st;

namespace rowtide {

// What ops take.  Null on `cpu`; never null on a GPU (CUDA's default stream is not used).
using DeviceStream = CUstream_st*;

class Event;

class Stream {
 public:
  Stream() = default;
  ~Stream();
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
  }

  // Errors: kDevice; kUnavailable in a build without CUDA.
  static Result<Stream> create();

  DeviceStream get() const { return stream_; }

  // Work given to this stream from now on runs after `event` as it was last recorded.
  // Returns at once.  Errors: kDevice.
  Status wait(const Event& event);

  // Waits until all work given so far has run.  Errors: kDevice, also for faults in that work.
  Status synchronize();

 private:
  DeviceStream stream_ = nullptr;
};

class Event {
 public:
  Event() = default;
  ~Event();
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }

  // Errors: kDevice; kUnavailable in a build without CUDA.
  static Result<Event> create();

  // Marks the point behind all work that `stream` has been given.  Returns at once.
  // Errors: kDevice.
  Status record(const Stream& stream);

  // Waits until the point last recorded is reached.  Errors: kDevice.
  Status synchronize();

 private:
  friend class Stream;
  CUevent_st* event_ = nullptr;
};

}  // namespace rowtide
