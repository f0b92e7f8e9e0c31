#pragma once
// StoreFiles — the directories of a store: what may lie in them, their locks, the manifest.
//
//     first directory   LOG  LOCK  READERS  MANIFEST  HINTS  arrays-EPOCH …
//     the others        LOG  LOCK
//
// READERS is never written: readers hold shared locks of single bytes of it.  Byte E > 0 says that
// commit E is in use; byte 0 that a reader scans the log and no segment may be freed just now.

#include <memory>
#include <string>
#include <vector>

#include "storage/cold_store.h"
#include "storage/hints.h"
#include "storage/log_files.h"
#include "storage/manifest.h"

namespace rowtide::storage {

class StoreFiles {
 public:
  explicit StoreFiles(FileSystem* files, const ColdStoreOptions* options)
      : files_(files), options_(options) {}
  ~StoreFiles();
  StoreFiles(const StoreFiles&) = delete;
  StoreFiles& operator=(const StoreFiles&) = delete;

  // Makes missing directories, refuses foreign files, takes the writer's lock or pins a commit,
  // and reads the manifest.  Errors: those of ColdStore::open.
  Status open();
  // Makes missing logs and opens them all.  `segment_bytes` as segment_bytes() says or chosen.
  Status open_logs(uint32_t segment_bytes, LogFiles* logs);

  Manifest& manifest() { return manifest_; }
  const Manifest& manifest() const { return manifest_; }
  // Of the store that is there; 0: none.
  uint32_t segment_bytes() const { return segment_bytes_; }
  uint32_t view() const { return view_; }  // the commit that was opened; 0: none
  bool direct() const { return direct_; }  // O_DIRECT is in use everywhere
  const std::string& file_system() const { return file_system_; }

  // Replaces the manifest on the disk; `bytes` are its encoding.  Errors: kIo, kNoSpace.
  Status write_manifest(std::span<const std::byte> bytes);
  // The epoch of the manifest that is there and stays, whatever the last attempt to replace it did.
  // Errors: kIo, kCorrupt.
  Result<uint32_t> epoch_on_disk();
  // Writes an arrays file and syncs it; it counts once the manifest names it.
  Status write_arrays(uint32_t epoch, const ArraysFile& file);
  Result<std::vector<NamedArray>> arrays_of(const KeptCommit& commit);
  // The caller's hints for the last commit.
  HintsFile hints() const {
    return {files_, options_->directories[0].path, manifest_.store, manifest_.epoch};
  }
  // Removes all files of arrays that the manifest does not name.
  void remove_stale();

  bool pinned(uint32_t epoch) { return files_->is_shared(readers_, epoch); }
  bool being_scanned() { return files_->is_shared(readers_, 0); }
  // A reader's: what the writer has done since.  Errors: kIo, kCorrupt (its commit is gone).
  Status read_manifest_again();
  // A reader's: from begin to end no segment is freed.
  void begin_scan() { files_->share_byte(readers_, 0); }
  void end_scan() { files_->unshare_byte(readers_, 0); }
  FileSystem& files() { return *files_; }

  static Result<StoreSummary> summary(FileSystem& files, const ColdStoreOptions& options);

  // What a store with these directories was made with; 0: there is none.  Errors: kFormat.
  static Result<uint32_t> segment_bytes_in(FileSystem& files, const ColdStoreOptions& options);

 private:
  std::string path(size_t directory, const std::string& name) const {
    return options_->directories[directory].path + "/" + name;
  }
  Status refuse_foreign(size_t directory);
  Status lock_and_make();
  Status pin();
  Status read_manifest();
  Status check_log(size_t directory);
  Status make_log(size_t directory, uint32_t segment_bytes);

  FileSystem* files_;
  const ColdStoreOptions* options_;
  std::vector<int> locks_;
  int readers_ = -1;
  Manifest manifest_;
  uint32_t segment_bytes_ = 0, view_ = 0;
  bool direct_ = true;
  std::string file_system_;
};

}  // namespace rowtide::storage
