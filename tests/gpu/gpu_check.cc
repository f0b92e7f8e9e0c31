// What `make gpu-check` runs on a machine with a GPU: every case of every op, then how fast they
// are.
//
// Needs nvcc, g++ and make to build, no test library.  Exits with 0 if all cases pass, 1 if one
// does not, 77 if there is no GPU.

#include <chrono>
#include <cstdio>
#include <random>

#include "kernels/directory_probe_gpu.h"
#include "kernels/pooled_lookup_gpu.h"
#include "tests/gpu/device_array.h"
#include "tests/gpu/gpu_case.h"

namespace rowtide {

const size_t kGuardBytes = 256;

namespace {

constexpr int kRounds = 20;

// Seconds of one run, the mean of kRounds after one to warm up.
template <typename Run>
Result<double> seconds_of(Stream& stream, Run&& run) {
  ROWTIDE_TRY(run());
  ROWTIDE_TRY(stream.synchronize());
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kRounds; ++i) ROWTIDE_TRY(run());
  ROWTIDE_TRY(stream.synchronize());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / kRounds;
}

template <typename T>
std::vector<T> random_numbers(size_t count, uint64_t below) {
  std::mt19937_64 random(1);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(random() % below);
  return values;
}

// Bags of 20 rows of 4 Mi, in the batch of a large model.
Status measure_pooled_lookup(uint32_t width, Precision precision, Stream& stream) {
  constexpr uint64_t kBags = 1 << 16, kIds = kBags * 20, kRows = 1 << 22;
  PooledLookup op;
  op.format = {.width = width, .precision = precision};
  auto rows = DeviceArena::reserve(kRows * op.format.weight_bytes(), "the rows");
  if (!rows.ok()) return rows.status();
  std::vector<int64_t> begins(kBags + 1);
  for (uint64_t b = 0; b <= kBags; ++b) begins[b] = static_cast<int64_t>(b * 20);
  std::vector<uint32_t> identity(kRows);
  for (uint32_t i = 0; i < kRows; ++i) identity[i] = i;
  auto slots = upload(identity, stream);
  auto unique = upload(random_numbers<uint32_t>(kIds, kRows), stream);
  auto offsets = upload(begins, stream);
  auto out = upload(std::vector<float>(kBags * width), stream);
  for (const Status& s : {slots.status(), unique.status(), offsets.status(), out.status()}) {
    ROWTIDE_TRY(s);
  }
  op.planes = {rows->bytes(), nullptr, op.format.weight_bytes(), 0};
  op.slots = slots->device();
  op.unique = unique->device();
  op.offsets = offsets->device();
  op.out = out->device();
  op.out_stride = width;
  op.bags = kBags;
  const auto seconds = seconds_of(stream, [&] { return pooled_lookup_gpu(op, stream.get()); });
  if (!seconds.ok()) return seconds.status();
  std::printf(
      "  pooled_lookup   width %4u, %u bytes an element: %7.0f M rows/s %7.0f GB/s of rows\n",
      width, op.format.weight_bytes() / width, kIds / *seconds * 1e-6,
      kIds * op.format.weight_bytes() / *seconds * 1e-9);
  return {};
}

// 4 Mi keys looked up in a directory of 8 Mi slots; what is found does not matter for the time.
Status measure_directory_probe(Stream& stream) {
  constexpr uint32_t kSets = 1 << 18;
  constexpr uint64_t kProbes = 1 << 22;
  auto tags = upload(random_numbers<uint16_t>(size_t{kSets} * kWays, 65536), stream);
  auto keys = upload(std::vector<Key>(size_t{kSets} * kWays, 1), stream);
  auto probes = upload(random_numbers<Key>(kProbes, kMaxRows), stream);
  auto slots = upload(std::vector<Slot>(kProbes), stream);
  for (const Status& s : {tags.status(), keys.status(), probes.status(), slots.status()}) {
    ROWTIDE_TRY(s);
  }
  DirectoryProbe op{{}, probes->device(), slots->device(), kProbes};
  op.view.tags = tags->device();
  op.view.keys = keys->device();
  op.view.sets = kSets;
  const auto seconds = seconds_of(stream, [&] { return directory_probe_gpu(op, stream.get()); });
  if (!seconds.ok()) return seconds.status();
  std::printf("  directory_probe %u sets: %7.0f M keys/s\n", kSets, kProbes / *seconds * 1e-6);
  return {};
}

// The number of cases that fail, each said.
int check(const std::vector<GpuCase>& cases) {
  int failed = 0;
  for (const GpuCase& test : cases) {
    const Status status = test.run();
    if (!status.ok()) std::printf("FAILED %s: %s\n", test.name.c_str(), status.to_string().c_str());
    failed += !status.ok();
  }
  return failed;
}

Status measure(Stream& stream) {
  for (const Precision precision : {Precision::kFp32, Precision::kFp16}) {
    for (const uint32_t width : {16, 64, 128}) {
      ROWTIDE_TRY(measure_pooled_lookup(width, precision, stream));
    }
  }
  return measure_directory_probe(stream);
}

int run() {
  auto stream = Stream::create();
  if (!stream.ok()) {
    std::printf("gpu-check: no GPU here, nothing is checked (%s)\n",
                stream.status().message().c_str());
    return 77;
  }
  const auto lookups = pooled_lookup_gpu_cases();
  const auto probes = directory_probe_gpu_cases();
  const size_t cases = lookups.size() + probes.size();
  const int failed = check(lookups) + check(probes);
  std::printf("gpu-check: %zu passed, %d failed\n", cases - static_cast<size_t>(failed), failed);
  const Status measured = measure(*stream);
  if (!measured.ok()) std::printf("gpu-check: %s\n", measured.to_string().c_str());
  return failed == 0 && measured.ok() ? 0 : 1;
}

}  // namespace
}  // namespace rowtide

int main() { return rowtide::run(); }
