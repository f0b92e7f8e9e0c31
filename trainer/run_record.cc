#include "trainer/run_record.h"

#include <cstring>
#include <fstream>

namespace rowtide {
namespace {

// A line such as "VmRSS:      1234 kB" of /proc/self/status.
uint64_t status_bytes(const char* name) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(name, 0) == 0) return std::stoull(line.substr(std::strlen(name))) * 1024;
  }
  return 0;
}

}  // namespace

uint64_t resident_bytes() { return status_bytes("VmRSS:"); }
uint64_t peak_resident_bytes() { return status_bytes("VmHWM:"); }

}  // namespace rowtide
