#include "tests/support/cuda_on_cpu/stream.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "runtime/base/status.h"
#include "tests/support/cuda_on_cpu/memory.h"
#include "tests/support/cuda_on_cpu/random.h"
#include "tests/support/cuda_on_cpu/report.h"

namespace cuda_on_cpu {
namespace {

enum class Policy { kEager, kLazy, kPriority };
// By seed.  Eager finds no missing wait, so it comes once.
constexpr Policy kPolicies[] = {Policy::kEager, Policy::kLazy, Policy::kPriority, Policy::kLazy,
                                Policy::kPriority};

struct Arrival {
  uint32_t stream, ticket;
  std::byte* host;
  std::string bytes;
};

struct Queues {
  Policy policy = Policy::kEager;
  std::vector<std::unique_ptr<CUstream_st>> streams;
  Clock given;  // by stream number, also of streams that have ended
  Clock host;   // what the host has waited for
  std::vector<Arrival> arrivals;
  bool failed = false;
};
Queues queues;

uint32_t at(const Clock& clock, uint32_t stream) {
  return stream < clock.size() ? clock[stream] : 0;
}

void merge(Clock& into, const Clock& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

bool can_run(const CUstream_st& stream) {
  if (stream.queue.empty()) return false;
  const Item& head = stream.queue.front();
  return head.waits_for == nullptr || head.waits_for->reached >= head.record;
}

// REQUIRES: can_run(stream).
void run_head(CUstream_st& stream) {
  const Item item = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (item.sets != nullptr) item.sets->reached = std::max(item.sets->reached, item.record);
  if (item.run == nullptr || queues.failed) return;
  race::work_begins(item.work);
  item.run(item.work);
  race::work_ends();
  check_redzones([&] { return item.work.name(); });
}

// The stream that goes next if all may; null if none can run.
CUstream_st* first_by_rank() {
  CUstream_st* first = nullptr;
  for (const auto& stream : queues.streams) {
    if (can_run(*stream) && (first == nullptr || stream->rank < first->rank)) first = stream.get();
  }
  return first;
}

// The stream that must go on for `stream` to do so.
CUstream_st* whom_it_waits_for(CUstream_st* stream) {
  for (size_t hops = 0; hops <= queues.streams.size(); ++hops) {
    if (can_run(*stream)) return stream;
    const Item& head = stream->queue.front();
    stream = head.waits_for->records.at(head.record).stream;
    if (stream->queue.empty()) break;
  }
  return nullptr;
}

template <typename Done>
void run_until(CUstream_st* stream, Done&& done) {
  RegionOpen open;
  while (!done()) {
    CUstream_st* const next =
        queues.policy == Policy::kPriority ? first_by_rank() : whom_it_waits_for(stream);
    ROWTIDE_CHECK(next != nullptr);  // a record is given before any wait for it
    run_head(*next);
  }
}

void after_giving() {
  if (queues.policy == Policy::kLazy) return;
  RegionOpen open;
  const uint32_t steps = queues.policy == Policy::kEager ? ~0u : random().below(4) / 3;
  for (uint32_t i = 0; i < steps; ++i) {
    CUstream_st* const next = first_by_rank();
    if (next == nullptr) return;
    run_head(*next);
  }
}

void host_knows(const Clock& clock) {
  merge(queues.host, clock);
  let_arrive(queues.host);
  for (uint32_t i = 0; i < queues.given.size(); ++i) {
    if (at(queues.host, i) < queues.given[i]) return;
  }
  race::all_done();
}

void push(cudaStream_t stream, Item item) {
  merge(stream->clock, queues.host);
  stream->queue.push_back(std::move(item));
  after_giving();
}

}  // namespace

std::string Work::name() const { return kernel == nullptr ? what : name_of_code(kernel); }

cudaStream_t make_stream() {
  auto stream = std::make_unique<CUstream_st>();
  stream->number = static_cast<uint32_t>(queues.given.size());
  stream->rank = static_cast<uint32_t>(random().next() >> 32);
  queues.given.push_back(0);
  queues.streams.push_back(std::move(stream));
  return queues.streams.back().get();
}

void end_stream(cudaStream_t stream) {
  run_until(stream, [&] { return stream->queue.empty(); });
  std::erase_if(queues.streams, [&](const auto& one) { return one.get() == stream; });
}

bool is_stream(cudaStream_t stream) {
  return std::any_of(queues.streams.begin(), queues.streams.end(),
                     [&](const auto& one) { return one.get() == stream; });
}

void give(cudaStream_t stream, const char* what, const void* kernel,
          std::function<void(const Work&)> run) {
  merge(stream->clock, queues.host);
  stream->clock.resize(std::max<size_t>(stream->clock.size(), stream->number + 1));
  const uint32_t ticket = stream->clock[stream->number] = ++queues.given[stream->number];
  Item item;
  item.work = {stream->number, ticket, stream->clock, what, kernel};
  item.run = std::move(run);
  push(stream, std::move(item));
}

void give_record(cudaStream_t stream, CUevent_st& event) {
  merge(stream->clock, queues.host);
  Item item;
  item.sets = event.mark;
  item.record = ++event.mark->recorded;
  event.mark->records[item.record] = {stream, stream->clock};
  push(stream, std::move(item));
}

void give_wait(cudaStream_t stream, CUevent_st& event) {
  if (event.mark->recorded == 0) return;  // as CUDA: nothing to wait for
  Item item;
  item.waits_for = event.mark;
  item.record = event.mark->recorded;
  merge(stream->clock, event.mark->records.at(item.record).clock);
  push(stream, std::move(item));
}

void wait_for_stream(cudaStream_t stream) {
  run_until(stream, [&] { return stream->queue.empty(); });
  host_knows(stream->clock);
}

void wait_for_event(CUevent_st& event) {
  Mark& mark = *event.mark;
  if (mark.recorded == 0) return;
  const Mark::Record& record = mark.records.at(mark.recorded);
  run_until(record.stream, [&] { return mark.reached >= mark.recorded; });
  host_knows(record.clock);
}

void wait_for_all() {
  for (const auto& stream : queues.streams) {
    run_until(stream.get(), [&] { return stream->queue.empty(); });
  }
  host_knows(queues.given);
}

void arrives_later(const Work& work, void* host, std::string bytes) {
  queues.arrivals.push_back(
      {work.stream, work.ticket, static_cast<std::byte*>(host), std::move(bytes)});
}

void let_arrive(const Clock& clock) {
  std::erase_if(queues.arrivals, [&](const Arrival& arrival) {
    if (at(clock, arrival.stream) < arrival.ticket) return false;
    std::memcpy(arrival.host, arrival.bytes.data(), arrival.bytes.size());
    return true;
  });
}

void forget_arrivals(const void* host, size_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(host);
  std::erase_if(queues.arrivals, [&](const Arrival& arrival) {
    return arrival.host >= begin && arrival.host < begin + bytes;
  });
}

void reset_streams(uint64_t seed) {
  queues.failed = true;  // what is left is passed over
  wait_for_all();
  queues.failed = false;
  queues.policy = kPolicies[seed % std::size(kPolicies)];
}

bool device_failed() { return queues.failed; }
void set_device_failed() { queues.failed = true; }

}  // namespace cuda_on_cpu
