#include "trainer/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "trainer/steady_seconds.h"

namespace rowtide {
namespace {

constexpr double kRedrawSeconds = 0.2;  // as often as an eye follows
constexpr double kLineSeconds = 10;
constexpr int kBarColumns = 20;

int terminal_columns() {
  winsize size = {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string minutes_and_seconds(double seconds) {
  const auto all = static_cast<long long>(std::llround(std::max(0.0, seconds)));
  char text[32];
  if (all >= 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", all / 3600, all / 60 % 60, all % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld", all / 60, all % 60);
  }
  return text;
}

Console::Console()
    : Console(stderr, ::isatty(STDERR_FILENO) != 0, terminal_columns(), steady_seconds) {}

Console::Console(std::FILE* out, bool terminal, int columns, Clock clock)
    : out_(out), terminal_(terminal), columns_(columns), clock_(std::move(clock)) {}

Console::~Console() { finish_progress(); }

void Console::say(const std::string& line) {
  const std::lock_guard lock(mutex_);
  clear_line();
  std::fprintf(out_, "%s\n", line.c_str());
  std::fflush(out_);
}

void Console::progress(const Progress& progress) {
  const std::lock_guard lock(mutex_);
  const double now = clock_();
  if (progress.what != what_) {
    what_ = progress.what;
    began_ = last_ = now;
    began_fraction_ = progress.fraction;
    if (!terminal_) return;
  } else if (now - last_ < (terminal_ ? kRedrawSeconds : kLineSeconds)) {
    return;
  }
  last_ = now;
  if (terminal_) {
    std::fprintf(out_, "\r\033[K%s", bar_line(progress, now).c_str());
    line_stands_ = true;
  } else {
    std::fprintf(out_, "%s: %.0f %%, %s%s\n", progress.what.c_str(), progress.fraction * 100,
                 progress.details.c_str(), estimate(progress, now).c_str());
  }
  std::fflush(out_);
}

void Console::finish_progress() {
  const std::lock_guard lock(mutex_);
  clear_line();
  std::fflush(out_);
  what_.clear();
}

std::string Console::estimate(const Progress& progress, double now) {
  const double done = progress.fraction - began_fraction_;
  if (done <= 0 || now <= began_) return "";
  return ", ends in " + minutes_and_seconds((now - began_) * (1 - progress.fraction) / done);
}

std::string Console::bar_line(const Progress& progress, double now) {
  const double fraction = std::clamp(progress.fraction, 0.0, 1.0);
  const int full = static_cast<int>(fraction * kBarColumns);
  char head[64];
  std::snprintf(head, sizeof head, "%-8s %3.0f %% [", progress.what.c_str(), fraction * 100);
  std::string line = head + std::string(full, '#') + std::string(kBarColumns - full, '.') + "] " +
                     progress.details + estimate(progress, now);
  return line.substr(0, std::max(columns_ - 1, 10));
}

void Console::clear_line() {
  if (line_stands_) std::fprintf(out_, "\r\033[K");
  line_stands_ = false;
}

}  // namespace rowtide
