#pragma once
// BlockIo — transfers that the caller waits for: of recovery and scan().

#include <span>

#include "runtime/base/host_arena.h"
#include "storage/io_router.h"
#include "storage/log_files.h"

namespace rowtide::storage {

class BlockIo final : public IoUser {
 public:
  // A range of a segment and its bytes in memory.
  struct Range {
    uint32_t segment = 0, offset = 0, bytes = 0;  // whole pages
    std::byte* memory = nullptr;
    uint32_t moved = 0;
    bool again = false;
  };

  // Errors: kNoSpace.
  static Result<std::unique_ptr<BlockIo>> create(const Layout* layout, const LogFiles* files,
                                                 IoRouter* router);

  // Waits for all of them; one that fails is tried once more.  Errors: kIo, kNoSpace.
  Status read(std::span<Range> ranges) { return move(IoKind::kRead, ranges); }
  Status read(Range range) { return move(IoKind::kRead, std::span(&range, 1)); }
  Status write(Range range) { return move(IoKind::kWrite, std::span(&range, 1)); }

  // Memory for what is moved.
  std::byte* memory() const { return arena_.bytes(); }
  uint64_t reserved_bytes() const { return arena_.size(); }
  static uint64_t predict(const Layout& layout);
  static constexpr uint32_t kMostRanges = 64;

  void io_done(uint32_t id, int64_t result) override;

 private:
  Status move(IoKind kind, std::span<Range> ranges);
  void submit(uint32_t range);

  const LogFiles* files_ = nullptr;
  IoRouter* router_ = nullptr;
  HostArena arena_;
  IoKind kind_ = IoKind::kRead;
  std::span<Range> ranges_;
  size_t in_flight_ = 0;
  Status error_;
};

}  // namespace rowtide::storage
