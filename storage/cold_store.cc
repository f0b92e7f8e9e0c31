#include "storage/cold_store.h"

#include "storage/log_store.h"

namespace rowtide {

namespace storage {

std::function<StoreBackend()>& backend_for_tests() {
  static std::function<StoreBackend()> backend;
  return backend;
}

namespace {

// Calls use(files) with the disk on which stores lie.
template <typename Use>
auto with_files(Use&& use) {
  if (backend_for_tests()) return use(*backend_for_tests()().files);
  const auto files = posix_file_system();
  return use(*files);
}

// Of the store that is there; 0: none, or none that can be read, as open() will say.
uint32_t segment_bytes_of(const ColdStoreOptions& options) {
  const auto bytes =
      with_files([&](FileSystem& files) { return StoreFiles::segment_bytes_in(files, options); });
  return bytes.ok() ? *bytes : 0;
}

}  // namespace
}  // namespace storage

DiskBudget ColdStore::judge_budget(const ColdStoreOptions& options) {
  const uint32_t segment_bytes = storage::segment_bytes_of(options);
  const Status status = storage::Layout::of(options, segment_bytes).status();
  if (!status.ok() && status.code() != Code::kNoSpace) return {.status = status};
  return {storage::Layout::least_bytes(options, segment_bytes), status};
}

std::vector<MemoryLine> ColdStore::predict(const ColdStoreOptions& options) {
  ColdStoreOptions enough = options;
  const DiskBudget budget = judge_budget(options);
  if (!budget.status.ok()) {
    if (budget.status.code() != Code::kNoSpace) return {};
    enough.directories[0].bytes = budget.least_bytes;
  }
  const auto layout = storage::Layout::of(enough, storage::segment_bytes_of(options));
  if (!layout.ok()) return {};
  return storage::predict_memory(enough, *layout, storage::KeyDomain(enough.tables).bits());
}

Result<StoreSummary> ColdStore::summary(const std::vector<StoreDirectory>& directories) {
  ColdStoreOptions options;
  options.directories = directories;
  return storage::with_files(
      [&](storage::FileSystem& files) { return storage::StoreFiles::summary(files, options); });
}

Result<std::unique_ptr<ColdStore>> ColdStore::open(ColdStoreOptions options) {
  if (storage::backend_for_tests()) {
    return storage::LogStore::open(std::move(options), storage::backend_for_tests()());
  }
  auto files = storage::posix_file_system();
  storage::StoreBackend backend{
      .files = files.get(),
      .make_queue = [engine = options.engine, log = options.log](uint32_t depth) {
        return storage::make_queue(engine, depth, log);
      }};
  return storage::LogStore::open(std::move(options), std::move(backend), std::move(files));
}

}  // namespace rowtide
