#include "storage/hints.h"

#include <algorithm>
#include <vector>

#include "storage/record.h"

namespace rowtide::storage {
namespace {

// Gathers what is appended into blocks, and passes them on.
class Blocks {
 public:
  explicit Blocks(const FileSystem::Append& append) : append_(append) {
    block_.reserve(HintsFile::kBlock);
  }
  Status add(std::span<const std::byte> part) {
    while (!part.empty()) {
      const size_t room = std::min(part.size(), HintsFile::kBlock - block_.size());
      block_.insert(block_.end(), part.begin(), part.begin() + static_cast<ptrdiff_t>(room));
      part = part.subspan(room);
      bytes_ += room;
      if (block_.size() == HintsFile::kBlock) ROWTIDE_TRY(flush());
    }
    return {};
  }
  Status flush() {
    checksum_ = checksum_of(block_.data(), block_.size(), checksum_);
    ROWTIDE_TRY(append_(block_));
    block_.clear();
    return {};
  }
  bool empty() const { return block_.empty(); }
  uint64_t bytes() const { return bytes_; }
  uint64_t checksum() const { return checksum_; }

 private:
  const FileSystem::Append& append_;
  std::vector<std::byte> block_;
  uint64_t bytes_ = 0, checksum_ = 0;
};

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

Status HintsFile::write(uint64_t bytes, const std::function<Status(const Append&)>& produce) {
  HintsHeader header{.store = store_, .epoch = epoch_, .bytes = bytes};
  header.checksum = header_checksum(header);
  const Status status =
      files_->replace_file(directory_, kName, [&](const Append& append) -> Status {
        ROWTIDE_TRY(append(bytes_of(header)));
        Blocks blocks(append);
        ROWTIDE_TRY(produce([&](std::span<const std::byte> part) { return blocks.add(part); }));
        if (!blocks.empty()) ROWTIDE_TRY(blocks.flush());
        ROWTIDE_CHECK(blocks.bytes() == bytes);
        return append(bytes_of(blocks.checksum()));
      });
  if (!status.ok()) (void)files_->remove(path() + FileSystem::kNewSuffix).ok();
  return status;
}

// Looked at twice: nothing is handed over before all was verified.
void HintsFile::take(const Visit& visit) {
  auto file = files_->open(path(), false, false, nullptr);
  if (!file.ok()) return;
  uint64_t bytes = 0;
  if (verify(*file, &bytes)) (void)for_each_block(*file, bytes, visit).ok();
  files_->close(*file);
  (void)files_->remove(path()).ok();
}

bool HintsFile::verify(int file, uint64_t* bytes) {
  HintsHeader header;
  const auto size = files_->size(file);
  if (!size.ok() || *size < kBeside) return false;
  if (!files_->read_at(file, 0, std::as_writable_bytes(std::span(&header, 1))).ok()) return false;
  if (!intact(header) || header.store != store_ || header.epoch != epoch_) return false;
  if (header.bytes != *size - kBeside) return false;
  uint64_t checksum = 0, wanted = 0;
  const Status status = for_each_block(file, header.bytes, [&](std::span<const std::byte> block) {
    checksum = checksum_of(block.data(), block.size(), checksum);
  });
  if (!status.ok()) return false;
  const auto at_end = std::as_writable_bytes(std::span(&wanted, 1));
  if (!files_->read_at(file, sizeof header + header.bytes, at_end).ok()) return false;
  *bytes = header.bytes;
  return checksum == wanted;
}

Status HintsFile::for_each_block(int file, uint64_t bytes, const Visit& visit) {
  std::vector<std::byte> block(kBlock);
  for (uint64_t at = 0; at < bytes; at += kBlock) {
    const std::span<std::byte> part(block.data(), std::min<uint64_t>(kBlock, bytes - at));
    ROWTIDE_TRY(files_->read_at(file, sizeof(HintsHeader) + at, part));
    visit(part);
  }
  return {};
}

}  // namespace rowtide::storage
