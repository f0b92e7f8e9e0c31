#include "storage/hints.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "storage/record.h"

namespace rowtide::storage {

uint64_t HintsFile::bytes(std::span<const std::span<const std::byte>> parts) {
  uint64_t bytes = sizeof(HintsHeader);
  for (const auto& part : parts) bytes += part.size();
  return bytes;
}

// The header of a file that holds these parts.
template <typename Parts>
HintsHeader HintsFile::header_of(const Parts& parts) const {
  HintsHeader header = header_;
  for (const auto& part : parts) header.bytes += part.size();
  header.checksum = header_checksum(header);
  for (const auto& part : parts) {
    header.checksum = checksum_of(part.data(), part.size(), header.checksum);
  }
  return header;
}

Status HintsFile::write(std::span<const std::span<const std::byte>> parts) {
  const HintsHeader header = header_of(parts);
  std::vector<std::span<const std::byte>> all = {std::as_bytes(std::span(&header, 1))};
  all.insert(all.end(), parts.begin(), parts.end());
  const std::string made = path() + ".new";
  Status status = files_->write_file(made, all);
  if (status.ok()) status = files_->rename(made, path());
  if (status.ok()) status = files_->sync_directory(directory_);
  if (!status.ok()) (void)files_->remove(made).ok();
  return status;
}

bool HintsFile::take(std::span<const std::span<std::byte>> parts) {
  const bool whole = read(parts);
  (void)files_->remove(path()).ok();
  return whole;
}

bool HintsFile::read(std::span<const std::span<std::byte>> parts) {
  auto file = files_->open(path(), false, false, nullptr);
  if (!file.ok()) return false;
  HintsHeader header;
  Status status = files_->read_at(*file, 0, std::as_writable_bytes(std::span(&header, 1)));
  uint64_t bytes = 0;
  for (const auto& part : parts) bytes += part.size();
  uint64_t at = sizeof header;
  const auto size = files_->size(*file);
  bool whole = status.ok() && size.ok() && *size == at + bytes && header.store == header_.store &&
               header.epoch == header_.epoch;
  for (const auto& part : parts) {
    if (!whole) break;
    whole = files_->read_at(*file, at, part).ok();
    at += part.size();
  }
  files_->close(*file);
  if (!whole && at == sizeof header) return false;
  const HintsHeader wanted = header_of(parts);
  if (whole && std::memcmp(&header, &wanted, sizeof header) == 0) return true;
  for (const auto& part : parts) std::fill(part.begin(), part.end(), std::byte{0});
  return false;
}

}  // namespace rowtide::storage
