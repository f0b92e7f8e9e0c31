#include "runtime/base/salt.h"

#include <sys/random.h>

#include <chrono>

#include "runtime/base/key.h"

namespace rowtide {

uint64_t random_number() {
  uint64_t number;
  if (getrandom(&number, sizeof number, 0) == sizeof number) return number;
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return mix64(static_cast<uint64_t>(now) ^ reinterpret_cast<uintptr_t>(&number));
}

uint64_t process_salt() {
  static const uint64_t salt = random_number();
  return salt;
}

}  // namespace rowtide
