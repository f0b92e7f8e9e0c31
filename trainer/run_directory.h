#pragma once
// RunDirectory — where a run keeps what it leaves behind.
//
//     config.toml     the resolved configuration
//     metrics.jsonl   what happened, a JSON object a line (README.md)
//     run.log         what was said, with the time
//     report.html     both as a page
//     store/          the rows on SSD and the commits, unless tiers.ssd says otherwise
//     ID              32 random hex digits, also in each commit: which run this is
//     LOCK            held by the process that trains here; its pid

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "trainer/config.h"

namespace rowtide {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

class RunDirectory {
 public:
  // Makes the directory with config.toml, or with `resume` goes on in it; then nothing of the run
  // changes before keep().  Nobody else trains here while the result lives.
  // Errors: kInvalid (not empty and not `resume`, with that hint; foreign files; a change of the
  // configuration that a resumed run may not have: key, old and new), kLocked (pid), kIo, kNoSpace.
  static Result<RunDirectory> prepare(const Config& config, bool resume);
  // Of a run that was new and did not begin: takes back what prepare() made and what came into it.
  // REQUIRES: no file in the directory is in use.
  void withdraw();
  // For looking at a run: its configuration.  Errors: kNotFound (no run is there), kInvalid.
  static Result<Config> read_config(const std::string& directory);

  // For telling apart the commits of two runs.  Errors: kNotFound.
  static Result<std::string> read_id(const std::string& directory);

  // Of a store without a commit: that it is where the run's was, so that a resume that looks in the
  // wrong place does not begin again over what is there.  Errors: kInvalid naming the old place.
  Status check_moved(const Config& config) const;
  // Writes config.toml of a run that goes on, once it is sure that it does: one that is refused
  // for its new tiers must still open with its old ones.  Errors: kIo, kNoSpace.
  Status keep(const Config& config) const;

  const std::string& path() const { return path_; }
  std::string file(const char* name) const { return path_ + "/" + name; }
  bool resumed() const { return resumed_; }  // a run was there

 private:
  Status lock();

  std::string path_;
  bool resumed_ = false;
  std::vector<std::string> made_;  // directories, the deepest first
  std::unique_ptr<std::FILE, CloseFile> lock_;
};

// Appends lines with the time of day to a file; those written before open() come when it opens.
// Threads: any.  A line that cannot be written is lost: the log is a hint, metrics.jsonl is the
// record.
class RunLog {
 public:
  void open(const std::string& path);
  void write(const std::string& line);

 private:
  std::mutex mutex_;
  std::vector<std::string> early_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  bool opened_ = false;
};

// Writes a file whole or not at all.  Errors: kIo, kNoSpace.
Status replace_file(const std::string& path, const std::string& content);

}  // namespace rowtide
