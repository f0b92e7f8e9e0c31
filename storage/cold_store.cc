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

}  // namespace
}  // namespace storage

std::vector<MemoryLine> ColdStore::predict(const ColdStoreOptions& options) {
  const auto segment_bytes = storage::with_files([&](storage::FileSystem& files) {
    return storage::StoreFiles::segment_bytes_in(files, options);
  });
  const auto layout = storage::Layout::of(options, segment_bytes.ok() ? segment_bytes.value() : 0);
  if (!layout.ok()) return {};
  return storage::predict_memory(options, layout.value(),
                                 storage::KeyDomain(options.tables).bits());
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
