#include "storage/layout.h"

#include <algorithm>
#include <bit>

#include "storage/footer.h"

namespace rowtide::storage {
namespace {

constexpr uint32_t kLeastPayload = 1, kMostPayload = 49152;
constexpr uint32_t kLeastSegment = 64 << 10, kMostSegment = 4 << 20;
constexpr uint32_t kSegmentsWanted = 512;   // as many at least, so that a reserve costs little
constexpr uint32_t kRecordsInSegment = 8;   // at least, of the largest type
constexpr uint32_t kMostChunk = 64 << 10;   // of the write buffer: one write to the device
constexpr uint32_t kBlock = 256 << 10;      // a long read, where a disk gives all its bandwidth
constexpr uint64_t kCommitRoom = 64 << 10;  // of the first directory, beside the log
constexpr uint32_t kMostDirectories = 256, kMostTypes = 255;

uint32_t pages_of_largest(const std::vector<RecordType>& types) {
  uint32_t pages = kPageBytes;
  for (const RecordType& type : types) {
    if (type.per_page == 0) pages = std::max(pages, page_up(type.bytes) + kPageBytes);
  }
  return pages;
}

RecordType type_of(uint32_t payload) {
  RecordType type;
  type.payload_bytes = payload;
  type.bytes = payload + kRecordHeaderBytes;
  if (type.bytes <= kSmallRecordBytes) {
    type.per_page = kPageBytes / type.bytes;
    type.first_slot = type.slot_from(sizeof(SegmentHeader));
  }
  return type;
}

Status check(const ColdStoreOptions& options) {
  const auto bad = [](const std::string& what) { return Status(Code::kInvalid, what); };
  if (options.directories.empty()) return bad("a cold store needs a directory");
  if (options.directories.size() > kMostDirectories) return bad("at most 256 directories");
  if (options.payload_bytes.empty()) return bad("a cold store needs a record type");
  if (options.payload_bytes.size() > kMostTypes) return bad("at most 255 record types");
  if (options.max_rows == 0) return bad("max_rows is 0");
  if (options.reads_in_flight == 0) return bad("reads_in_flight is 0");
  for (uint32_t payload : options.payload_bytes) {
    if (payload < kLeastPayload || payload > kMostPayload) {
      return bad("a record of " + std::to_string(payload) + " bytes; 1 to 49152 are possible");
    }
  }
  return {};
}

uint32_t choose_segment(uint64_t bytes, uint32_t largest_record) {
  const uint32_t least = std::bit_ceil(std::max(kLeastSegment, largest_record * kRecordsInSegment));
  const uint64_t wanted = std::bit_floor(std::max<uint64_t>(bytes / kSegmentsWanted, 1));
  return static_cast<uint32_t>(std::clamp<uint64_t>(wanted, least, std::max(least, kMostSegment)));
}

uint32_t largest_record(const ColdStoreOptions& options) {
  const auto& types = options.payload_bytes;
  return *std::max_element(types.begin(), types.end()) + kRecordHeaderBytes;
}

// Of a directory, beside its segments.
uint64_t beside_segments(size_t directory) {
  return kPageBytes + (directory == 0 ? kCommitRoom : 0);
}

// The cleaner needs room to work in, and each type an open segment.
uint64_t least_segments(const ColdStoreOptions& options) {
  return 2 * options.payload_bytes.size() + 5;
}

Status check_budget(const ColdStoreOptions& options, const Layout& layout) {
  if (layout.segment_count >= least_segments(options)) return {};
  uint64_t have = 0;
  for (const auto& directory : options.directories) have += directory.bytes;
  return {Code::kNoSpace, "the cold store needs " +
                              std::to_string(Layout::least_bytes(options, layout.segment_bytes)) +
                              " bytes of disk, its budget is " + std::to_string(have)};
}

// Each type may hold a partly filled chunk and one that waits for it; a footer must find room too.
void size_write_buffer(const ColdStoreOptions& options, uint32_t largest, Layout* layout) {
  const uint64_t share = std::bit_floor(std::max<uint64_t>(options.write_buffer_bytes / 16, 1));
  layout->chunk_bytes = static_cast<uint32_t>(
      std::clamp<uint64_t>(share, std::bit_ceil(std::max(largest, kPageBytes)), kMostChunk));
  const auto types = static_cast<uint32_t>(layout->types.size());
  const uint32_t least =
      2 * types + (layout->footer_bytes + 2 * kPageBytes) / layout->chunk_bytes + 3;
  layout->chunk_count =
      std::max(least, static_cast<uint32_t>(options.write_buffer_bytes / layout->chunk_bytes));
}

}  // namespace

uint32_t RecordType::slot_from(uint32_t offset) const {
  if (per_page == 0) {
    const uint32_t header = sizeof(SegmentHeader);
    return offset <= header ? 0 : (offset - header + bytes - 1) / bytes;
  }
  const uint32_t page = offset / kPageBytes, in_page = (offset % kPageBytes + bytes - 1) / bytes;
  return page * per_page + std::min(in_page, per_page);
}

Result<Layout> Layout::of(const ColdStoreOptions& options, uint32_t segment_bytes) {
  ROWTIDE_TRY(check(options));
  Layout layout;
  uint64_t bytes = 0;
  for (const auto& directory : options.directories) bytes += directory.bytes;
  for (uint32_t payload : options.payload_bytes) layout.types.push_back(type_of(payload));
  const uint32_t largest = largest_record(options);
  layout.segment_bytes = segment_bytes != 0 ? segment_bytes : choose_segment(bytes, largest);
  for (RecordType& type : layout.types) {
    type.slots = most_slots(type, layout.segment_bytes);
    layout.stride = std::max(layout.stride, type.slots);
    layout.footer_bytes =
        std::max(layout.footer_bytes, most_footer_bytes(type.bytes, layout.segment_bytes));
  }
  for (size_t d = 0; d < options.directories.size(); ++d) {
    const uint64_t beside = beside_segments(d);
    const uint64_t have = options.directories[d].bytes;
    const uint64_t count = have > beside ? (have - beside) / layout.segment_bytes : 0;
    layout.segments.push_back(static_cast<uint32_t>(count));
    layout.segment_count += static_cast<uint32_t>(count);
  }
  ROWTIDE_TRY(check_budget(options, layout));
  layout.rows = std::min(options.max_rows, layout.record_count());
  layout.read_bytes = pages_of_largest(layout.types);
  layout.block_bytes = std::max(std::min(kBlock, layout.segment_bytes), layout.read_bytes);
  size_write_buffer(options, largest, &layout);
  return layout;
}

// Each directory may end in all but a byte of a segment, which only the last one needed can spare.
uint64_t Layout::least_bytes(const ColdStoreOptions& options, uint32_t segment_bytes) {
  const uint64_t segment =
      segment_bytes != 0 ? segment_bytes : choose_segment(0, largest_record(options));
  uint64_t least = (least_segments(options) - 1) * segment + 1;
  for (size_t d = 0; d < options.directories.size(); ++d) least += beside_segments(d) + segment - 1;
  return least;
}

uint32_t Layout::directory_of(uint32_t segment) const {
  uint32_t directory = 0;
  while (segment >= segments[directory]) segment -= segments[directory++];
  return directory;
}

uint32_t Layout::number_in_directory(uint32_t segment) const {
  for (uint32_t count : segments) {
    if (segment < count) break;
    segment -= count;
  }
  return segment;
}

}  // namespace rowtide::storage
