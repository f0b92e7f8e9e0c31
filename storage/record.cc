#include "storage/record.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace rowtide::storage {
namespace {

// The payload is hashed without a seed: XXH3 of long inputs would build a secret from it each time.
uint32_t record_checksum(const std::byte* record, uint32_t bytes, uint64_t use) {
  const uint64_t head = XXH3_64bits_withSeed(record, offsetof(RecordHeader, checksum), use);
  const std::byte* const payload = record + kRecordHeaderBytes;
  return static_cast<uint32_t>(head ^ XXH3_64bits(payload, bytes - kRecordHeaderBytes));
}

}  // namespace

uint64_t checksum_of(const void* bytes, size_t size, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

void finish_record(std::byte* record, uint32_t bytes, const RecordName& name, uint64_t use) {
  RecordHeader header{};
  header.key = name.key;
  header.epoch = name.epoch;
  header.heir = name.heir & kMostEpoch;
  header.flags = name.flags;
  std::memcpy(record, &header, sizeof header);
  header.checksum = record_checksum(record, bytes, use);
  std::memcpy(record, &header, sizeof header);
}

bool verify_record(const std::byte* record, uint32_t bytes, uint64_t use) {
  RecordHeader header;
  std::memcpy(&header, record, sizeof header);
  return header.flags != 0 && header.checksum == record_checksum(record, bytes, use);
}

RecordName name_of(const std::byte* record) {
  RecordHeader header;
  std::memcpy(&header, record, sizeof header);
  return {header.key, header.epoch, header.heir, static_cast<uint8_t>(header.flags)};
}

}  // namespace rowtide::storage
