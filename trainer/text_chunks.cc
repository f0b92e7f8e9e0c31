#include "trainer/text_chunks.h"

#include <algorithm>
#include <cstring>

namespace rowtide {

TextChunks::TextChunks(std::vector<std::string> files) : files_(std::move(files)) {
  carried_.reserve(TextChunk::kBytes);
}

Status TextChunks::next(TextChunk& chunk) {
  chunk.size = chunk.lines = 0;
  while (chunk.size == 0 && file_ < files_.size()) {
    if (!error_.ok()) return error_;
    if (!source_) {
      auto source = ByteSource::open(files_[file_]);
      if (!source.ok()) return error_ = source.status();
      source_ = std::move(source.value());
    }
    chunk.file = file_;
    chunk.first_line = next_line_;
    error_ = fill(chunk);
    if (in_long_line_) pass_over_long_line(chunk);
    cut_at_newline(chunk);
    const bool empty_file = file_ended_ && chunk.size == 0 && next_line_ == 1 && error_.ok();
    if (empty_file) return error_ = {Code::kInvalid, files_[file_] + ": has no text"};
    if (file_ended_ && error_.ok()) close_file();
  }
  std::memset(chunk.text.get() + chunk.size, 0, TextChunk::kPadding);
  return {};
}

// Takes what was carried and reads until the chunk is full, the file ends or an error comes.
Status TextChunks::fill(TextChunk& chunk) {
  std::copy(carried_.begin(), carried_.end(), chunk.text.get());
  chunk.size = carried_.size();
  carried_.clear();
  while (chunk.size < TextChunk::kBytes && !file_ended_) {
    auto size = source_->read({chunk.text.get() + chunk.size, TextChunk::kBytes - chunk.size});
    if (!size.ok()) return size.status();
    file_ended_ = *size == 0;
    chunk.size += *size;
  }
  return {};
}

void TextChunks::pass_over_long_line(TextChunk& chunk) {
  char* text = chunk.text.get();
  const void* newline = std::memchr(text, '\n', chunk.size);
  in_long_line_ = newline == nullptr;
  const size_t passed = in_long_line_
                            ? chunk.size
                            : static_cast<size_t>(static_cast<const char*>(newline) - text) + 1;
  chunk.size -= passed;
  std::memmove(text, text + passed, chunk.size);
}

// Leaves whole lines in the chunk and carries the rest over.
void TextChunks::cut_at_newline(TextChunk& chunk) {
  char* text = chunk.text.get();
  const void* newline = chunk.size == 0 ? nullptr : ::memrchr(text, '\n', chunk.size);
  size_t whole = newline ? static_cast<size_t>(static_cast<const char*>(newline) - text) + 1 : 0;
  if (!error_.ok()) {
    chunk.size = whole;  // the line that the error cut is not read
  } else if (whole < chunk.size) {
    in_long_line_ = whole == 0 && chunk.size == TextChunk::kBytes && !file_ended_;
    if (in_long_line_ || file_ended_) {
      text[chunk.size++] = '\n';
      whole = chunk.size;
    }
    carried_.assign(text + whole, text + chunk.size);
    chunk.size = whole;
  }
  chunk.lines = count_newlines(text, chunk.size);
  next_line_ += chunk.lines;
}

void TextChunks::close_file() {
  done_bytes_ += source_->file_bytes();
  source_.reset();
  file_ended_ = in_long_line_ = false;
  next_line_ = 1;
  ++file_;
}

uint64_t count_newlines(const char* text, size_t size) {
  uint64_t count = 0;
  while (size > 0) {
    // Sums of bytes: a vector loop that cannot overflow within 255 rounds.
    const size_t block = std::min<size_t>(size, 255 * 16);
    uint8_t sums[16] = {};
    size_t i = 0;
    for (; i + 16 <= block; i += 16) {
      for (size_t lane = 0; lane < 16; ++lane) sums[lane] += text[i + lane] == '\n';
    }
    for (; i < block; ++i) count += text[i] == '\n';
    for (uint8_t sum : sums) count += sum;
    text += block;
    size -= block;
  }
  return count;
}

}  // namespace rowtide
