#include "storage/manifest.h"

#include "storage/bytes.h"
#include "storage/record.h"

namespace rowtide::storage {
namespace {

constexpr uint64_t kManifestMagic = 0x314e414d'44575452;  // "RTWDMAN1"
constexpr uint64_t kArraysMagic = 0x31525241'44575452;    // "RTWDARR1"

Status wrong_format(const std::string& path) {
  return {Code::kFormat, path + " is not of format " + std::to_string(kFormat)};
}
Status corrupt(const std::string& path) { return {Code::kCorrupt, path + " does not verify"}; }

}  // namespace

bool Manifest::is_dead(uint32_t at) const {
  for (const DeadEpochs& range : dead) {
    if (range.first <= at && at <= range.last) return true;
  }
  return false;
}

const KeptCommit* Manifest::find(uint32_t at) const {
  for (const KeptCommit& commit : kept) {
    if (commit.epoch == at) return &commit;
  }
  return nullptr;
}

uint64_t Manifest::arrays_bytes() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < kept.size(); ++i) {  // commits that share a file follow each other
    if (i == 0 || kept[i].arrays_epoch != kept[i - 1].arrays_epoch) bytes += kept[i].arrays_bytes;
  }
  return bytes;
}

std::vector<std::byte> encode_manifest(const Manifest& manifest) {
  ByteWriter out;
  out.number(kManifestMagic);
  out.number(kFormat);
  out.number(manifest.store);
  out.number(manifest.epoch);
  out.number(manifest.sequence);
  out.number(manifest.rows);
  out.number(uint64_t{manifest.payload_bytes.size()});
  for (uint32_t bytes : manifest.payload_bytes) out.number(bytes);
  out.number(uint64_t{manifest.dead.size()});
  for (const DeadEpochs& range : manifest.dead) out.number(range.first), out.number(range.last);
  out.number(uint64_t{manifest.kept.size()});
  for (const KeptCommit& commit : manifest.kept) {
    out.number(commit.epoch);
    out.number(commit.arrays_epoch);
    out.number(commit.arrays_bytes);
    out.number(commit.arrays_checksum);
    out.text(commit.meta);
  }
  out.number(uint64_t{manifest.open.size()});
  for (const OpenSegment& segment : manifest.open) {
    out.number(segment.place);
    out.number(segment.sequence);
    out.number(segment.slots);
    out.number(segment.records);
  }
  out.number(uint64_t{manifest.log_bytes.size()});
  for (uint64_t bytes : manifest.log_bytes) out.number(bytes);
  out.number(checksum_of(out.bytes().data(), out.bytes().size()));
  return out.bytes();
}

Result<Manifest> decode_manifest(std::span<const std::byte> bytes, const std::string& path) {
  ByteReader in(bytes);
  if (in.number<uint64_t>() != kManifestMagic || in.number<uint32_t>() != kFormat) {
    return wrong_format(path);
  }
  uint64_t checksum = 0;
  if (bytes.size() < sizeof checksum) return corrupt(path);
  const size_t body = bytes.size() - sizeof checksum;
  std::memcpy(&checksum, bytes.data() + body, sizeof checksum);
  if (checksum != checksum_of(bytes.data(), body)) return corrupt(path);

  Manifest manifest;
  manifest.store = in.number<uint64_t>();
  manifest.epoch = in.number<uint32_t>();
  manifest.sequence = in.number<uint64_t>();
  manifest.rows = in.number<uint64_t>();
  manifest.payload_bytes.resize(in.count(4));
  for (uint32_t& payload : manifest.payload_bytes) payload = in.number<uint32_t>();
  manifest.dead.resize(in.count(8));
  for (DeadEpochs& range : manifest.dead) {
    range.first = in.number<uint32_t>();
    range.last = in.number<uint32_t>();
  }
  manifest.kept.resize(in.count(32));
  for (KeptCommit& commit : manifest.kept) {
    commit.epoch = in.number<uint32_t>();
    commit.arrays_epoch = in.number<uint32_t>();
    commit.arrays_bytes = in.number<uint64_t>();
    commit.arrays_checksum = in.number<uint64_t>();
    commit.meta = in.text();
  }
  manifest.open.resize(in.count(24));
  for (OpenSegment& segment : manifest.open) {
    segment.place = in.number<uint64_t>();
    segment.sequence = in.number<uint64_t>();
    segment.slots = in.number<uint32_t>();
    segment.records = in.number<uint32_t>();
  }
  manifest.log_bytes.resize(in.count(8));
  for (uint64_t& size : manifest.log_bytes) size = in.number<uint64_t>();
  in.take(sizeof checksum);
  if (!in.ok() || !in.at_end()) return corrupt(path);
  return manifest;
}

ArraysFile encode_arrays(const std::vector<NamedArray>& arrays) {
  ArraysFile file;
  ByteWriter head;
  head.number(kArraysMagic);
  head.number(kFormat);
  head.number(uint64_t{arrays.size()});
  file.heads.reserve(arrays.size() + 1);
  for (const NamedArray& array : arrays) {
    head.text(array.name);
    head.text(array.dtype);
    head.number(uint64_t{array.shape.size()});
    for (uint64_t size : array.shape) head.number(size);
    head.number(uint64_t{array.bytes.size()});
    file.heads.push_back(head.bytes());
    file.parts.push_back(file.heads.back());
    file.parts.push_back(array.bytes);
    head = {};
  }
  for (const auto& part : file.parts) {
    file.bytes += part.size();
    file.checksum = checksum_of(part.data(), part.size(), file.checksum);
  }
  return file;
}

Result<std::vector<NamedArray>> read_arrays(FileSystem& files, const std::string& path,
                                            const KeptCommit& commit) {
  std::vector<NamedArray> arrays;
  if (commit.arrays_epoch == 0) return arrays;
  auto bytes = files.read_file(path);
  if (!bytes.ok()) {
    if (bytes.status().code() != Code::kNotFound) return bytes.status();
    return {Code::kCorrupt, bytes.status().message()};
  }
  if (bytes->size() != commit.arrays_bytes) {
    return {Code::kCorrupt, path + " has " + std::to_string(bytes->size()) + " bytes, the commit " +
                                std::to_string(commit.arrays_bytes)};
  }
  ByteReader in(*bytes);
  if (in.number<uint64_t>() != kArraysMagic || in.number<uint32_t>() != kFormat) {
    return wrong_format(path);
  }
  arrays.resize(in.count(32));
  for (NamedArray& array : arrays) {
    array.name = in.text();
    array.dtype = in.text();
    array.shape.resize(in.count(8));
    for (uint64_t& size : array.shape) size = in.number<uint64_t>();
    const auto values = in.take(in.number<uint64_t>());
    array.bytes.assign(values.begin(), values.end());
  }
  if (!in.ok() || !in.at_end()) return corrupt(path);
  if (encode_arrays(arrays).checksum != commit.arrays_checksum) return corrupt(path);
  return arrays;
}

std::string arrays_name(uint32_t epoch) { return "arrays-" + std::to_string(epoch); }

}  // namespace rowtide::storage
