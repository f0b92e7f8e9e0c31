#include "storage/io_queue.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "storage/file_system.h"
#include "tests/support/fake_disk.h"
#include "tests/support/scratch_directory.h"

namespace rowtide::storage {
namespace {

// Every engine, over the files that it belongs to.
class IoQueueTest : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr uint32_t kDepth = 64;

  void SetUp() override {
    const std::string engine = GetParam();
    if (engine == "fake") {
      files_ = std::make_unique<FakeDisk>(1);
      auto& disk = static_cast<FakeDisk&>(*files_);
      disk.faults.delay = 0.7;
      queue_ = disk.make_queue();
    } else {
      files_ = posix_file_system();
      auto queue =
          make_queue(engine == "uring" ? IoEngine::kUring : IoEngine::kThreads, kDepth, {});
      if (!queue.ok()) GTEST_SKIP() << queue.status().to_string();
      queue_ = std::move(*queue);
    }
    auto file = files_->open(scratch_.path() + "/file", true, true, &direct_);
    ASSERT_TRUE(file.ok()) << file.status().to_string();
    file_ = *file;
  }
  void TearDown() override {
    queue_.reset();
    if (file_ >= 0) files_->close(file_);
  }

  std::vector<IoDone> wait_for(size_t count) {
    std::vector<IoDone> done;
    while (done.size() < count) queue_->poll(true, done);
    return done;
  }
  std::byte* page(int i) { return pages_ + static_cast<ptrdiff_t>(i) * kPageBytes; }

  ScratchDirectory scratch_;
  std::unique_ptr<FileSystem> files_;
  std::unique_ptr<IoQueue> queue_;
  int file_ = -1;
  bool direct_ = false;
  alignas(kPageBytes) std::byte pages_[kDepth * kPageBytes] = {};
};

TEST_P(IoQueueTest, WhatManyWritesWroteManyReadsRead) {
  for (int i = 0; i < 32; ++i) {
    page(i)[5] = static_cast<std::byte>(i + 1);
    queue_->submit({IoKind::kWrite, file_, static_cast<uint64_t>(i) * kPageBytes, page(i),
                    kPageBytes, static_cast<uint64_t>(i)});
  }
  std::set<uint64_t> tickets;
  for (const IoDone& done : wait_for(32)) {
    EXPECT_EQ(done.result, kPageBytes);
    tickets.insert(done.ticket);
  }
  EXPECT_EQ(tickets.size(), 32u);
  queue_->submit({.kind = IoKind::kSync, .file = file_, .ticket = 99});
  EXPECT_EQ(wait_for(1)[0].result, 0);
  for (int i = 0; i < 32; ++i) {
    queue_->submit({IoKind::kRead, file_, static_cast<uint64_t>(31 - i) * kPageBytes, page(32 + i),
                    kPageBytes, static_cast<uint64_t>(i)});
  }
  for (const IoDone& done : wait_for(32)) EXPECT_EQ(done.result, kPageBytes);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(page(32 + i)[5], static_cast<std::byte>(32 - i));
}

TEST_P(IoQueueTest, AReadPastTheEndMovesNothing) {
  queue_->submit({IoKind::kRead, file_, 1 << 20, page(0), kPageBytes, 1});
  EXPECT_EQ(wait_for(1)[0].result, 0);
}

TEST_P(IoQueueTest, APollWithNothingInFlightReturnsAtOnce) {
  std::vector<IoDone> done;
  queue_->poll(true, done);
  EXPECT_TRUE(done.empty());
}

INSTANTIATE_TEST_SUITE_P(Engines, IoQueueTest, ::testing::Values("uring", "threads", "fake"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace rowtide::storage
