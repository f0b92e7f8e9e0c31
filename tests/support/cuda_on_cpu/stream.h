#pragma once
// stream — queues of work that run inside calls of the API, when a seeded policy says so.
//
//   eager      whatever can run does so at once
//   lazy       nothing runs until the host waits for it; other streams stay where they are
//   priority   streams have a fixed random rank; now and then the first that can run goes on
//
// A missing wait between streams is seen where the policy runs the later stream first.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tests/support/cuda_on_cpu/race.h"

namespace cuda_on_cpu {

// What events share with the waits that captured them, which may outlive the event.
struct Mark {
  struct Record {
    CUstream_st* stream;
    Clock clock;
  };
  uint32_t recorded = 0;  // counts the calls of cudaEventRecord
  uint32_t reached = 0;   // the last of them that the stream has come to
  std::map<uint32_t, Record> records;
};

// Queue entries: work, a mark to set, or a mark to wait for.
struct Item {
  Work work;
  std::function<void(const Work&)> run;
  std::shared_ptr<Mark> sets, waits_for;
  uint32_t record = 0;  // which of the mark's
};

}  // namespace cuda_on_cpu

struct CUstream_st {
  uint32_t number = 0;
  uint32_t rank = 0;
  cuda_on_cpu::Clock clock;  // what comes before work given next
  std::deque<cuda_on_cpu::Item> queue;
};
struct CUevent_st {
  std::shared_ptr<cuda_on_cpu::Mark> mark = std::make_shared<cuda_on_cpu::Mark>();
};

namespace cuda_on_cpu {

cudaStream_t make_stream();
void end_stream(cudaStream_t stream);  // runs what it holds
bool is_stream(cudaStream_t stream);

// Queues a copy, named by `what`, or a kernel.
void give(cudaStream_t stream, const char* what, const void* kernel,
          std::function<void(const Work&)> run);
void give_record(cudaStream_t stream, CUevent_st& event);
void give_wait(cudaStream_t stream, CUevent_st& event);

// The host waits: afterwards it knows what came before, and copies to it have arrived.
void wait_for_stream(cudaStream_t stream);
void wait_for_event(CUevent_st& event);
void wait_for_all();

// A copy to the host has been made; its bytes arrive once the host has waited for it.
void arrives_later(const Work& work, void* host, std::string bytes);
// Brings what comes before `clock`: a copy from there reads it.
void let_arrive(const Clock& clock);
// Nothing will arrive in host memory that is being freed.
void forget_arrivals(const void* host, size_t bytes);

// Work that streams still hold is dropped.
void reset_streams(uint64_t seed);

// Sticky: set by a kernel that was abandoned, until reset.  Nothing runs any more.
bool device_failed();
void set_device_failed();

}  // namespace cuda_on_cpu
