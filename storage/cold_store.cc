#include "storage/cold_store.h"

#include "storage/log_store.h"

namespace rowtide {

std::vector<MemoryLine> ColdStore::predict(const ColdStoreOptions& options) {
  const auto files = storage::posix_file_system();
  const auto segment_bytes = storage::StoreFiles::segment_bytes_in(*files, options);
  const auto layout = storage::Layout::of(options, segment_bytes.ok() ? segment_bytes.value() : 0);
  if (!layout.ok()) return {};
  return storage::predict_memory(options, layout.value(),
                                 storage::KeyDomain(options.tables).bits());
}

Result<StoreSummary> ColdStore::summary(const std::vector<StoreDirectory>& directories) {
  const auto files = storage::posix_file_system();
  ColdStoreOptions options;
  options.directories = directories;
  return storage::StoreFiles::summary(*files, options);
}

Result<std::unique_ptr<ColdStore>> ColdStore::open(ColdStoreOptions options) {
  auto files = storage::posix_file_system();
  storage::StoreBackend backend{
      .files = files.get(),
      .make_queue = [engine = options.engine, log = options.log](uint32_t depth) {
        return storage::make_queue(engine, depth, log);
      }};
  return storage::LogStore::open(std::move(options), std::move(backend), std::move(files));
}

}  // namespace rowtide
