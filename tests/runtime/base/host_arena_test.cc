#include "runtime/base/host_arena.h"

#include <gtest/gtest.h>

namespace rowtide {
namespace {

TEST(HostArenaTest, IsZeroedAndWritable) {
  auto arena = HostArena::reserve(5 << 20, "test");
  ASSERT_TRUE(arena.ok());
  EXPECT_EQ(arena->bytes()[0], std::byte{0});
  EXPECT_EQ(arena->bytes()[(5 << 20) - 1], std::byte{0});
  arena->bytes()[(5 << 20) - 1] = std::byte{1};
}

TEST(HostArenaTest, MemoryThatCannotBeHadIsAnErrorNamingBytesAskedAndThere) {
  const uint64_t asked = uint64_t{1} << 50;
  auto arena = HostArena::reserve(asked, "the warm slots of table C3");
  ASSERT_FALSE(arena.ok());
  EXPECT_EQ(arena.status().code(), Code::kNoSpace);
  EXPECT_NE(arena.status().message().find(std::to_string(asked)), std::string::npos);
  EXPECT_NE(arena.status().message().find("table C3"), std::string::npos);
}

TEST(HostArenaTest, NothingIsReservedForZeroBytes) {
  auto arena = HostArena::reserve(0, "nothing");
  ASSERT_TRUE(arena.ok());
  EXPECT_EQ(arena->bytes(), nullptr);
}

}  // namespace
}  // namespace rowtide
