#include "trainer/byte_source.h"

#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "trainer/vector_state.h"

namespace rowtide {
namespace {

constexpr size_t kInputBytes = 256 << 10;  // of the compressed file at a time
constexpr uint8_t kMagic[2] = {0x1f, 0x8b};

Status errno_status(const std::string& path, const std::string& what) {
  const int error = errno;
  const Code code = error == ENOENT || error == ENOTDIR                   ? Code::kNotFound
                    : error == EACCES || error == EPERM || error == ELOOP ? Code::kInvalid
                                                                          : Code::kIo;
  return {code, path + ": " + what + ": " + std::strerror(error)};
}

// A file descriptor that knows how far it has been read.
class InputFile {
 public:
  InputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  InputFile(InputFile&& other) noexcept
      : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), offset_(other.offset_) {}
  ~InputFile() {
    if (fd_ >= 0) ::close(fd_);
  }

  // Reads until `out` is full, the file ends, or an error comes; what came before it is read first.
  Result<size_t> read(std::span<char> out) {
    size_t size = 0;
    while (size < out.size()) {
      const ssize_t n = ::read(fd_, out.data() + size, out.size() - size);
      if (n < 0 && errno == EINTR) continue;
      if (n == 0 || (n < 0 && size > 0)) break;
      if (n < 0) return errno_status(path_, "cannot be read at byte " + std::to_string(offset_));
      size += static_cast<size_t>(n);
      offset_ += static_cast<uint64_t>(n);
    }
    return size;
  }

  const std::string& path() const { return path_; }
  uint64_t offset() const { return offset_; }

 private:
  std::string path_;
  int fd_;
  uint64_t offset_ = 0;
};

class PlainSource final : public ByteSource {
 public:
  PlainSource(InputFile file, std::span<const char> first)
      : file_(std::move(file)), first_(first.begin(), first.end()) {}

  Result<size_t> read(std::span<char> out) override {
    if (first_.empty()) return file_.read(out);
    const size_t size = std::min(out.size(), first_.size());
    std::copy_n(first_.begin(), size, out.begin());
    first_.erase(first_.begin(), first_.begin() + static_cast<ptrdiff_t>(size));
    return size;
  }
  uint64_t file_bytes() const override { return file_.offset(); }

 private:
  InputFile file_;
  std::vector<char> first_;  // what was read to tell the kind of file
};

class GzipSource final : public ByteSource {
 public:
  GzipSource(InputFile file, std::span<const char> first) : file_(std::move(file)) {
    std::copy(first.begin(), first.end(), input_.begin());
    isal_inflate_init(&state_);
    state_.crc_flag = ISAL_GZIP;
    state_.next_in = input_bytes();
    state_.avail_in = static_cast<uint32_t>(first.size());
  }

  Result<size_t> read(std::span<char> out) override {
    state_.next_out = reinterpret_cast<uint8_t*>(out.data());
    state_.avail_out = static_cast<uint32_t>(out.size());
    while (state_.avail_out > 0 && !ended_ && error_.ok()) error_ = advance();
    const size_t size = out.size() - state_.avail_out;
    if (size == 0 && !error_.ok()) return error_;
    return size;
  }
  uint64_t file_bytes() const override { return file_.offset(); }

 private:
  uint8_t* input_bytes() { return reinterpret_cast<uint8_t*>(input_.data()); }

  // Inflates until the input or the output is used up, or a member ends.
  Status advance() {
    if (state_.avail_in == 0 && !input_ended_) {
      auto size = file_.read(input_);
      if (!size.ok()) return size.status();
      state_.next_in = input_bytes();
      state_.avail_in = static_cast<uint32_t>(*size);
      input_ended_ = *size == 0;
    }
    if (!in_member_) {
      if (state_.avail_in == 0) {
        ended_ = input_ended_;
        return {};
      }
      isal_inflate_reset(&state_);
      in_member_ = true;
    }
    const uint32_t in_before = state_.avail_in, out_before = state_.avail_out;
    const int code = isal_inflate(&state_);
    clear_vector_state();
    if (code < 0) return broken(code);
    if (state_.block_state == ISAL_BLOCK_FINISH) {
      in_member_ = false;
    } else if (input_ended_ && state_.avail_in == in_before && state_.avail_out == out_before) {
      return {Code::kCorrupt, file_.path() + ": the gzip file is cut: it ends at byte " +
                                  std::to_string(file_.offset()) + ", within a member"};
    }
    return {};
  }

  Status broken(int code) const {
    const char* what = code == ISAL_INCORRECT_CHECKSUM   ? "a wrong checksum"
                       : code == ISAL_INVALID_WRAPPER    ? "no gzip header where one must be"
                       : code == ISAL_UNSUPPORTED_METHOD ? "an unknown compression method"
                                                         : "broken deflate data";
    return {Code::kCorrupt, file_.path() + ": the gzip file has " + what + " before byte " +
                                std::to_string(file_.offset() - state_.avail_in)};
  }

  InputFile file_;
  std::vector<char> input_ = std::vector<char>(kInputBytes);
  inflate_state state_;
  Status error_;
  bool input_ended_ = false, in_member_ = true, ended_ = false;
};

}  // namespace

Result<uint64_t> check_readable(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return errno_status(path, "cannot be opened");
  if (S_ISDIR(info.st_mode)) return {Code::kInvalid, path + ": is a directory, not a file"};
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0) {
    return errno_status(path, "cannot be read");
  }
  if (!S_ISREG(info.st_mode)) return uint64_t{0};
  if (info.st_size == 0) return {Code::kInvalid, path + ": is empty"};
  return static_cast<uint64_t>(info.st_size);
}

Result<std::unique_ptr<ByteSource>> ByteSource::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno_status(path, "cannot be opened");
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  InputFile file(path, fd);
  char first[sizeof kMagic];
  auto size = file.read(first);
  if (!size.ok()) return size.status();
  const std::span<const char> bytes(first, *size);
  if (*size == sizeof kMagic && std::memcmp(first, kMagic, sizeof kMagic) == 0) {
    return std::unique_ptr<ByteSource>(std::make_unique<GzipSource>(std::move(file), bytes));
  }
  return std::unique_ptr<ByteSource>(std::make_unique<PlainSource>(std::move(file), bytes));
}

}  // namespace rowtide
