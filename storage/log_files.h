#pragma once
// LogFiles — the log file of each directory, opened; and how to name a place in them for people.

#include <string>
#include <vector>

#include "storage/file_system.h"
#include "storage/layout.h"

namespace rowtide::storage {

struct LogFile {
  std::string directory;  // its path
  std::string path;       // of the log
  int file = -1;
  uint64_t bytes = 0;  // the directory's budget
};

class LogFiles {
 public:
  LogFiles(FileSystem* files, const Layout* layout) : files_(files), layout_(layout) {}
  ~LogFiles() {
    for (const LogFile& log : logs_) files_->close(log.file);
  }
  LogFiles(const LogFiles&) = delete;
  LogFiles& operator=(const LogFiles&) = delete;

  void add(LogFile log) { logs_.push_back(std::move(log)); }
  size_t count() const { return logs_.size(); }
  const LogFile& operator[](size_t directory) const { return logs_[directory]; }

  // A request for a range of a segment.
  IoRequest request(IoKind kind, uint32_t segment, uint32_t offset, std::byte* buffer,
                    uint32_t bytes, uint64_t ticket) const {
    return {kind,
            logs_[layout_->directory_of(segment)].file,
            layout_->file_offset(segment) + offset,
            buffer,
            bytes,
            ticket};
  }
  // "DIR/LOG, offset 1234"
  std::string name(uint32_t segment, uint32_t offset) const {
    return logs_[layout_->directory_of(segment)].path + ", offset " +
           std::to_string(layout_->file_offset(segment) + offset);
  }
  // What a failed transfer is: kNoSpace or kIo, and where.
  Status error(const char* what, uint32_t segment, uint32_t offset, uint32_t bytes,
               int64_t result) const;

  FileSystem& files() const { return *files_; }

 private:
  FileSystem* files_;
  const Layout* layout_;
  std::vector<LogFile> logs_;
};

}  // namespace rowtide::storage
