#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "runtime/base/salt.h"
#include "storage/file_system.h"

namespace rowtide::storage {
namespace {

Status failed(const std::string& what, const std::string& path, int error) {
  const Code code = error == ENOSPC || error == EDQUOT ? Code::kNoSpace
                    : error == ENOENT                  ? Code::kNotFound
                                                       : Code::kIo;
  return {code, what + " " + path + ": " + std::strerror(error)};
}

// A file descriptor that closes itself.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

Status write_all(int fd, const std::string& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed("cannot write", path, n < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

struct flock byte_lock(short type, uint64_t byte) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = 1;
  return lock;
}

// A call that a signal interrupts is made again.
template <typename Call>
int uninterrupted(Call&& call) {
  int result;
  do {
    result = call();
  } while (result != 0 && errno == EINTR);
  return result;
}

class PosixFileSystem final : public FileSystem {
 public:
  Status make_directory(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error && !std::filesystem::is_directory(path)) {
      return failed("cannot make the directory", path, error.value());
    }
    return {};
  }

  Result<std::vector<std::string>> list(const std::string& path) override {
    std::error_code error;
    std::vector<std::string> names;
    for (std::filesystem::directory_iterator it(path, error), end; !error && it != end;
         it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    if (error) return failed("cannot list", path, error.value());
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string type_of(const std::string& path) override {
    struct statfs info {};
    if (::statfs(path.c_str(), &info) != 0) return "unknown";
    switch (static_cast<uint64_t>(info.f_type) & 0xFFFFFFFFu) {
      case 0xEF53:
        return "ext4";
      case 0x58465342:
        return "xfs";
      case 0x9123683E:
        return "btrfs";
      case 0x01021994:
        return "tmpfs";
      case 0x794C7630:
        return "overlay";
      case 0x6969:
        return "nfs";
      case 0x2FC12FC1:
        return "zfs";
      case 0xF2F52010:
        return "f2fs";
      default:
        return "type " + std::to_string(info.f_type);
    }
  }

  Result<int> open(const std::string& path, bool create, bool write, bool* direct) override {
    const int flags = (write ? O_RDWR : O_RDONLY) | (create ? O_CREAT : 0) | O_CLOEXEC;
    int fd = direct ? ::open(path.c_str(), flags | O_DIRECT, 0644) : -1;
    if (direct) *direct = fd >= 0;
    if (fd < 0 && (!direct || errno == EINVAL)) fd = ::open(path.c_str(), flags, 0644);
    if (fd < 0) return failed("cannot open", path, errno);
    return fd;
  }

  void close(int file) override { ::close(file); }

  Status read_at(int file, uint64_t offset, std::span<std::byte> out) override {
    while (!out.empty()) {
      const ssize_t n = ::pread(file, out.data(), out.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return failed("cannot read at", std::to_string(offset), n < 0 ? errno : EIO);
      offset += static_cast<uint64_t>(n);
      out = out.subspan(static_cast<size_t>(n));
    }
    return {};
  }

  Result<uint64_t> size(int file) override {
    struct stat info {};
    if (::fstat(file, &info) != 0) return failed("cannot stat", "file", errno);
    return static_cast<uint64_t>(info.st_size);
  }

  Status allocate(int file, uint64_t offset, uint64_t bytes) override {
    const auto from = static_cast<off_t>(offset), length = static_cast<off_t>(bytes);
    if (uninterrupted([&] { return ::fallocate(file, 0, from, length); }) == 0) return {};
    if (errno != EOPNOTSUPP) return failed("cannot allocate", std::to_string(bytes), errno);
    if (auto now = size(file); now.ok() && *now >= offset + bytes) return {};
    if (uninterrupted([&] { return ::ftruncate(file, from + length); }) == 0) return {};
    return failed("cannot grow to", std::to_string(offset + bytes), errno);
  }

  Status release(int file, uint64_t offset, uint64_t bytes) override {
    const auto from = static_cast<off_t>(offset), length = static_cast<off_t>(bytes);
    const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    if (uninterrupted([&] { return ::fallocate(file, punch, from, length); }) == 0) return {};
    return failed("cannot give back", std::to_string(bytes) + " bytes", errno);
  }

  Result<std::vector<std::byte>> read_file(const std::string& path) override {
    const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (file.fd < 0) return failed("cannot open", path, errno);
    struct stat info {};
    if (::fstat(file.fd, &info) != 0) return failed("cannot stat", path, errno);
    std::vector<std::byte> bytes(static_cast<size_t>(info.st_size));
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t n = ::read(file.fd, bytes.data() + done, bytes.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return failed("cannot read", path, n < 0 ? errno : EIO);
      done += static_cast<size_t>(n);
    }
    return bytes;
  }

  using FileSystem::write_file;
  Status write_file(const std::string& path,
                    const std::function<Status(const Append&)>& produce) override {
    const Descriptor file{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    if (file.fd < 0) return failed("cannot make", path, errno);
    ROWTIDE_TRY(
        produce([&](std::span<const std::byte> part) { return write_all(file.fd, path, part); }));
    if (uninterrupted([&] { return ::fsync(file.fd); }) != 0)
      return failed("cannot sync", path, errno);
    return {};
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) == 0) return {};
    return failed("cannot rename " + from + " to", to, errno);
  }

  Status remove(const std::string& path) override {
    if (::unlink(path.c_str()) == 0) return {};
    return failed("cannot remove", path, errno);
  }

  Status sync_directory(const std::string& path) override {
    const Descriptor directory{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (directory.fd < 0) return failed("cannot open", path, errno);
    if (uninterrupted([&] { return ::fsync(directory.fd); }) != 0)
      return failed("cannot sync the directory", path, errno);
    return {};
  }

  Result<int> lock_writer(const std::string& path) override {
    Descriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)};
    if (file.fd < 0) return failed("cannot open", path, errno);
    if (::flock(file.fd, LOCK_EX | LOCK_NB) != 0) {
      char pid[24] = {};
      const bool known = ::pread(file.fd, pid, sizeof pid - 1, 0) > 0;
      return {Code::kLocked, path + ": process " + (known ? pid : "?") + " writes here"};
    }
    const std::string pid = std::to_string(::getpid());
    if (::ftruncate(file.fd, 0) != 0) return failed("cannot write", path, errno);
    ROWTIDE_TRY(write_all(file.fd, path, std::as_bytes(std::span(pid))));
    return std::exchange(file.fd, -1);
  }

  bool share_byte(int file, uint64_t byte) override {
    struct flock lock = byte_lock(F_RDLCK, byte);
    return ::fcntl(file, F_OFD_SETLK, &lock) == 0;
  }
  void unshare_byte(int file, uint64_t byte) override {
    struct flock lock = byte_lock(F_UNLCK, byte);
    ::fcntl(file, F_OFD_SETLK, &lock);
  }
  bool is_shared(int file, uint64_t byte) override {
    struct flock lock = byte_lock(F_WRLCK, byte);
    return ::fcntl(file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
  }

  uint64_t random_number() override { return rowtide::random_number(); }
};

}  // namespace

std::unique_ptr<FileSystem> posix_file_system() { return std::make_unique<PosixFileSystem>(); }

}  // namespace rowtide::storage
