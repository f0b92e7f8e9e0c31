#pragma once
// criteo_files — Criteo lines, files and readings for tests.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/reference/criteo_rows.h"
#include "trainer/criteo_reader.h"

namespace rowtide {

// A well-formed random line without its line end: negative and large numbers, missing values,
// short and long ids.
std::string random_criteo_line(uint64_t seed, bool has_label = true);
// `count` of them, each ended by `end`.
std::string random_criteo_text(uint64_t count, uint64_t seed, const std::string& end = "\n",
                               bool has_label = true);

// 26 tables named C1..C26.  So many rows by default that an id is its own row.
std::vector<ReaderTable> criteo_tables(uint64_t rows = uint64_t{1} << 32,
                                       IdMapping mapping = IdMapping::kModulo);

// `text` as one gzip member, made by zlib.
std::string gzipped(const std::string& text);

// All batches of a reader, as rows.
struct Reading {
  Status status;
  std::vector<CriteoRow> rows;
  std::vector<uint64_t> batch_samples, first_rows, skipped;  // of each batch, the empty one too
  ReaderStats stats;
  bool has_labels = false;
};
Reading read_all(CriteoReaderOptions options);
// Of one file with criteo_tables().
Reading read_all(const std::string& file);

// The real Criteo rows of $ROWTIDE_DATA as TSV lines (there: commas, a header and an id column).
// Nothing without the variable or the file.
std::optional<std::string> real_criteo_text();

inline bool operator==(const CriteoRow& a, const CriteoRow& b) {
  return a.label == b.label && a.dense == b.dense && a.ids == b.ids;
}

}  // namespace rowtide
