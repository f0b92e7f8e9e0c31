#pragma once
// Fetch — carries out moves: SSD > DDR > HBM and victims down.
//
// Moves run in the order that place gave them, in one thread, so a record's earlier move and the
// move that emptied a target are always done.  Only reads of the cold store take time: they land
// in staging buffers and are delivered by poll().  A move whose source may still wait for such a
// read belongs to a step that was dropped; settle() waits for it.
//
// Threads: the mover alone.

#include <cstdint>
#include <vector>

#include "runtime/layout.h"
#include "runtime/place.h"
#include "runtime/placed_batch.h"
#include "runtime/tiers.h"
#include "storage/cold_store.h"

namespace rowtide {

class Fetch {
 public:
  // `store` may be null: then every table is resident and no move exists.
  Fetch(const Layout& layout, uint64_t seed, std::vector<GroupTier>& tiers, ColdStore* store,
        Carver& ddr);

  // Runs the move; false: the log has no room now, poll() and call again.
  // Errors: kNoSpace, kIo of the cold store; the move may be tried again.
  Result<bool> run(const Move& move, uint32_t group, PlacedBatch& batch);

  // Brings the newest record of a row in the log to a hot slot (evaluation, void rows).
  void read(Key key, uint32_t group, Slot target, PlacedBatch& batch);
  // Fills in the initial value of a row that was never written.
  void initialise(Key key, uint32_t group, Slot target);

  // Drives the cold store and delivers ended reads.  Returns whether one ended.
  bool poll(bool wait);
  uint32_t pending() const { return pending_; }
  // Waits until no read of the batch is in flight.
  void settle(const PlacedBatch& batch) {
    while (batch.reads_pending > 0) poll(true);
  }

  void set_epoch(uint32_t epoch) { epoch_ = epoch; }

  void prefetch(const Move& move, uint32_t group) const;

  // Reads that failed for good since open: each left a void row.  Most runs have none.
  uint64_t failed_reads() const { return failed_reads_; }
  const Status& read_error() const { return read_error_; }  // the last of them
  // Reads the row again, in place, if it is void.  Errors: kIo, kCorrupt, naming the row.
  Status reread(Key key, uint32_t group, Slot slot, PlacedBatch& batch);

  struct Counters {
    uint64_t warm_in = 0, hot_in = 0;
    uint64_t dropped = 0;  // clean, not written again
    uint64_t never_written = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Staged {
    Key key;
    uint32_t group;
    Slot target;
    PlacedBatch* batch;
  };

  void bring_up(const Move& move, uint32_t group, PlacedBatch& batch);
  void lower(const Move& move, const GroupTier& tier);
  Result<bool> to_log(const Move& move, uint32_t group);

  const Layout& layout_;
  std::vector<GroupTier>& tiers_;
  ColdStore* store_;
  std::vector<float> scale_;       // (table ids) of initial values
  std::vector<RowFormat> format_;  // (table ids)
  uint64_t seed_;
  uint32_t epoch_ = 1;
  std::byte* staging_;  // (reads in flight, stride)
  uint64_t stride_;
  std::vector<Staged> staged_;
  std::vector<uint32_t> free_;
  std::vector<ColdStore::Done> done_;
  uint32_t pending_ = 0;
  uint64_t failed_reads_ = 0;
  Status read_error_;
  Counters counters_;
};

}  // namespace rowtide
