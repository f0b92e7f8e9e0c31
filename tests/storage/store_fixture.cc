#include "tests/storage/store_fixture.h"

#include <algorithm>
#include <cstring>

namespace rowtide::storage {

// The first 8 bytes (4 if there are no more) tell the version; the rest follows from it.
std::vector<std::byte> payload_of(Key key, uint64_t version, uint32_t bytes) {
  std::vector<std::byte> payload(bytes);
  const uint64_t first = version << 12 | (mix64(key) & 0xFFF);
  std::memcpy(payload.data(), &first, std::min<size_t>(bytes, 4));
  for (uint32_t i = 4; i < bytes; ++i) {
    payload[i] = static_cast<std::byte>(mix64(key * 31 + version * 7 + i) & 0xFF);
  }
  return payload;
}

Status StoreTester::open() {
  store.reset();
  auto opened =
      LogStore::open(options, {.files = &disk, .make_queue = [this](uint32_t) {
                                 return Result<std::unique_ptr<IoQueue>>(disk.make_queue());
                               }});
  if (!opened.ok()) return opened.status();
  store = std::move(*opened);
  return {};
}

Result<std::unique_ptr<ColdStore>> StoreTester::open_reader(uint32_t commit) {
  ColdStoreOptions reading = options;
  reading.read_only = true;
  reading.commit = commit;
  return LogStore::open(reading, {.files = &disk, .make_queue = [this](uint32_t) {
                                    return Result<std::unique_ptr<IoQueue>>(disk.make_queue());
                                  }});
}

Status StoreTester::put(Key key, uint64_t version, uint32_t epoch, uint32_t type) {
  const auto payload = payload_of(key, version, bytes_of(type));
  const size_t weights = payload.size() / 2;
  for (int tries = 0; tries < 100000; ++tries) {
    auto accepted = store->append(type, key, epoch, std::span(payload).first(weights),
                                  std::span(payload).subspan(weights));
    if (!accepted.ok()) return accepted.status();
    if (*accepted) return {};
    if (disk.frozen()) return {Code::kInterrupted, "the disk is frozen"};
    store->poll(true, ended);
  }
  return {Code::kBusy, "the store never took the row: " + store->take_write_error().to_string()};
}

Status StoreTester::commit(uint32_t epoch, const std::string& meta) {
  CommitContent content{.epoch = epoch, .meta = meta};
  content.arrays = {{"dense/w", "uint8", {3}, {std::byte{1}, std::byte{2}, std::byte(epoch)}}};
  return store->commit(content);
}

std::string read_row(ColdStore& store, Key key, uint32_t bytes, uint64_t most_version) {
  std::vector<std::byte> out(bytes);
  std::vector<ColdStore::Done> done;
  ColdStore::Read read = store.start_read(key, out.data(), key);
  while (read == ColdStore::Read::kFull) {
    store.poll(true, done);
    read = store.start_read(key, out.data(), key);
  }
  if (read == ColdStore::Read::kAbsent) return "absent";
  while (read == ColdStore::Read::kStarted && done.empty()) store.poll(true, done);
  for (const auto& ended : done) {
    if (!ended.status.ok()) return code_name(ended.status.code());
  }
  uint32_t first = 0;
  std::memcpy(&first, out.data(), sizeof first);
  const uint64_t version = first >> 12;
  if (version > most_version || out != payload_of(key, version, bytes)) return "other bytes";
  return std::to_string(version);
}

::testing::AssertionResult holds(ColdStore& store, const std::map<Key, uint64_t>& versions,
                                 uint64_t keys, uint32_t bytes) {
  for (Key key = 0; key < keys; ++key) {
    const auto it = versions.find(key);
    const std::string expected = it == versions.end() ? "absent" : std::to_string(it->second);
    if (store.contains(key) != (it != versions.end())) {
      return ::testing::AssertionFailure() << "contains(" << key << ") is wrong";
    }
    const std::string got = read_row(store, key, bytes, ~uint64_t{0});
    if (got != expected) {
      return ::testing::AssertionFailure() << "row " << key << ": " << got << ", not " << expected;
    }
  }
  std::map<Key, uint64_t> scanned;
  bool twice = false;
  const Status status = store.scan(
      [&](Key key, uint32_t, std::span<const std::byte> payload) {
        uint32_t first = 0;
        std::memcpy(&first, payload.data(), sizeof first);
        twice = twice || !scanned.emplace(key, first >> 12).second;
        return Status();
      },
      nullptr);
  if (!status.ok()) return ::testing::AssertionFailure() << status.to_string();
  if (twice || scanned != versions) return ::testing::AssertionFailure() << "scan() differs";
  if (store.stats().rows != versions.size()) return ::testing::AssertionFailure() << "stats().rows";
  return ::testing::AssertionSuccess();
}

}  // namespace rowtide::storage
