#pragma once
// as_nobody — a deed without root's rights, to whom nothing is forbidden.

#include <gtest/gtest.h>
#include <unistd.h>

namespace rowtide {

// Calls act() as it is, or, if that is root, as the user nobody.  False: root cannot.
// Only file permissions follow: what is open stays open, and other tests are root again.
template <typename Act>
bool as_nobody(Act&& act) {
  constexpr uid_t kNobody = 65534;
  const bool root = ::geteuid() == 0;
  if (root && ::seteuid(kNobody) != 0) return false;
  act();
  EXPECT_TRUE(!root || ::seteuid(0) == 0);
  return true;
}

}  // namespace rowtide
