#pragma once
// plain_tables — what a runtime must compute: every row in one map, the plain reference loops.
//
// No tiers, no slots that last, no threads.  A row is made when a step updates it or it is written,
// so the map also says which rows were ever written.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/rows.h"
#include "kernels/update_rows.h"
#include "runtime/rowtide.h"

namespace rowtide {

// The arrays of one batch; as outputs or as gradients.
struct PlainValues {
  std::vector<float> pooled;
  std::vector<std::vector<float>> sequences;
  bool operator==(const PlainValues&) const = default;

  Values<float> out();
  Values<const float> gradient();

 private:
  std::vector<float*> out_;
  std::vector<const float*> in_;
};

class PlainTables {
 public:
  explicit PlainTables(const RuntimeOptions& options) : options_(options) {}

  const RuntimeOptions& options() const { return options_; }

  // Arrays of the batch's shapes, filled with `value`.
  PlainValues shaped(const Batch& batch, float value) const;

  PlainValues forward(const Batch& batch) const;
  // (ids), summed over the parts.
  std::vector<float> weights_gradient(const Batch& batch,
                                      const std::vector<PlainValues>& parts) const;
  void apply(const Batch& batch, std::vector<PlainValues> parts, const ApplyOptions& options,
             uint64_t step);

  // Weights widened to fp32, then state.
  std::vector<float> row(uint32_t table, int64_t row) const;
  void write(uint32_t table, int64_t row, const std::vector<float>& weights,
             const std::vector<float>& state);

  // As Runtime::digest(), of the rows alone.
  std::string digest() const;
  uint64_t rows_written() const { return rows_.size(); }

 private:
  struct Record {
    std::vector<std::byte> weights, state;
  };
  // One feature's ids and the distinct rows of its table in the batch, back to back.
  struct Used {
    std::vector<Key> keys;                  // by first occurrence, of one table
    std::vector<std::byte> weights, state;  // of all keys
    std::vector<uint32_t> unique;           // (ids of the batch) kSkipped where not of the table
    std::vector<Slot> slots;                // 0, 1, 2 ...
    RowFormat format;
    RowPlanes planes();
  };

  RowFormat format_of(uint32_t table) const;
  Record record(Key key) const;
  Used used_by(const Batch& batch, uint32_t table) const;
  template <typename Visit>
  void for_each_feature(const Batch& batch, Visit&& visit) const;

  RuntimeOptions options_;
  std::map<Key, Record> rows_;
};

}  // namespace rowtide
