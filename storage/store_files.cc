#include "storage/store_files.h"

#include <algorithm>
#include <cstring>

namespace rowtide::storage {
namespace {

constexpr const char* kLog = "LOG";
constexpr const char* kLock = "LOCK";
constexpr const char* kReaders = "READERS";
constexpr const char* kManifest = "MANIFEST";
constexpr int kPinTries = 100;  // each fails only if a commit ends in between

bool is_ours(std::string name) {
  if (name.ends_with(FileSystem::kNewSuffix))
    name.resize(name.size() - std::strlen(FileSystem::kNewSuffix));
  for (const char* fixed : {kLog, kLock, kReaders, kManifest, HintsFile::kName}) {
    if (name == fixed) return true;
  }
  return name.starts_with("arrays-") && name.size() > 7 &&
         std::all_of(name.begin() + 7, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Result<LogHeader> read_log_header(FileSystem& files, const std::string& path) {
  auto file = files.open(path, false, false, nullptr);
  if (!file.ok()) return file.status();
  std::vector<std::byte> page(kPageBytes);
  const Status status = files.read_at(*file, 0, page);
  files.close(*file);
  if (!status.ok()) return Status(Code::kCorrupt, path + ": " + status.message());
  LogHeader header;
  std::memcpy(&header, page.data(), sizeof header);
  if (header.magic != kLogMagic || header.format != kFormat) {
    return {Code::kFormat, path + " is not a log of format " + std::to_string(kFormat)};
  }
  if (!intact(header)) return {Code::kCorrupt, path + ", offset 0: the header does not verify"};
  return header;
}

}  // namespace

StoreFiles::~StoreFiles() {
  if (readers_ >= 0) files_->close(readers_);
  for (int lock : locks_) files_->close(lock);
}

Result<uint32_t> StoreFiles::segment_bytes_in(FileSystem& files, const ColdStoreOptions& options) {
  if (options.directories.empty()) return uint32_t{0};
  const auto header = read_log_header(files, options.directories[0].path + "/" + kLog);
  if (header.ok()) return header->segment_bytes;
  if (header.status().code() == Code::kNotFound) return uint32_t{0};
  return header.status();
}

Result<StoreSummary> StoreFiles::summary(FileSystem& files, const ColdStoreOptions& options) {
  StoreFiles store(&files, &options);
  StoreSummary summary;
  if (options.directories.empty()) return summary;
  ROWTIDE_TRY(store.read_manifest());
  summary.payload_bytes = store.manifest_.payload_bytes;
  if (const KeptCommit* last = store.manifest_.find(store.manifest_.epoch)) {
    summary.meta = last->meta;
  }
  return summary;
}

Status StoreFiles::open() {
  for (size_t d = 0; d < options_->directories.size(); ++d) {
    if (!options_->read_only) {
      ROWTIDE_TRY(files_->make_directory(options_->directories[d].path));
    }
    ROWTIDE_TRY(refuse_foreign(d));
  }
  if (!options_->read_only) ROWTIDE_TRY(lock_and_make());
  file_system_ = files_->type_of(options_->directories[0].path);
  auto segment_bytes = segment_bytes_in(*files_, *options_);
  if (!segment_bytes.ok()) return segment_bytes.status();
  segment_bytes_ = *segment_bytes;
  if (options_->read_only) {
    ROWTIDE_TRY(pin());
  } else {
    // A process that died may have left names that only the kernel knows.
    for (const auto& directory : options_->directories) {
      ROWTIDE_TRY(files_->sync_directory(directory.path));
    }
    ROWTIDE_TRY(read_manifest());
    view_ = manifest_.epoch;
  }
  const auto& types = manifest_.payload_bytes;
  const auto& asked = options_->payload_bytes;
  if (types.size() > asked.size() || !std::equal(types.begin(), types.end(), asked.begin())) {
    return {Code::kInvalid, options_->directories[0].path +
                                ": the record types of the store are not those asked for"};
  }
  return {};
}

Status StoreFiles::refuse_foreign(size_t directory) {
  auto names = files_->list(options_->directories[directory].path);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (!is_ours(name)) {
      return {Code::kFormat, path(directory, name) +
                                 " does not belong to a cold store; give it a " +
                                 "directory of its own"};
    }
  }
  return {};
}

Status StoreFiles::lock_and_make() {
  for (size_t d = 0; d < options_->directories.size(); ++d) {
    auto lock = files_->lock_writer(path(d, kLock));
    if (!lock.ok()) return lock.status();
    locks_.push_back(*lock);
  }
  auto readers = files_->open(path(0, kReaders), true, true, nullptr);
  if (!readers.ok()) return readers.status();
  readers_ = *readers;
  return {};
}

Status StoreFiles::read_manifest() {
  manifest_ = {};
  auto bytes = files_->read_file(path(0, kManifest));
  if (!bytes.ok()) {
    return bytes.status().code() == Code::kNotFound ? Status() : bytes.status();
  }
  auto manifest = decode_manifest(*bytes, path(0, kManifest));
  if (!manifest.ok()) return manifest.status();
  manifest_ = std::move(*manifest);
  return {};
}

Status StoreFiles::read_manifest_again() {
  ROWTIDE_TRY(read_manifest());
  if (view_ == 0 || manifest_.find(view_) != nullptr) return {};
  return {Code::kCorrupt, path(0, kManifest) + " no longer keeps commit " + std::to_string(view_)};
}

// Says which commit is in use, and looks again: the writer asks after it has renamed a manifest,
// so a commit that is still named was seen to be in use.
Status StoreFiles::pin() {
  auto readers = files_->open(path(0, kReaders), false, false, nullptr);
  if (!readers.ok()) return {Code::kNotFound, path(0, "") + " holds no cold store"};
  readers_ = *readers;
  begin_scan();
  for (int i = 0; i < kPinTries; ++i) {
    ROWTIDE_TRY(read_manifest());
    const uint32_t epoch = options_->commit != 0 ? options_->commit : manifest_.epoch;
    if (epoch == 0) return {};
    if (manifest_.find(epoch) == nullptr) {
      return {Code::kNotFound, path(0, kManifest) + " keeps no commit " + std::to_string(epoch)};
    }
    files_->share_byte(readers_, epoch);
    ROWTIDE_TRY(read_manifest());
    if (manifest_.find(epoch) != nullptr && (options_->commit != 0 || epoch == manifest_.epoch)) {
      view_ = epoch;
      return {};
    }
    files_->unshare_byte(readers_, epoch);
  }
  return {Code::kBusy, path(0, kManifest) + " changes too fast to be read"};
}

Status StoreFiles::open_logs(uint32_t segment_bytes, LogFiles* logs) {
  if (segment_bytes_ != 0 && manifest_.store == 0) {
    auto header = read_log_header(*files_, path(0, kLog));
    if (!header.ok()) return header.status();
    manifest_.store = header->store;  // it was made, but nothing was committed yet
  }
  if (manifest_.store == 0) manifest_.store = files_->random_number() | 1;
  for (size_t d = 0; d < options_->directories.size(); ++d) {
    ROWTIDE_TRY(make_log(d, segment_bytes));
    ROWTIDE_TRY(check_log(d));
    bool direct = false;
    auto file = files_->open(path(d, kLog), false, !options_->read_only, &direct);
    if (!file.ok()) return file.status();
    logs->add(
        {options_->directories[d].path, path(d, kLog), *file, options_->directories[d].bytes});
    if (!direct && direct_ && options_->log) {
      options_->log(options_->directories[d].path + " (" + file_system_ +
                    ") refuses O_DIRECT; the page cache is used");
    }
    direct_ = direct_ && direct;
  }
  return {};
}

// Makes a log that is missing.  One that a commit knows of must be there.
Status StoreFiles::make_log(size_t directory, uint32_t segment_bytes) {
  auto there = files_->open(path(directory, kLog), false, false, nullptr);
  if (there.ok()) {
    files_->close(*there);
    return {};
  }
  if (there.status().code() != Code::kNotFound) return there.status();
  if (manifest_.epoch != 0) return {Code::kCorrupt, path(directory, kLog) + " is missing"};
  if (options_->read_only) return there.status();
  std::vector<std::byte> page(kPageBytes);
  LogHeader header{.segment_bytes = segment_bytes,
                   .store = manifest_.store,
                   .directory = static_cast<uint32_t>(directory),
                   .directory_count = static_cast<uint32_t>(options_->directories.size())};
  header.checksum = header_checksum(header);
  std::memcpy(page.data(), &header, sizeof header);
  return files_->replace_file(options_->directories[directory].path, kLog,
                              [&](const auto& append) { return append(page); });
}

Status StoreFiles::check_log(size_t directory) {
  auto header = read_log_header(*files_, path(directory, kLog));
  if (!header.ok()) return header.status();
  if (header->store == manifest_.store && header->directory == directory &&
      header->directory_count == options_->directories.size()) {
    return {};
  }
  return {Code::kInvalid, path(directory, kLog) + " is directory " +
                              std::to_string(header->directory + 1) + " of " +
                              std::to_string(header->directory_count) +
                              " of a store, which is not what is asked for"};
}

Status StoreFiles::write_manifest(std::span<const std::byte> bytes) {
  return files_->replace_file(options_->directories[0].path, kManifest,
                              [&](const auto& append) { return append(bytes); });
}

Result<uint32_t> StoreFiles::epoch_on_disk() {
  ROWTIDE_TRY(files_->sync_directory(options_->directories[0].path));
  auto bytes = files_->read_file(path(0, kManifest));
  if (bytes.status().code() == Code::kNotFound) return 0u;
  if (!bytes.ok()) return bytes.status();
  auto manifest = decode_manifest(*bytes, path(0, kManifest));
  if (!manifest.ok()) return manifest.status();
  return manifest->epoch;
}

Status StoreFiles::write_arrays(uint32_t epoch, const ArraysFile& file) {
  return files_->write_file(path(0, arrays_name(epoch)), file.parts);
}

Result<std::vector<NamedArray>> StoreFiles::arrays_of(const KeptCommit& commit) {
  return read_arrays(*files_, path(0, arrays_name(commit.arrays_epoch)), commit);
}

void StoreFiles::remove_stale() {
  auto names = files_->list(options_->directories[0].path);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    bool used = !name.starts_with("arrays-") && !name.ends_with(FileSystem::kNewSuffix);
    for (const KeptCommit& commit : manifest_.kept) {
      used = used || name == arrays_name(commit.arrays_epoch);
    }
    // What cannot be removed now is tried again after the next commit.
    if (!used) (void)files_->remove(path(0, name)).ok();
  }
}

}  // namespace rowtide::storage
