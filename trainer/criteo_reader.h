#pragma once
// CriteoReader — batches from Criteo TSV files, plain or gzip (several members joined too).
//
// 40 fields a line: label, 13 integers (may be negative or empty), 26 hex ids of 32 bits (may be
// empty); 39 without a label (test.txt).  CRLF and a missing last newline are read.  Reading,
// decompressing and parsing run on threads of their own behind bounded queues; batches come in
// file order and the last one may be short.  The same batches whatever the number of threads.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "trainer/click_batch.h"

namespace rowtide {

enum class IdMapping { kModulo, kHash };      // kHash: xxhash of (id, seed 0) modulo rows
enum class DenseTransform { kLog1p, kNone };  // kLog1p: ln(max(x, 0) + 1); missing is 0
enum class OnError { kFail, kSkip };

struct ReaderTable {
  std::string name;  // "C1", for messages
  uint64_t rows = 0;
  IdMapping mapping = IdMapping::kModulo;  // of the 32-bit id as unsigned; missing is id 0
};

struct CriteoReaderOptions {
  std::vector<std::string> files;   // in this order; ".gz" is decompressed (by content, not name)
  std::vector<ReaderTable> tables;  // (26)
  uint64_t batch = 2048;            // samples
  uint64_t first_row = 0;           // rows to pass over: where a resumed run goes on
  uint64_t end_row = ~uint64_t{0};  // the first row that is not read any more
  DenseTransform dense_transform = DenseTransform::kLog1p;
  OnError on_error = OnError::kFail;
  int threads = 1;             // that parse; 0: one for each core
  uint32_t batches_ahead = 4;  // queue bound
  std::function<void(const std::string&)> log;
};

struct ReaderStats {
  uint64_t rows = 0, bytes = 0, file_bytes = 0;  // parsed; decompressed; read of the files
  uint64_t total_file_bytes = 0;                 // of all files: file_bytes / this is the progress
  uint64_t skipped_lines = 0;
  double waited_s = 0;  // next() waited for the reader
};

class CriteoReader {
 public:
  // Errors: kNotFound (a missing file), kInvalid (a directory, no permission, options; an empty
  // file), kFormat (the first line, with what was expected).
  static Result<std::unique_ptr<CriteoReader>> open(CriteoReaderOptions options);
  virtual ~CriteoReader() = default;

  // Bytes that a reader with these options holds, for plans; lines of the usual length assumed.
  static uint64_t predict_bytes(const CriteoReaderOptions& options);

  // The next batch; samples = 0 at the end.  `batch` keeps its capacities.
  // Errors: kFormat (file, line, column, what was expected and what is there), kIo, kCorrupt (a cut
  // or broken gzip).
  virtual Status next(ClickBatch& batch) = 0;
  virtual bool has_labels() const = 0;
  virtual ReaderStats stats() const = 0;
};

// The number of rows of options.files, whatever first_row and end_row, as a reader numbers them:
// with kFail by counting lines, as fast as the decompressor; with kSkip by parsing them.
// Errors: those of open, and of next except for malformed lines.
Result<uint64_t> count_criteo_rows(CriteoReaderOptions options);

}  // namespace rowtide
