#pragma once
// ByteWriter, ByteReader — numbers and strings, little-endian and packed, in a block of bytes.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace rowtide::storage {

class ByteWriter {
 public:
  template <typename Number>
  void number(Number value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
  }
  void text(const std::string& text) {
    number(static_cast<uint64_t>(text.size()));
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), bytes, bytes + text.size());
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Reading past the end gives zeros and makes ok() false for good.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename Number>
  Number number() {
    Number value{};
    if (const auto bytes = take(sizeof value); !bytes.empty()) {
      std::memcpy(&value, bytes.data(), sizeof value);
    }
    return value;
  }
  std::string text() {
    const auto bytes = take(number<uint64_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::span<const std::byte> take(uint64_t count) {
    ok_ = ok_ && count <= bytes_.size();
    if (!ok_) return {};
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  // A count of things that take at least `least_bytes` each: never more than can follow.
  uint64_t count(uint64_t least_bytes) {
    const auto count = number<uint64_t>();
    ok_ = ok_ && count <= bytes_.size() / least_bytes;
    return ok_ ? count : 0;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

}  // namespace rowtide::storage
