#include "kernels/pooled_lookup_gpu.h"
#include "tests/gpu/device_array.h"
#include "tests/gpu/gpu_case.h"
#include "tests/kernels/pooled_lookup_cases.h"
#include "tests/reference/pooled_lookup.h"

namespace rowtide {
namespace {

Status equals_the_reference(const PooledLookupCase& test) {
  PooledLookupInput input(test);
  PooledLookup op = input.op();
  std::vector<float> expected(op.bags * op.out_stride, -7.0f);
  const std::vector<float> before = expected;  // columns between rows stay as they are
  op.out = expected.data();
  pooled_lookup_reference(op, 0, op.bags);

  auto stream = Stream::create();
  if (!stream.ok()) return stream.status();
  auto weights = upload(input.weights, *stream);
  auto slots = upload(input.slots, *stream);
  auto unique = upload(input.bags.unique, *stream);
  auto offsets = upload(input.bags.offsets, *stream);
  auto sample_weights = upload(input.bags.weights, *stream);
  auto out = upload(before, *stream);
  for (const Status& status : {weights.status(), slots.status(), unique.status(), offsets.status(),
                               sample_weights.status(), out.status()}) {
    ROWTIDE_TRY(status);
  }
  op.planes.weights = weights->device();
  op.slots = slots->device();
  op.unique = unique->device();
  op.offsets = offsets->device();
  if (op.weights != nullptr) op.weights = sample_weights->device();
  op.out = out->device();
  ROWTIDE_TRY(pooled_lookup_gpu(op, stream->get()));
  const auto actual = out->download(*stream);
  if (!actual.ok()) return actual.status();
  const std::string difference = first_difference(expected, *actual);
  return difference.empty() ? Status() : Status(Code::kCorrupt, difference);
}

}  // namespace

std::vector<GpuCase> pooled_lookup_gpu_cases() {
  std::vector<GpuCase> cases;
  for (const PooledLookupCase& test : pooled_lookup_cases({Pooling::kSum, Pooling::kMean})) {
    cases.push_back({"PooledLookup" + test.name, [test] { return equals_the_reference(test); }});
  }
  return cases;
}

}  // namespace rowtide
