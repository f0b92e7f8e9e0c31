#pragma once
// FileSystem — the few things that the cold store asks of files beside queued I/O.
//
// All calls wait.  What must survive a crash is said by name: write_file() syncs the file it wrote,
// a rename or a new file counts once sync_directory() has returned.  posix_files.cc is the real
// one; tests/support/fake_disk.h forgets, tears and fills up. Errors: kIo naming the path, kNoSpace
// where it says so.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace rowtide::storage {

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  static constexpr const char* kNewSuffix = ".new";  // of a file that is to replace another

  virtual Status make_directory(const std::string& path) = 0;  // parents too; fine if it is there
  // The names in a directory, sorted.  kNotFound: there is no such directory.
  virtual Result<std::vector<std::string>> list(const std::string& path) = 0;
  // Named as users know it: "ext4".
  virtual std::string type_of(const std::string& path) = 0;

  // Opens a file; unless `direct` is null with O_DIRECT where the file system takes it (`direct`
  // then says whether).  kNotFound: it is not there, and `create` is false.
  virtual Result<int> open(const std::string& path, bool create, bool write, bool* direct) = 0;
  virtual void close(int file) = 0;
  // The whole range, or an error.
  virtual Status read_at(int file, uint64_t offset, std::span<std::byte> out) = 0;
  virtual Result<uint64_t> size(int file) = 0;
  // Makes room on the disk, so that later writes of the range cannot find it full.  kNoSpace.
  virtual Status allocate(int file, uint64_t offset, uint64_t bytes) = 0;
  // Gives the range back to the disk; it reads as zeros.
  virtual Status release(int file, uint64_t offset, uint64_t bytes) = 0;

  virtual Result<std::vector<std::byte>> read_file(const std::string& path) = 0;  // kNotFound
  // Makes a new file of all that `produce` appends, piece by piece, and syncs it.  kNoSpace, or the
  // error of produce.
  using Append = std::function<Status(std::span<const std::byte>)>;
  virtual Status write_file(const std::string& path,
                            const std::function<Status(const Append&)>& produce) = 0;
  // The same of parts, back to back.
  Status write_file(const std::string& path, std::span<const std::span<const std::byte>> parts) {
    return write_file(path, [&](const Append& append) -> Status {
      for (const auto& part : parts) ROWTIDE_TRY(append(part));
      return {};
    });
  }
  // Writes the file beside it as NAME.new and puts it in the place of NAME, whole or not at all.
  Status replace_file(const std::string& directory, const std::string& name,
                      const std::function<Status(const Append&)>& produce) {
    const std::string path = directory + "/" + name;
    ROWTIDE_TRY(write_file(path + kNewSuffix, produce));
    ROWTIDE_TRY(rename(path + kNewSuffix, path));
    return sync_directory(directory);
  }
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status remove(const std::string& path) = 0;
  virtual Status sync_directory(const std::string& path) = 0;

  // Takes the one writer's lock and leaves this process's pid in the file; close() lets it go, and
  // so does the death of the process.  kLocked naming the pid that holds it.
  virtual Result<int> lock_writer(const std::string& path) = 0;
  // Shared locks of single bytes of a file opened by open(): how a reader says what it uses.
  // False: another holds it exclusively.
  virtual bool share_byte(int file, uint64_t byte) = 0;
  virtual void unshare_byte(int file, uint64_t byte) = 0;
  virtual bool is_shared(int file, uint64_t byte) = 0;  // by another

  virtual uint64_t random_number() = 0;  // differs for every call and every process
};

std::unique_ptr<FileSystem> posix_file_system();

}  // namespace rowtide::storage
