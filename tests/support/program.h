#pragma once
// Program — the built `rowtide`, run as a user runs it.
//
// It is found in the folder that the environment variable ROWTIDE_BIN names.

#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/scratch_directory.h"

namespace rowtide {

struct Finished {
  int exit_code = -1;  // -1: ended by a signal
  std::string out, err;
};

class Program {
 public:
  // Starts it with its output going to files in `scratch`.
  Program(const ScratchDirectory& scratch, const std::vector<std::string>& arguments)
      : out_(scratch.file("stdout")), err_(scratch.file("stderr")) {
    pid_ = ::fork();
    if (pid_ == 0) {
      if (std::freopen(out_.c_str(), "w", stdout) == nullptr) ::_exit(99);
      if (std::freopen(err_.c_str(), "w", stderr) == nullptr) ::_exit(99);
      std::string program = path();
      std::vector<char*> argv = {program.data()};
      for (const std::string& argument : arguments) {
        argv.push_back(const_cast<char*>(argument.c_str()));
      }
      argv.push_back(nullptr);
      ::execv(program.c_str(), argv.data());
      ::_exit(98);
    }
  }

  static std::string path() {
    const char* const folder = std::getenv("ROWTIDE_BIN");
    return folder == nullptr ? "" : std::string(folder) + "/rowtide";
  }

  pid_t pid() const { return pid_; }
  void signal(int number) { ::kill(pid_, number); }
  // Until the next signal it stands still; returns when it does.
  void stop() {
    int status = 0;
    signal(SIGSTOP);
    ::waitpid(pid_, &status, WUNTRACED);
  }

  Finished wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out_), read_file(err_)};
  }

 private:
  std::string out_, err_;
  pid_t pid_;
};

// Waits until a file below `folder` has so many lines.  False: not within a minute.
// The kernel tells of each change, so nobody sleeps.
inline bool wait_for_lines(const std::string& folder, const std::string& name, long lines) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::minutes(1);
  std::filesystem::create_directories(folder);
  const int watch = ::inotify_init1(IN_CLOEXEC);
  ::inotify_add_watch(watch, folder.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO);
  bool there = false;
  while (!there && Clock::now() < deadline) {
    const std::string text = read_file(folder + "/" + name);
    there = std::count(text.begin(), text.end(), '\n') >= lines;
    pollfd event = {watch, POLLIN, 0};
    if (!there && ::poll(&event, 1, 1000) > 0) {
      char events[4096];
      if (::read(watch, events, sizeof events) < 0) break;
    }
  }
  ::close(watch);
  return there;
}

}  // namespace rowtide
