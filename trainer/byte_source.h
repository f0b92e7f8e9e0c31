#pragma once
// ByteSource — the bytes of one file from first to last, decompressed if the file is gzip.
//
// Whether it is gzip is told by its first two bytes, not by its name.  Several gzip members joined
// are one text.  It knows nothing of lines.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/status.h"

namespace rowtide {

class ByteSource {
 public:
  // Errors: kNotFound, kInvalid (a directory, no permission), kIo.
  static Result<std::unique_ptr<ByteSource>> open(const std::string& path);
  virtual ~ByteSource() = default;

  // Reads at least one byte into `out` and says how many; 0 at the end.  What could be read before
  // an error is handed out first.
  // Errors: kIo, kCorrupt (a cut or broken gzip); both name the file and the offset in it.
  virtual Result<size_t> read(std::span<char> out) = 0;

  // Read of the file so far.
  virtual uint64_t file_bytes() const = 0;
};

// Errors as ByteSource::open has them, and kInvalid for an empty file; returns the file's size, 0
// if it is a pipe.  Opens nothing.
Result<uint64_t> check_readable(const std::string& path);

}  // namespace rowtide
