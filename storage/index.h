#pragma once
// Index — where the newest record of every key is: an exact hash table of small entries.
//
//     p     = a permutation of the key's number           no two keys share it
//     home  = p scaled to a line; rest = what home does not say of p
//     entry = rest | away | record number + 1             packed to the bit; 0 is empty
//
// A line is 64 bytes: entries and one byte of flags.  An entry lies in its home line, or in the one
// other line that home and rest give ("away"): two lines at most are looked at, one if nothing of
// that home is away.  home and rest together are the key, so a match is never false: no record is
// read for a row never written.  When both lines are full, entries move to their other line until
// one finds room (cuckoo hashing); the load is kept where this ends after a few moves.
//
// At most 9 bytes for each row while an entry takes at most 63 bits, which holds for all domains
// of given tables; open 64-bit keys cost about 10.

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/base/host_arena.h"
#include "storage/key_domain.h"

namespace rowtide::storage {

inline constexpr uint64_t kNoRecord = ~uint64_t{0};

struct IndexShape {
  uint64_t lines = 0;
  uint32_t slots = 0;  // entries of a line
  int rest_bits = 0;
  int record_bits = 0;

  // For `rows` keys of a domain of 2^domain_bits and record numbers below `records`.
  static IndexShape of(int domain_bits, uint64_t rows, uint64_t records);
  uint64_t bytes() const { return lines * 64; }
};

class Index {
 public:
  // The domain must outlive it.  `salt` decides which keys crowd together.  Errors: kNoSpace.
  static Result<Index> create(const KeyDomain& domain, uint64_t rows, uint64_t records,
                              uint64_t salt);

  // The record of a key, or kNoRecord.  REQUIRES (all calls): the domain contains the key.
  uint64_t find(uint64_t number) const;
  void prefetch(uint64_t number) const;
  // Adds a key or changes its record.  False: the key is not there and there is no room for it.
  bool set(uint64_t number, uint64_t record);
  void clear();

  uint64_t rows() const { return rows_; }
  // By table id, if the domain has tables.
  const std::vector<uint64_t>& table_rows() const { return table_rows_; }
  uint64_t reserved_bytes() const { return shape_.bytes(); }

 private:
  using Entry = unsigned __int128;
  struct Home {
    uint64_t line = 0, rest = 0;
    bool operator==(const Home&) const = default;
  };

  Home home_of(uint64_t number) const;
  uint64_t other_line(uint64_t line, uint64_t rest) const;
  std::byte* line_at(uint64_t line) const { return arena_.bytes() + line * 64; }
  Entry load(uint64_t line, uint32_t slot) const;
  void store(uint64_t line, uint32_t slot, Entry entry);
  int slot_of(uint64_t line, Entry tag) const;  // -1: none
  int narrow_slot_of(uint64_t line, uint64_t tag) const;
  int empty_slot(uint64_t line) const;
  // Where the key's entry is: line and slot, or slot -1.
  std::pair<uint64_t, int> locate(const Home& home) const;
  bool place(const Home& home, uint64_t record);

  Entry tag_of(uint64_t rest, bool away) const {
    return (Entry{rest} << 1 | Entry{away}) << shape_.record_bits;
  }

  IndexShape shape_;
  uint64_t salt_ = 0;
  int domain_bits_ = 64;
  uint64_t domain_mask_ = 0;
  uint32_t entry_bits_ = 0;
  Entry entry_mask_ = 0, record_mask_ = 0;
  uint64_t rows_ = 0, most_rows_ = 0;
  const KeyDomain* domain_ = nullptr;
  std::vector<uint64_t> table_rows_;
  uint32_t turn_ = 0;  // which entry moves next
  // Entries for which no room was found after many moves; in practice empty.
  std::vector<std::pair<Home, uint64_t>> strays_;
  HostArena arena_;
};

}  // namespace rowtide::storage
