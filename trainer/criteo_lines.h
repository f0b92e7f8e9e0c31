#pragma once
// CriteoLines — Criteo lines to columns: a chunk of text in, labels, dense values and rows out.
//
// One pass finds all tabs and newlines, 64 bytes at a time; a second one reads the fields, eight
// characters at once, without a branch for the usual ones.  It only knows whether a line is well
// formed; criteo_error.h says what is wrong with one that is not.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "trainer/criteo_reader.h"
#include "trainer/text_chunks.h"

namespace rowtide {

inline constexpr uint32_t kDenseFields = 13, kIdFields = 26;

// Fields of a line: 40 with a label, 39 without.
constexpr uint32_t criteo_fields(bool has_label) { return has_label + kDenseFields + kIdFields; }

// The rows of one chunk.
struct ParsedRows {
  // A well-formed line has at least 38 tabs and a newline.
  static constexpr size_t kMaxRows = TextChunk::kBytes / 39 + 1;

  // Arrays of full size, of which only the touched pages cost memory.
  std::unique_ptr<float[]> labels = std::make_unique_for_overwrite<float[]>(kMaxRows);
  std::unique_ptr<float[]> dense = std::make_unique_for_overwrite<float[]>(kMaxRows * kDenseFields);
  std::unique_ptr<int64_t[]> ids =  // (26, kMaxRows)
      std::make_unique_for_overwrite<int64_t[]>(kMaxRows * kIdFields);
  uint32_t rows = 0;

  struct BadLine {
    uint32_t rows_before;   // well-formed lines of the chunk before it
    uint64_t line;          // in the file
    std::string_view text;  // in the chunk, without its line end
  };
  std::vector<BadLine> bad;
};

class CriteoLines {
 public:
  // REQUIRES: 26 tables, each with rows.
  CriteoLines(const std::vector<ReaderTable>& tables, DenseTransform transform, bool has_label,
              OnError on_error);

  // With OnError::kFail it stops behind the first malformed line.
  // Threads: one at a time.
  void parse(const TextChunk& chunk, ParsedRows& out);

 private:
  // Where the rows of a table are: `id` modulo its rows, or hashed first.
  struct RowMap {
    uint64_t rows;
    uint64_t reciprocal;  // 2^64 / rows, rounded up; for rows < 2^32
    bool hash, wide;
    int64_t operator()(uint32_t id) const;
  };

  bool parse_line(const char* text, const uint32_t* ends, uint32_t begin, ParsedRows& out) const;
  float dense_value(int32_t value) const;

  std::vector<RowMap> maps_;
  const float* log1p_;                  // of small values
  std::unique_ptr<uint32_t[]> index_ =  // (delimiters) of the chunk at hand
      std::make_unique_for_overwrite<uint32_t[]>(TextChunk::kBytes + 1);
  bool log_transform_, has_label_;
  OnError on_error_;
};

}  // namespace rowtide
