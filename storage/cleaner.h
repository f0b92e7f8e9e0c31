#pragma once
// Cleaner — gets space back: copies what lives in the emptiest segment to the end of the log.
//
//     when few segments are free:
//       victim = the emptiest sealed segment
//       for each block of it that holds live records: read it, and append each that still lives
//       once those copies are synced and no read of the victim is in flight: it is free
//
// What counts as live is asked at the moment of the append.

#include <cstdint>
#include <vector>

#include "storage/block.h"
#include "storage/index.h"
#include "storage/log.h"
#include "storage/syncer.h"

namespace rowtide::storage {

class Cleaner final : public IoUser {
 public:
  struct Parts {
    const Layout* layout;
    const LogFiles* files;
    const KeyDomain* domain;
    Index* index;
    Segments* segments;
    WriteBuffer* buffer;
    Log* log;
    Syncer* syncer;
    IoRouter* router;
  };
  // Errors: kNoSpace.
  static Result<std::unique_ptr<Cleaner>> create(const Parts& parts);

  // `newest_epoch`: the greatest that was ever appended.  `may_free`: false while a reader scans.
  void step(uint32_t newest_epoch, bool may_free);
  // Whether it can do nothing to free a segment, now or later.
  bool stuck() const;
  // Something has changed for which cleaning may pay again: a record was accepted, a commit let go.
  void begin_anew() { victims_ = 0; }
  // From now on one segment more than there are must be free, or no more than usual.
  void want_more(bool more = true);
  bool any_emptied() const { return !emptied_.empty(); }

  uint64_t records_copied() const { return records_copied_; }
  uint64_t bytes_copied() const { return bytes_copied_; }
  Status take_error() { return std::exchange(error_, Status()); }
  uint64_t reserved_bytes() const { return arena_.size(); }
  static uint64_t predict(const Layout& layout) { return layout.block_bytes; }

  void io_done(uint32_t id, int64_t result) override;

 private:
  struct Emptied {
    uint32_t segment;
    uint64_t sync;  // that covers its copies
  };

  uint32_t free_soon() const {
    return parts_.log->free_count() + static_cast<uint32_t>(emptied_.size());
  }
  uint32_t wanted_free() const { return std::max(parts_.log->reserve() + batch_, wanted_); }
  uint32_t least_gain() const;
  bool fruitless() const;
  uint64_t most_victims() const;
  bool choose();
  void next_block();
  void read_block();
  bool copy_block(uint32_t newest_epoch);
  Log::Opening opening() const;
  bool copy(uint32_t slot, uint32_t newest_epoch);
  void give_up(Status error, bool broken);
  void drop_victim();
  void free_synced();

  Parts parts_{};
  HostArena arena_;
  uint32_t batch_ = 1;   // victims for one sync
  uint32_t wanted_ = 0;  // free segments, beyond the usual
  uint32_t victim_ = kNoSegment;
  uint64_t victims_ = 0;  // since begin_anew()
  Block block_;
  bool reading_ = false, loaded_ = false, again_ = false;
  uint32_t moved_ = 0;  // bytes of the block that came so far
  std::vector<Emptied> emptied_;
  uint64_t records_copied_ = 0, bytes_copied_ = 0;
  Status error_;
};

}  // namespace rowtide::storage
