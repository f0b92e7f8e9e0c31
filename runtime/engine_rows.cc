#include <cstring>

#include "kernels/rounding.h"
#include "runtime/engine.h"

namespace rowtide {
namespace {

// Weights of a row in its precision, from and to fp32; rounded to nearest.
void widen_row(const RowFormat& format, const std::byte* weights, float* out) {
  if (format.precision == Precision::kFp32) {
    std::memcpy(out, weights, format.weight_bytes());
    return;
  }
  for (uint32_t d = 0; d < format.width; ++d) {
    uint16_t x;
    std::memcpy(&x, weights + 2 * d, 2);
    out[d] = format.precision == Precision::kFp16 ? widen_fp16(x) : widen_bf16(x);
  }
}

void narrow_row(const RowFormat& format, const float* in, std::byte* weights) {
  if (format.precision == Precision::kFp32) {
    std::memcpy(weights, in, format.weight_bytes());
    return;
  }
  for (uint32_t d = 0; d < format.width; ++d) {
    const uint16_t x =
        format.precision == Precision::kFp16 ? nearest_fp16(in[d]) : nearest_bf16(in[d]);
    std::memcpy(weights + 2 * d, &x, 2);
  }
}

}  // namespace

Status Runtime::Engine::check_row_call(uint32_t table, std::span<const int64_t> rows,
                                       size_t weights, size_t state, bool with_state) const {
  if (table >= layout_.tables.size()) {
    return {Code::kInvalid,
            "table " + std::to_string(table) + " of " + std::to_string(layout_.tables.size())};
  }
  const TableLayout& t = layout_.tables[table];
  const size_t floats = t.format.state_bytes() / 4;
  if (weights != rows.size() * t.format.width || (with_state && state != rows.size() * floats)) {
    return {Code::kInvalid, "table " + t.name + ": " + std::to_string(rows.size()) + " rows need " +
                                std::to_string(rows.size() * t.format.width) + " weights and " +
                                std::to_string(rows.size() * floats) + " state floats"};
  }
  for (int64_t row : rows) {
    if (static_cast<uint64_t>(row) < t.rows) continue;
    return {Code::kInvalid, "table " + t.name + ": row " + std::to_string(row) + " is not in [0, " +
                                std::to_string(t.rows) + ")"};
  }
  return {};
}

Status Runtime::Engine::read_row(const TableLayout& table, Key key, std::byte* record) {
  const GroupTier& tier = tiers_[table.group];
  if (table.resident) {
    const Slot slot = table.base + static_cast<Slot>(row_of(key));
    fill_resident(table, key, slot);
    tier.load(slot, record);
    return {};
  }
  const GroupDirectory::Address at = directories_[table.group].find(key);
  if (at.place == Place::kHot && (tier.hot_flags[at.slot] & kVoid) == 0) {
    tier.load(at.slot, record);
  } else if (at.place == Place::kWarm && (tier.warm_flags[at.slot] & kVoid) == 0) {
    std::memcpy(record, tier.warm_record(at.slot), tier.record_bytes);
  } else {
    // Through the evaluation slot that no evaluation takes.
    const Slot slot = layout_.groups[table.group].resident_base() - 1;
    fetch_->read(key, table.group, slot, evaluation_placed_);
    fetch_->settle(evaluation_placed_);
    if ((tier.hot_flags[slot] & kVoid) != 0) return fetch_->read_error();
    tier.load(slot, record);
  }
  return {};
}

Status Runtime::Engine::write_row(const TableLayout& table, Key key, const std::byte* record) {
  const GroupTier& tier = tiers_[table.group];
  if (table.resident) {
    const Slot slot = table.base + static_cast<Slot>(row_of(key));
    tier.store(slot, record);
    tier.set_flags(slot, kPresent | kUsed | kDirty);
    return {};
  }
  const GroupDirectory::Address at = directories_[table.group].find(key);
  if (at.place == Place::kHot) {
    tier.store(at.slot, record);
    tier.hot_flags[at.slot] = kDirty;
  } else if (at.place == Place::kWarm) {
    std::memcpy(tier.warm_record(at.slot), record, tier.record_bytes);
    tier.warm_flags[at.slot] = kDirty;
  } else {
    const uint32_t weights = tier.hot.weight_stride;
    ROWTIDE_TRY(append_record(table.group, key, {record, weights},
                              {record + weights, tier.hot.state_stride}));
  }
  return {};
}

Status Runtime::Engine::read_rows(uint32_t table, std::span<const int64_t> rows,
                                  std::span<float> weights, std::span<float> state) {
  ROWTIDE_TRY(check_row_call(table, rows, weights.size(), state.size(), !state.empty()));
  const TableLayout& t = layout_.tables[table];
  return request([&]() -> Status {
    while (fetch_->pending() > 0) fetch_->poll(/*wait=*/true);
    for (size_t i = 0; i < rows.size(); ++i) {
      const Key key = make_key(t.id, static_cast<uint64_t>(rows[i]));
      ROWTIDE_TRY(read_row(t, key, record_.data()));
      widen_row(t.format, record_.data(), weights.data() + i * t.format.width);
      if (!state.empty()) {
        std::memcpy(state.data() + i * t.format.state_bytes() / 4,
                    record_.data() + t.format.weight_bytes(), t.format.state_bytes());
      }
    }
    return {};
  });
}

Status Runtime::Engine::write_rows(uint32_t table, std::span<const int64_t> rows,
                                   std::span<const float> weights, std::span<const float> state) {
  ROWTIDE_TRY(check_row_call(table, rows, weights.size(), state.size(), !state.empty()));
  {
    std::lock_guard lock(mutex_);
    if (schedule_.oldest_open() != schedule_.known() || evaluation_open_) {
      return {Code::kBusy, "write_rows: a step or an evaluation is open"};
    }
  }
  const TableLayout& t = layout_.tables[table];
  return request([&]() -> Status {
    while (fetch_->pending() > 0) fetch_->poll(/*wait=*/true);
    for (size_t i = 0; i < rows.size(); ++i) {
      const Key key = make_key(t.id, static_cast<uint64_t>(rows[i]));
      narrow_row(t.format, weights.data() + i * t.format.width, record_.data());
      std::byte* to = record_.data() + t.format.weight_bytes();
      std::memset(to, 0, t.format.state_bytes());
      if (!state.empty()) {
        std::memcpy(to, state.data() + i * t.format.state_bytes() / 4, t.format.state_bytes());
      }
      ROWTIDE_TRY(write_row(t, key, record_.data()));
    }
    return {};
  });
}

}  // namespace rowtide
