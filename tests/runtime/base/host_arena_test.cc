#include "runtime/base/host_arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <vector>

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

// Bytes of memory that the arena takes, page by page.
uint64_t resident(const HostArena& arena) {
  uint64_t pages = 0;
  std::vector<unsigned char> touched(1 << 16);
  for (uint64_t at = 0; at < arena.size(); at += touched.size() * 4096) {
    const uint64_t bytes = std::min<uint64_t>(arena.size() - at, touched.size() * 4096);
    EXPECT_EQ(mincore(arena.bytes() + at, bytes, touched.data()), 0);
    for (uint64_t p = 0; p < (bytes + 4095) / 4096; ++p) pages += touched[p] & 1;
  }
  return pages * 4096;
}

TEST(HostArenaTest, ALargeOneOfWhichLittleIsTouchedTakesLittle) {
  auto arena = HostArena::reserve(available_host_bytes() / 3, "test");
  ASSERT_TRUE(arena.ok()) << arena.status().to_string();
  const uint64_t piece = 4 << 20, touched = std::min<uint64_t>(arena->size() / piece, 500);
  for (uint64_t i = 0; i < touched; ++i) arena->bytes()[i * piece] = std::byte{1};
  for (uint64_t i = 0; i < 3 * touched; ++i) arena->join_pages();
  EXPECT_LE(resident(*arena), touched * 4096);
}

TEST(HostArenaTest, JoiningPagesChangesNoByte) {
  auto arena = HostArena::reserve(available_host_bytes() / 3, "test");
  ASSERT_TRUE(arena.ok()) << arena.status().to_string();
  const uint64_t bytes = 9 << 20;
  for (uint64_t at = 0; at < bytes; at += at < bytes / 2 ? 64 : 8192) {
    arena->bytes()[at] = static_cast<std::byte>(at / 64);
  }
  for (int i = 0; i < 16; ++i) arena->join_pages();
  for (uint64_t at = 0; at < bytes; at += at < bytes / 2 ? 64 : 8192) {
    ASSERT_EQ(arena->bytes()[at], static_cast<std::byte>(at / 64)) << at;
  }
  EXPECT_LE(resident(*arena), bytes + (2 << 20));
}

TEST(HostArenaTest, NothingIsReservedForZeroBytes) {
  auto arena = HostArena::reserve(0, "nothing");
  ASSERT_TRUE(arena.ok());
  EXPECT_EQ(arena->bytes(), nullptr);
}

}  // namespace
}  // namespace rowtide
