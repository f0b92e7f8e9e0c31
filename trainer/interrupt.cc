#include "trainer/interrupt.h"

#include <unistd.h>

#include <csignal>

#include "trainer/exit_code.h"

namespace rowtide {
namespace {

volatile std::sig_atomic_t signals = 0;

void say(const char* text, size_t length) {
  const ssize_t written = ::write(STDERR_FILENO, text, length);
  (void)written;  // nobody is left to tell
}

void on_signal(int) {
  static constexpr char kFirst[] =
      "\nfinishing the step and committing; once more ends at once, at the last commit\n";
  static constexpr char kSecond[] = "\nended at once; --resume goes on from the last commit\n";
  signals = signals + 1;
  if (signals == 1) {
    say(kFirst, sizeof kFirst - 1);
  } else {
    say(kSecond, sizeof kSecond - 1);
    ::_exit(kExitKilled);
  }
}

}  // namespace

void watch_for_interrupts() {
  signals = 0;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

bool interrupt_requested() { return signals > 0; }

}  // namespace rowtide
