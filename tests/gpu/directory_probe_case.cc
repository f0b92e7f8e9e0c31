#include "kernels/directory_probe_gpu.h"
#include "tests/gpu/device_array.h"
#include "tests/gpu/gpu_case.h"
#include "tests/kernels/directory_probe_cases.h"

namespace rowtide {
namespace {

Status finds_what_stands_there(const DirectoryProbeCase& test) {
  const DirectoryProbeInput input(test);
  const std::vector<Slot> before(input.probes.size(), 0xA5A5A5A5u);
  auto stream = Stream::create();
  if (!stream.ok()) return stream.status();
  auto tags = upload(input.tags, *stream);
  auto keys = upload(input.keys, *stream);
  auto probes = upload(input.probes, *stream);
  auto slots = upload(before, *stream);
  for (const Status& status : {tags.status(), keys.status(), probes.status(), slots.status()}) {
    ROWTIDE_TRY(status);
  }
  DirectoryProbe op{input.view, probes->device(), slots->device(), input.probes.size()};
  op.view.tags = tags->device();
  op.view.keys = keys->device();
  ROWTIDE_TRY(directory_probe_gpu(op, stream->get()));
  const auto actual = slots->download(*stream);
  if (!actual.ok()) return actual.status();
  const std::vector<Slot> expected = input.expected();
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == (*actual)[i]) continue;
    return {Code::kCorrupt, "probe " + std::to_string(i) + " finds slot " +
                                std::to_string((*actual)[i]) + ", expected " +
                                std::to_string(expected[i])};
  }
  return {};
}

}  // namespace

std::vector<GpuCase> directory_probe_gpu_cases() {
  std::vector<GpuCase> cases;
  for (const DirectoryProbeCase& test : directory_probe_cases()) {
    cases.push_back(
        {"DirectoryProbe" + test.name, [test] { return finds_what_stands_there(test); }});
  }
  return cases;
}

}  // namespace rowtide
