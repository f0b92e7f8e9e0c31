#include "trainer/run_directory.h"

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <utility>

#include "runtime/base/salt.h"
#include "trainer/config_resolve.h"
#include "trainer/config_toml.h"
#include "trainer/disk_error.h"

namespace rowtide {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = "LOCK";
constexpr const char* kId = "ID";

// Whether the directory holds a run; empty ones, and those not there, do not.
Result<bool> holds_run(const std::string& path) {
  std::error_code error;
  if (fs::exists(fs::path(path) / "config.toml", error)) return true;
  if (!fs::exists(path, error)) return false;
  if (!fs::is_directory(path, error)) return {Code::kInvalid, path + " is no directory"};
  fs::directory_iterator entry(path, error);
  if (error) return disk_error(path, error.value());
  for (; entry != fs::directory_iterator(); entry.increment(error)) {
    const fs::path name = entry->path().filename();
    if (name == kLock || name == kId) continue;  // of a run that died before it began
    return {Code::kInvalid, path + " holds files that are no run: name another run.directory"};
  }
  return false;
}

// The directory and those above it that are not there.
std::vector<std::string> missing_directories(fs::path path) {
  std::vector<std::string> missing;
  std::error_code error;
  for (; !path.empty() && !fs::exists(path, error); path = path.parent_path()) {
    missing.push_back(path);
  }
  return missing;
}

std::string random_id() {
  char id[33];
  std::snprintf(id, sizeof id, "%016llx%016llx", static_cast<unsigned long long>(random_number()),
                static_cast<unsigned long long>(random_number()));
  return id;
}

Status check_old_config(const std::string& directory, const Config& config) {
  const auto before = RunDirectory::read_config(directory);
  if (!before.ok()) return before.status();
  if (Status status = check_resume(*before, config); !status.ok()) {
    return {status.code(), directory + ": " + status.message()};
  }
  return {};
}

}  // namespace

Result<RunDirectory> RunDirectory::prepare(const Config& config, bool resume) {
  RunDirectory run;
  run.path_ = config.run.directory;
  const auto there = holds_run(run.path_);
  if (!there.ok()) return there.status();
  run.resumed_ = *there;
  if (run.resumed_ && !resume) {
    return {Code::kInvalid, run.path_ + " holds a run: go on with it by --resume, or name " +
                                "another by --set run.directory=NAME"};
  }
  if (run.resumed_) ROWTIDE_TRY(check_old_config(run.path_, config));
  run.made_ = missing_directories(run.path_);
  std::error_code error;
  fs::create_directories(run.path_, error);
  if (error) return disk_error("cannot make " + run.path_, error.value());
  ROWTIDE_TRY(run.lock());
  if (run.resumed_) return run;
  ROWTIDE_TRY(replace_file(run.file(kId), random_id()));
  ROWTIDE_TRY(run.keep(config));
  return run;
}

// What was there before was empty, so that all in it is of this run.
void RunDirectory::withdraw() {
  ROWTIDE_CHECK(!resumed_);
  std::error_code ignored;  // what cannot be removed stays
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(path_, ignored)) entries.push_back(entry);
  for (const fs::path& entry : entries) fs::remove_all(entry, ignored);
  for (const std::string& directory : made_) fs::remove(directory, ignored);
}

Status RunDirectory::lock() {
  const std::string path = file(kLock);
  lock_.reset(std::fopen(path.c_str(), "a+e"));
  if (lock_ == nullptr) return disk_error("cannot write " + path, errno);
  if (::flock(::fileno(lock_.get()), LOCK_EX | LOCK_NB) != 0) {
    char pid[24] = "?";
    if (std::fgets(pid, sizeof pid, lock_.get()) == nullptr) std::strcpy(pid, "?");
    return {Code::kLocked, path_ + ": process " + pid + " trains here"};
  }
  // Only a message is poorer without it.
  if (::ftruncate(::fileno(lock_.get()), 0) != 0) return {};
  std::fprintf(lock_.get(), "%d", static_cast<int>(::getpid()));
  std::fflush(lock_.get());
  return {};
}

Status RunDirectory::check_moved(const Config& config) const {
  const auto before = read_config(path_);
  if (!before.ok()) return before.status();
  const auto& was = before->tiers.ssd;
  const bool same =
      std::ranges::equal(was, config.tiers.ssd, {}, &SsdConfig::directory, &SsdConfig::directory);
  if (was.empty() || same) return {};
  return {Code::kInvalid, "tiers.ssd: the rows of this run are in \"" + was[0].directory +
                              "\" and what is named now holds no commit; move the store there "
                              "first, or leave tiers.ssd as it was"};
}

Status RunDirectory::keep(const Config& config) const {
  return replace_file(file("config.toml"), write_config(config));
}

Result<Config> RunDirectory::read_config(const std::string& directory) {
  std::error_code error;
  const std::string path = directory + "/config.toml";
  if (!fs::exists(path, error)) {
    return {Code::kNotFound, directory + " holds no run: there is no config.toml"};
  }
  return load_config(path);
}

Result<std::string> RunDirectory::read_id(const std::string& directory) {
  std::string id;
  if (std::ifstream(directory + "/" + kId) >> id) return id;
  return {Code::kNotFound, directory + "/" + kId + " is missing: which run is this?"};
}

void RunLog::open(const std::string& path) {
  const std::lock_guard lock(mutex_);
  opened_ = true;
  file_.reset(std::fopen(path.c_str(), "ae"));
  if (file_ == nullptr) return;
  for (const std::string& line : std::exchange(early_, {})) std::fputs(line.c_str(), file_.get());
  std::fflush(file_.get());
}

void RunLog::write(const std::string& line) {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  localtime_r(&now, &parts);
  char time[32];
  std::strftime(time, sizeof time, "%F %T", &parts);
  const std::string whole = std::string(time) + "  " + line + "\n";
  const std::lock_guard lock(mutex_);
  if (!opened_) early_.push_back(whole);
  if (file_ == nullptr) return;
  std::fputs(whole.c_str(), file_.get());
  std::fflush(file_.get());
}

Status replace_file(const std::string& path, const std::string& content) {
  const std::string part = path + ".part";
  std::FILE* const file = std::fopen(part.c_str(), "we");
  if (file == nullptr) return disk_error("cannot write " + part, errno);
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  const int write_error = errno;
  if (std::fclose(file) != 0 || !written) {
    const int close_error = errno;
    std::remove(part.c_str());
    return disk_error("cannot write " + path, written ? close_error : write_error);
  }
  if (std::rename(part.c_str(), path.c_str()) != 0) return disk_error("cannot name " + path, errno);
  return {};
}

}  // namespace rowtide
