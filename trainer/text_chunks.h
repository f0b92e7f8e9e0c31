#pragma once
// TextChunks — the text of many files, cut into chunks of whole lines.
//
// A chunk never crosses files.  A last line without a newline is given one.  A line that fills a
// whole chunk is cut there and its rest passed over: it still counts as one line, and is malformed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "trainer/byte_source.h"

namespace rowtide {

struct TextChunk {
  static constexpr size_t kBytes = 256 << 10;  // its lines and their columns stay in a core's cache
  static constexpr size_t kPadding = 64;       // zeros behind the text, for readers of whole words

  std::unique_ptr<char[]> text = std::make_unique_for_overwrite<char[]>(kBytes + 1 + kPadding);
  size_t size = 0;          // each line ends in '\n'
  size_t file = 0;          // number of its file
  uint64_t first_line = 0;  // number of its first line in that file, from 1
  uint64_t lines = 0;
};

class TextChunks {
 public:
  // REQUIRES: check_readable() was ok for each file.
  explicit TextChunks(std::vector<std::string> files);

  // The next chunk; size = 0 at the end of all files.  What could be read before an error comes
  // first.
  // Errors: of ByteSource; kInvalid (a file without any text).
  Status next(TextChunk& chunk);

  uint64_t file_bytes() const { return done_bytes_ + (source_ ? source_->file_bytes() : 0); }
  const std::string& file(size_t number) const { return files_[number]; }

 private:
  Status fill(TextChunk& chunk);
  void pass_over_long_line(TextChunk& chunk);
  void cut_at_newline(TextChunk& chunk);
  void close_file();

  std::vector<std::string> files_;
  size_t file_ = 0;
  std::unique_ptr<ByteSource> source_;
  std::vector<char> carried_;  // the beginning of the next line
  Status error_;               // comes after the text before it
  uint64_t next_line_ = 1;
  uint64_t done_bytes_ = 0;  // of files before this one
  bool file_ended_ = false, in_long_line_ = false;
};

// The number of '\n' in `text`.
uint64_t count_newlines(const char* text, size_t size);

}  // namespace rowtide
