#pragma once
// RunDirectory — where a run keeps what it leaves behind.
//
//     config.toml     the resolved configuration
//     metrics.jsonl   what happened, a JSON object a line (README.md)
//     run.log         what was said, with the time
//     report.html     both as a page
//     store/          the rows on SSD and the commits, unless tiers.ssd says otherwise

#include <cstdio>
#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "trainer/config.h"

namespace rowtide {

class RunDirectory {
 public:
  // Makes the directory, or with `resume` goes on in it, and writes config.toml.
  // Errors: kInvalid (not empty and not `resume`, with that hint; foreign files; a change of the
  // configuration that a resumed run may not have: key, old and new), kIo.
  static Result<RunDirectory> prepare(const Config& config, bool resume);
  // For looking at a run: its configuration.  Errors: kNotFound (no run is there), kInvalid.
  static Result<Config> read_config(const std::string& directory);

  const std::string& path() const { return path_; }
  std::string file(const char* name) const { return path_ + "/" + name; }
  bool resumed() const { return resumed_; }  // a run was there

 private:
  std::string path_;
  bool resumed_ = false;
};

// Appends lines with the time of day to a file.  Threads: any.  A line that cannot be written is
// lost: the log is a hint, metrics.jsonl is the record.
class RunLog {
 public:
  explicit RunLog(const std::string& path);
  void write(const std::string& line);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
};

// Writes a file whole or not at all.  Errors: kIo, kNoSpace.
Status replace_file(const std::string& path, const std::string& content);

}  // namespace rowtide
