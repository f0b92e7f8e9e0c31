#pragma once
// Recovery — from what a crash left on the disk to the index and the liveness of every record.
//
//     classify:  read the first and the last page of every segment.  A footer is trusted if the
//                segment was sealed before the last commit; all others are scanned, and of the
//                segments that the manifest lists every synced record must verify
//     passes:    for each kept commit, oldest first, over the records written after the commit
//                before it: the newest of each key wins, and supersedes what an older pass found
//     settle:    liveness bytes and live counts; scanned segments that live get a footer
//
// Which of two records of one key and one pass is newer: the one in the segment that was opened
// later, then the one in the later slot; except that a copy that was already superseded when it was
// made is the newest of its pass if what superseded it came after the pass, and dead otherwise (if
// what superseded it died in a crash, it is like any other).
//
// Memory: bounded: what the store has reserved, and 32 bytes a segment until it returns.

#include <vector>

#include "storage/block_io.h"
#include "storage/footer.h"
#include "storage/index.h"
#include "storage/manifest.h"
#include "storage/segments.h"

namespace rowtide::storage {

class Recovery {
 public:
  struct Parts {
    const Layout* layout;
    const LogFiles* files;
    const KeyDomain* domain;
    Index* index;
    Segments* segments;
    BlockIo* blocks;
    const Manifest* manifest;
  };
  explicit Recovery(const Parts& parts) : parts_(parts) {}

  // Rebuilds the index and the segments as of commit `view`, keeping `kept` (rising epochs; the
  // last is `view`; none if view is 0).  A `writer` also completes footers. Errors: kIo, kCorrupt
  // (file and offset), kInvalid (a key outside the domain, a changed type).
  Status run(uint32_t view, const std::vector<uint32_t>& kept, bool writer);

  uint32_t greatest_epoch() const { return greatest_epoch_; }        // of any record or heir
  uint64_t greatest_sequence() const { return greatest_sequence_; }  // of any segment

 private:
  enum class Source : uint8_t { kNothing, kFooter, kScan };
  struct Found {
    Source source = Source::kNothing;
    uint32_t greatest_epoch = 0;
    uint32_t slot_count = 0, columns_bytes = 0, columns_checksum = 0;  // of the footer
    uint32_t synced_slots = 0, synced_records = 0;                     // of a listed segment
  };

  Status classify();
  Status classify_one(uint32_t segment, const std::byte* first, const std::byte* last);
  Status adopt(uint32_t segment, Source source, uint32_t type, uint32_t payload_bytes,
               uint64_t sequence, uint64_t use);
  const OpenSegment* listed(uint32_t segment) const;

  // Calls visit(slot, name) for each record of a segment, from its footer or its bytes.
  template <typename Visit>
  Status for_each(uint32_t segment, Visit&& visit);
  template <typename Visit>
  Status for_each_in_footer(uint32_t segment, Visit&& visit, bool* readable);
  template <typename Visit>
  Status scan(uint32_t segment, Visit&& visit);

  Status pass(uint32_t number, uint32_t after, uint32_t upto);
  Status enter(uint64_t record, const RecordName& name, uint32_t pass, uint32_t upto);
  void settle();
  Status complete_footers();
  Status remove_footer(uint32_t segment);

  Parts parts_;
  std::vector<Found> found_;
  std::vector<uint32_t> kept_;
  std::vector<int> bits_;  // of the kept commits
  uint32_t greatest_epoch_ = 0;
  uint64_t greatest_sequence_ = 0;
};

}  // namespace rowtide::storage
