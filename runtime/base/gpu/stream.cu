#include "runtime/base/gpu/gpu.h"
#include "runtime/base/gpu/stream.h"

namespace rowtide {

// Owners free what they hold; an error of that surfaces at the next wait.
Stream::~Stream() {
  if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
}

Result<Stream> Stream::create() {
  Stream stream;
  const cudaError_t error = cudaStreamCreateWithFlags(&stream.stream_, cudaStreamNonBlocking);
  if (error != cudaSuccess) return device_status(error, "creating a stream");
  return Result<Stream>(std::move(stream));
}

Status Stream::wait(const Event& event) {
  return device_status(cudaStreamWaitEvent(stream_, event.event_, 0), "making a stream wait");
}

Status Stream::synchronize() {
  return device_status(cudaStreamSynchronize(stream_), "waiting for a stream");
}

Event::~Event() {
  if (event_ != nullptr) (void)cudaEventDestroy(event_);
}

Result<Event> Event::create() {
  Event event;
  const cudaError_t error = cudaEventCreateWithFlags(&event.event_, cudaEventDisableTiming);
  if (error != cudaSuccess) return device_status(error, "creating an event");
  return Result<Event>(std::move(event));
}

Status Event::record(const Stream& stream) {
  return device_status(cudaEventRecord(event_, stream.get()), "recording an event");
}

Status Event::synchronize() {
  return device_status(cudaEventSynchronize(event_), "waiting for an event");
}

}  // namespace rowtide
