// rowtide-bench — one program for all benchmarks: rowtide-bench NAME [options].

#include <cstdio>
#include <string_view>

namespace rowtide {

// Each is the entry of bench/NAME_bench.cc; weak, so that a build without one still links.
[[gnu::weak]] int bench_kernels(int argc, char** argv);
[[gnu::weak]] int bench_dense(int argc, char** argv);
[[gnu::weak]] int bench_train(int argc, char** argv);
[[gnu::weak]] int bench_storage(int argc, char** argv);
[[gnu::weak]] int bench_policy(int argc, char** argv);
[[gnu::weak]] int bench_reader(int argc, char** argv);

namespace {

struct Bench {
  std::string_view name;
  int (*run)(int argc, char** argv);
  const char* about;
};
const Bench kBenches[] = {
    {"kernels", bench_kernels, "embedding ops in rows/s beside the memory's limit"},
    {"dense", bench_dense, "the dense part in samples/s beside its matrix products"},
    {"train", bench_train, "whole training steps in samples/s"},
    {"storage", bench_storage, "the cold store beside the device itself"},
    {"reader", bench_reader, "Criteo files in MB/s beside the decompressor"},
    {"policy", bench_policy, "hit rates of policies over a trace"},
};

void print_usage(std::FILE* to) {
  std::fprintf(to, "usage: rowtide-bench NAME [options]   (NAME --help: its options)\n");
  for (const Bench& bench : kBenches) {
    if (bench.run != nullptr) std::fprintf(to, "  %-8s %s\n", bench.name.data(), bench.about);
  }
}

}  // namespace
}  // namespace rowtide

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  for (const auto& bench : rowtide::kBenches) {
    if (bench.name == name && bench.run != nullptr) return bench.run(argc - 1, argv + 1);
  }
  const bool asked = name == "--help" || name == "-h";
  if (!asked && argc > 1) std::fprintf(stderr, "there is no benchmark \"%s\"\n", argv[1]);
  rowtide::print_usage(asked ? stdout : stderr);
  return asked ? 0 : 2;
}
