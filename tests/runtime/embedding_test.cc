// What a program that embeds the runtime keeps: its signals, its locale, its files and threads.

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <clocale>
#include <cstring>
#include <filesystem>
#include <thread>

#include "tests/support/paired_runtime.h"

namespace rowtide {
namespace {

std::atomic<int> signals_taken{0}, taken_by_mover{0};

extern "C" void take_signal(int) {
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof name);
  taken_by_mover += std::strcmp(name, "rowtide-mover") == 0;
  ++signals_taken;
}

size_t entries(const char* path) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path)) ++count;
  return count;
}

class EmbeddingTest : public testing::Test {
 protected:
  RuntimeOptions options() {
    RuntimeOptions o = one_table(directory_ / "store", 2000, 8);
    set_budgets(o, 0, 6000);
    return o;
  }
  void train(int64_t steps) {
    PairedRuntime paired(options());
    train(paired, steps);
  }
  void train(PairedRuntime& paired, int64_t steps) {
    for (int64_t n = 0; n < steps; ++n) {
      paired.train(one_hot(range(n * 60 % 1900, n * 60 % 1900 + 60)));
    }
    EXPECT_TRUE(paired->commit({}).ok());
    paired.check_digest();
  }

  ScratchDirectory directory_;
};

void block(int signal, int how) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(how, &set, nullptr);
}

// Interrupted system calls would look like errors of the disk.
TEST_F(EmbeddingTest, TheMoverTakesNoSignals) {
  struct sigaction take {
  }, before{};
  take.sa_handler = take_signal;  // without SA_RESTART
  ASSERT_EQ(sigaction(SIGUSR1, &take, &before), 0);
  signals_taken = taken_by_mover = 0;
  PairedRuntime paired(options());
  std::atomic<bool> stop{false};
  // This thread and the sender take none while the steps run: so the kernel must choose others.
  block(SIGUSR1, SIG_BLOCK);
  std::thread sender([&] {
    while (!stop) {
      kill(getpid(), SIGUSR1);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  train(paired, 60);
  stop = true;
  sender.join();
  block(SIGUSR1, SIG_UNBLOCK);  // takes the last one, if nobody did
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_GT(signals_taken, 0);
  EXPECT_EQ(taken_by_mover, 0);
}

TEST_F(EmbeddingTest, HandlersMaskAndLocaleStay) {
  struct sigaction before[32], after[32];
  sigset_t mask_before, mask_after;
  const std::string locale = std::setlocale(LC_ALL, nullptr);
  for (int s = 1; s < 32; ++s) sigaction(s, nullptr, &before[s]);
  pthread_sigmask(SIG_BLOCK, nullptr, &mask_before);
  train(5);
  pthread_sigmask(SIG_BLOCK, nullptr, &mask_after);
  for (int s = 1; s < 32; ++s) {
    sigaction(s, nullptr, &after[s]);
    EXPECT_EQ(before[s].sa_handler, after[s].sa_handler) << "signal " << s;
    EXPECT_EQ(sigismember(&mask_before, s), sigismember(&mask_after, s)) << "signal " << s;
  }
  EXPECT_EQ(std::setlocale(LC_ALL, nullptr), locale);
}

TEST_F(EmbeddingTest, ClosingGivesBackFilesAndThreads) {
  train(3);  // what the libraries keep for good, such as compute threads
  const size_t files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  for (int cycle = 0; cycle < 20; ++cycle) {
    std::filesystem::remove_all(directory_ / "store");
    train(1);
  }
  EXPECT_EQ(entries("/proc/self/fd"), files);
  EXPECT_LE(entries("/proc/self/task"), threads);
}

}  // namespace
}  // namespace rowtide
