// Machines that forbid io_uring, as containers do: a seccomp filter refuses its set-up.

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "tests/storage/store_fixture.h"
#include "tests/support/scratch_directory.h"

namespace rowtide::storage {
namespace {

bool forbid_io_uring() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {.len = std::size(filter), .filter = filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// What `say` returns in a child process without io_uring; a filter lasts as long as its process.
template <typename Say>
std::string without_io_uring(Say&& say) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const std::string said = forbid_io_uring() ? say() : "no filter";
    _exit(write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  char part[4096];
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;) said.append(part, n);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return said;
}

ColdStoreOptions options_at(const std::string& path, IoEngine engine) {
  ColdStoreOptions options;
  options.directories = {{path, 8 << 20}};
  options.payload_bytes = {68};
  options.max_rows = 1000;
  options.engine = engine;
  return options;
}

Status write_rows(ColdStore& store) {
  std::vector<ColdStore::Done> done;
  for (Key key = 0; key < 1000; ++key) {
    for (bool accepted = false; !accepted; store.poll(!accepted, done)) {
      const auto payload = payload_of(key, 1, 68);
      auto result = store.append(0, key, 1, payload, {});
      if (!result.ok()) return result.status();
      accepted = *result;
    }
  }
  return store.commit({.epoch = 1});
}

TEST(IoUringRefusedTest, AutoTakesThreadsSaysSoOnceAndWorks) {
  const ScratchDirectory scratch;
  const std::string said = without_io_uring([&]() -> std::string {
    std::string notices;
    ColdStoreOptions options = options_at(scratch.path(), IoEngine::kAuto);
    options.log = [&](const std::string& line) {
      if (line.find("O_DIRECT") == std::string::npos) notices += line + "\n";
    };
    auto store = ColdStore::open(options);
    if (!store.ok()) return store.status().to_string();
    if (const Status status = write_rows(**store); !status.ok()) return status.to_string();
    store = Status(Code::kNotFound, "closed");  // so that the rows are read from the disk
    options.log = nullptr;
    store = ColdStore::open(options);
    if (!store.ok()) return store.status().to_string();
    for (Key key = 0; key < 1000; ++key) {
      if (read_row(**store, key, 68) != "1") return "row " + std::to_string(key);
    }
    return notices + (*store)->engine_name();
  });
  EXPECT_EQ(said,
            "io_uring is refused: Operation not permitted; a thread pool does the I/O instead\n"
            "threads");
}

TEST(IoUringRefusedTest, WhoAsksForItIsToldWhyNot) {
  const ScratchDirectory scratch;
  const std::string said = without_io_uring([&] {
    return ColdStore::open(options_at(scratch.path(), IoEngine::kUring)).status().to_string();
  });
  EXPECT_EQ(said, "unavailable: io_uring is refused: Operation not permitted");
}

}  // namespace
}  // namespace rowtide::storage
