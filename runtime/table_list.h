#pragma once
// TableList — the tables that a store knows, by name; kept in every commit.
//
// An id is given once per name and never reused, also after a table is dropped.  Adding, dropping
// and growing are possible at open; another width, precision, optimizer, scale or seed is an error.

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/rows.h"
#include "runtime/base/status.h"
#include "storage/cold_store.h"

namespace rowtide {

struct Layout;

struct CommitHeader {
  uint64_t step = 0;     // the first that is not in the commit
  uint64_t commits = 0;  // its number
};

class TableList {
 public:
  // Reads what a commit keeps.  Errors: kFormat, kCorrupt.
  static Result<TableList> parse(const std::string& meta, CommitHeader* header);
  // What the store behind these options keeps; an empty list if there is none.
  static Result<TableList> of_store(const StoreSummary& summary, CommitHeader* header);
  std::string to_meta(const CommitHeader& header) const;

  // Gives each table of the layout its id, and lists new ones.
  // Errors: kInvalid naming the table, what it was and what is asked for.
  Status assign_ids(uint64_t seed, Layout* layout);

  // All tables that ever were, for the log's index.
  std::vector<TableRows> all_rows() const;

 private:
  struct Table {
    std::string name;
    uint32_t id = 0;
    uint64_t rows = 0;
    RowFormat format;
    float init_scale = 0;
  };
  std::vector<Table> tables_;
  uint64_t seed_ = 0;
  bool fresh_ = true;
};

}  // namespace rowtide
