// The calls of the CUDA runtime that Rowtide makes.  One that is missing here does not link.

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>

#include "tests/support/cuda_on_cpu/block.h"
#include "tests/support/cuda_on_cpu/control.h"
#include "tests/support/cuda_on_cpu/fault.h"
#include "tests/support/cuda_on_cpu/memory.h"
#include "tests/support/cuda_on_cpu/random.h"
#include "tests/support/cuda_on_cpu/report.h"
#include "tests/support/cuda_on_cpu/stream.h"

namespace cuda_on_cpu {
namespace {

uint64_t seed_in_use = 0;
cudaError_t last_error = cudaSuccess;

cudaError_t fails(cudaError_t error) { return last_error = error; }
cudaError_t result() { return device_failed() ? fails(cudaErrorLaunchFailure) : cudaSuccess; }

// A fault in how the API is used, which a real GPU may or may not tell.
cudaError_t misuse(const std::string& what) {
  report(what);
  return fails(cudaErrorInvalidValue);
}

// What every call does first.
void begin_call() { report_host_accesses(); }

bool good_stream(cudaStream_t stream, const char* call) {
  if (is_stream(stream)) return true;
  misuse(std::string(call) + (stream == nullptr ? " uses the default stream"
                                                : " is given a stream that does not exist"));
  return false;
}

cudaError_t check_shape(dim3 grid, dim3 block, size_t shared_bytes) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  if (threads == 0 || threads > 1024 || block.z > 64 || blocks == 0 || grid.x > 0x7FFFFFFFu ||
      grid.y > 0xFFFF || grid.z > 0xFFFF) {
    return cudaErrorInvalidConfiguration;
  }
  if (shared_bytes > kMaxSharedBytes) return cudaErrorInvalidValue;
  return cudaSuccess;
}

cudaError_t copy_to_device(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  if (!is_pinned(from, bytes))
    return misuse("a copy to the device reads memory that is not pinned");
  if (!is_device(to, bytes)) return misuse("a copy to the device writes " + describe(to));
  give(stream, "a copy to the device", nullptr, [=](const Work& work) {
    let_arrive(work.clock);
    race::copy_accesses(to, bytes, /*write=*/true);
    std::memcpy(to, from, bytes);
  });
  return result();
}

cudaError_t copy_to_host(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  if (!is_pinned(to, bytes)) return misuse("a copy to the host writes memory that is not pinned");
  if (!is_device(from, bytes)) return misuse("a copy to the host reads " + describe(from));
  give(stream, "a copy to the host", nullptr, [=](const Work& work) {
    race::copy_accesses(from, bytes, /*write=*/false);
    arrives_later(work, to, std::string(static_cast<const char*>(from), bytes));
    poison(to, bytes);
  });
  return result();
}

}  // namespace

void reset(uint64_t seed) {
  static const bool watching = (watch_faults(), true);
  (void)watching;
  begin_call();
  seed_in_use = seed_or(seed);
  random() = Random(seed_in_use);
  reset_streams(seed_in_use);
  last_error = cudaSuccess;
  take_reports();
}

uint64_t seed() { return seed_in_use; }

uint64_t seed_or(uint64_t otherwise) {
  const char* const asked = std::getenv("ROWTIDE_GPU_SEED");
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : otherwise;
}

Random& random() {
  static Random source;
  return source;
}

void launch_call(std::unique_ptr<Call> call, dim3 grid, dim3 block, size_t shared_bytes,
                 cudaStream_t stream) {
  begin_call();
  const Launch launch{std::move(call), grid, block, shared_bytes};
  if (!good_stream(stream, "a launch")) return;
  if (const cudaError_t error = check_shape(grid, block, shared_bytes); error != cudaSuccess) {
    fails(error);
    return;
  }
  if (block.x * block.y * block.z % kWarp != 0) {
    misuse(launch.name() + ": a block is no multiple of 32 threads");
    return;
  }
  give(stream, "", launch.call->kernel, [launch](const Work&) {
    if (!run_grid(launch)) set_device_failed();
  });
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  begin_call();
  *memory = allocate_device(bytes);
  return *memory == nullptr ? fails(cudaErrorMemoryAllocation) : cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  begin_call();
  if (memory == nullptr) return cudaSuccess;
  wait_for_all();
  return free_device(memory) ? result() : misuse("cudaFree of " + describe(memory));
}

cudaError_t cudaMemGetInfo(size_t* there, size_t* total) {
  begin_call();
  *there = free_device_bytes();
  *total = region_bytes();
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  begin_call();
  *memory = allocate_pinned(bytes);
  return *memory == nullptr ? fails(cudaErrorMemoryAllocation) : cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  begin_call();
  if (memory == nullptr) return cudaSuccess;
  wait_for_all();
  return free_pinned(memory) ? result() : misuse("cudaFreeHost of memory that is not pinned");
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  begin_call();
  if (!good_stream(stream, "cudaMemcpyAsync")) return last_error;
  if (kind == cudaMemcpyHostToDevice) return copy_to_device(to, from, bytes, stream);
  if (kind == cudaMemcpyDeviceToHost) return copy_to_host(to, from, bytes, stream);
  return misuse("a copy of a kind that Rowtide does not make");
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  begin_call();
  *stream = make_stream();
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  begin_call();
  if (!good_stream(stream, "cudaStreamDestroy")) return last_error;
  end_stream(stream);
  return result();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  begin_call();
  if (!good_stream(stream, "cudaStreamSynchronize")) return last_error;
  wait_for_stream(stream);
  return result();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  begin_call();
  if (!good_stream(stream, "cudaStreamWaitEvent")) return last_error;
  give_wait(stream, *event);
  return result();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  begin_call();
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  begin_call();
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  begin_call();
  if (!good_stream(stream, "cudaEventRecord")) return last_error;
  give_record(stream, *event);
  return result();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  begin_call();
  wait_for_event(*event);
  return result();
}

cudaError_t cudaGetLastError() {
  begin_call();
  const cudaError_t error = device_failed() ? cudaErrorLaunchFailure : last_error;
  last_error = cudaSuccess;
  return error;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    default:
      return "a CUDA error";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    default:
      return "an error";
  }
}
