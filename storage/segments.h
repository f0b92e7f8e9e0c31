#pragma once
// Segments — which segments are free, open or sealed, and which of their records still count.
//
// It knows liveness (see kept_commits.h) and space; nothing of bytes on disk but whether a segment
// has been allocated there.
//
//     free ─► open ─► sealed ─► emptied (nothing lives; its copies are not synced yet) ─► free
//
// Sealed segments hang in lists by how full of live records they are, so that the emptiest is found
// at once.

#include <cstdint>
#include <vector>

#include "runtime/base/host_arena.h"
#include "storage/kept_commits.h"
#include "storage/layout.h"

namespace rowtide::storage {

inline constexpr uint32_t kNoSegment = 0xFFFFFFFFu;

enum class SegmentState : uint8_t { kFree, kOpen, kSealed, kEmptied };

struct Segment {
  uint64_t sequence = 0;  // given with the first record since it was opened; 0: none yet
  uint64_t use = 0;
  uint32_t live = 0;        // records that are newest or needed by a kept commit
  uint32_t slot_count = 0;  // slots in use so far, skipped ones included
  uint32_t reads = 0;       // in flight; it is not freed meanwhile
  uint32_t previous = kNoSegment, next = kNoSegment;  // in its list
  uint16_t list = 0;                                  // which
  uint8_t type = 0;
  SegmentState state = SegmentState::kFree;
  uint8_t name_bytes = 0;   // of a record in the footer
  uint8_t bits = 0;         // of commits that some liveness byte here has set
  bool allocated = false;   // its bytes are on the disk
  bool held = false;        // the last manifest lists it without a footer: not cleaned meanwhile
  bool broken = false;      // cleaning found a record that does not verify: it stays as it is
  bool unreadable = false;  // cleaning could not read it: until the next commit it comes last
  bool overtaken = false;   // a record was superseded while a read was in flight
};

class Segments {
 public:
  // Errors: kNoSpace.
  static Result<Segments> create(const Layout* layout);

  Segment& operator[](uint32_t segment) { return segments_[segment]; }
  const Segment& operator[](uint32_t segment) const { return segments_[segment]; }
  uint32_t count() const { return static_cast<uint32_t>(segments_.size()); }

  KeptCommits& commits() { return commits_; }
  const KeptCommits& commits() const { return commits_; }

  // Liveness of one record.
  uint8_t& byte(uint64_t record) { return live_[record]; }
  uint8_t byte(uint64_t record) const { return live_[record]; }
  bool newest(uint64_t record) const { return (live_[record] & KeptCommits::kNewest) != 0; }
  // A record was stored: newest, or a copy of one with this byte.
  void add(uint64_t record, uint8_t byte);
  void add_newest(uint64_t record, uint32_t epoch);
  // A newer record of this epoch has come.
  void supersede(uint64_t record, uint32_t epoch);
  // It was copied elsewhere.
  void kill(uint64_t record);

  // Takes one that is free and allocated, from one directory after the other.  kNoSegment: none is.
  uint32_t take_free();
  // Makes one more of them, of a directory for which `may_grow(directory, segment)`.
  template <typename MayGrow>
  bool grow(MayGrow&& may_grow);
  void put_free(uint32_t segment);
  // A free segment of this directory that takes space on the disk; kNoSegment: none.
  uint32_t free_allocated(uint32_t directory) const;
  uint32_t free_allocated_count() const { return free_allocated_count_; }
  uint32_t unallocated_count(uint32_t directory) const {
    return static_cast<uint32_t>(fresh_[directory].size());
  }
  uint32_t allocated_count(uint32_t directory) const { return allocated_[directory]; }
  // Its bytes were given back to the disk.  REQUIRES: free and allocated.
  void released(uint32_t segment);

  void open(uint32_t segment, uint8_t type);
  void seal(uint32_t segment);
  void emptied(uint32_t segment);
  // The sealed segment with the least live records for its size of those that may be cleaned and
  // have at least `gain` dead slots; kNoSegment: none.
  uint32_t emptiest(uint32_t least_gain_bytes) const;

  // Starts over, for recovery: everything is free.
  void clear();
  // After recovery has set `state`, `live` and `allocated`: builds the lists.
  void build_lists();
  // No record is needed by this commit any more; frees the bit.
  void drop_commit(int bit);

  uint64_t reserved_bytes() const { return live_arena_.size() + table_bytes(*layout_); }
  uint64_t live_bytes() const;
  uint64_t live_records(uint32_t type) const { return live_of_type_[type]; }
  uint64_t newest_bytes() const;  // of them, of newest records; walks over all
  // Of records superseded since the last commit_made() that a commit still needed then.
  uint64_t kept_since_commit() const { return kept_since_commit_; }
  void commit_made();

  static uint64_t liveness_bytes(const Layout& layout) { return layout.record_count(); }
  static uint64_t table_bytes(const Layout& layout) {
    return layout.segment_count * (sizeof(Segment) + 2 * sizeof(uint32_t));
  }

 private:
  static constexpr uint32_t kLists = 257;  // by 256ths of the slots that live
  uint16_t list_of(const Segment& segment) const;
  void link(uint32_t segment);
  void unlink(uint32_t segment);
  void lost_one(uint32_t segment);

  const Layout* layout_ = nullptr;
  std::vector<Segment> segments_;
  std::vector<uint32_t> lists_;               // heads
  std::vector<std::vector<uint32_t>> free_;   // allocated and free, of each directory
  std::vector<std::vector<uint32_t>> fresh_;  // not allocated, of each directory
  std::vector<uint32_t> allocated_;           // count of each directory
  uint32_t free_allocated_count_ = 0;
  uint32_t turn_ = 0;  // the directory that gives next
  std::vector<uint64_t> live_of_type_;
  uint64_t kept_since_commit_ = 0;
  KeptCommits commits_;
  HostArena live_arena_;
  uint8_t* live_ = nullptr;
};

template <typename MayGrow>
bool Segments::grow(MayGrow&& may_grow) {
  const auto directories = static_cast<uint32_t>(fresh_.size());
  for (uint32_t i = 0; i < directories; ++i) {
    const uint32_t directory = (turn_ + i) % directories;
    if (fresh_[directory].empty()) continue;
    const uint32_t segment = fresh_[directory].back();
    if (!may_grow(directory, segment)) continue;
    fresh_[directory].pop_back();
    free_[directory].insert(free_[directory].begin(), segment);  // taken last: in order on the disk
    segments_[segment].allocated = true;
    ++allocated_[directory];
    ++free_allocated_count_;
    return true;
  }
  return false;
}

}  // namespace rowtide::storage
