#include "tests/support/cuda_on_cpu/report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "tests/support/cuda_on_cpu/control.h"

extern "C" const char __executable_start;

namespace cuda_on_cpu {
namespace {

constexpr size_t kMaxReports = 100;
std::vector<std::string> reports;

// What addr2line prints of an address: the function's name, then its file and line.
struct Code {
  std::string function, line;
};

Code look_up(const void* address) {
  char program[4096] = {};
  if (readlink("/proc/self/exe", program, sizeof program - 1) <= 0) return {};
  const auto offset = static_cast<const char*>(address) - &__executable_start;
  char command[5000];
  std::snprintf(command, sizeof command, "addr2line -Cfe '%s' 0x%lx 2>/dev/null", program,
                static_cast<unsigned long>(offset));
  Code code;
  FILE* output = popen(command, "r");
  if (output == nullptr) return {};
  for (std::string* text : {&code.function, &code.line}) {
    for (int c = std::fgetc(output); c != EOF && c != '\n'; c = std::fgetc(output)) {
      text->push_back(static_cast<char>(c));
    }
  }
  pclose(output);
  return code;
}

const Code& code_at(const void* address) {
  static std::map<const void*, Code> known;
  const auto [found, fresh] = known.try_emplace(address);
  if (fresh) found->second = look_up(address);
  if (found->second.function.empty()) {
    char text[32];
    std::snprintf(text, sizeof text, "%p", address);
    found->second = {text, text};
  }
  return found->second;
}

}  // namespace

void report(std::string text) {
  if (reports.size() < kMaxReports &&
      std::find(reports.begin(), reports.end(), text) == reports.end()) {
    reports.push_back(std::move(text));
  }
}

std::vector<std::string> take_reports() { return std::exchange(reports, {}); }

std::string name_of_code(const void* address) {
  // Without return type, template arguments and parameters, which a reader does not need.
  std::string name = code_at(address).function;
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  if (const size_t at = name.find(kAnonymous); at != std::string::npos) {
    name.erase(0, at + kAnonymous.size());
  }
  name = name.substr(0, name.find('('));
  name = name.substr(0, name.find('<'));
  return name;
}

std::string line_of_code(const void* address) {
  const std::string& line = code_at(address).line;
  return line.substr(0, line.find(" (discriminator"));
}

}  // namespace cuda_on_cpu
