#include "runtime/table_list.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "runtime/layout.h"

namespace rowtide {
namespace {

constexpr int kMetaFormat = 1;
constexpr const char* kPrecisions[] = {"fp32", "fp16", "bf16"};
constexpr const char* kOptimizers[] = {"sgd", "adagrad", "rowwise_adagrad", "adam"};

std::string describe(const RowFormat& format, float scale) {
  return "width " + std::to_string(format.width) + ", " +
         kPrecisions[static_cast<int>(format.precision)] + ", " +
         kOptimizers[static_cast<int>(format.optimizer)] + ", init_scale " + std::to_string(scale);
}

bool same(const RowFormat& a, const RowFormat& b) {
  return a.width == b.width && a.precision == b.precision && a.optimizer == b.optimizer;
}

}  // namespace

Result<TableList> TableList::parse(const std::string& meta, CommitHeader* header) {
  const Status unreadable = {Code::kCorrupt, "the commit's table list cannot be read"};
  const auto json = nlohmann::json::parse(meta, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object() || !json.contains("format")) return unreadable;
  if (json["format"] != kMetaFormat) {
    return {Code::kFormat, "the commit's table list has format " + json["format"].dump() +
                               ", this version reads " + std::to_string(kMetaFormat)};
  }
  TableList list;
  list.fresh_ = false;
  try {  // the library's way to say that a field is missing or of another type
    list.seed_ = json.at("seed");
    header->step = json.at("step");
    header->commits = json.at("commits");
    for (const auto& entry : json.at("tables")) {
      const uint32_t precision = entry.at("precision"), optimizer = entry.at("optimizer");
      Table table;
      table.name = entry.at("name");
      table.id = entry.at("id");
      table.rows = entry.at("rows");
      table.format.width = entry.at("width");
      table.format.precision = static_cast<Precision>(precision);
      table.format.optimizer = static_cast<OptimizerKind>(optimizer);
      table.init_scale = entry.at("init_scale");
      if (precision >= std::size(kPrecisions) || optimizer >= std::size(kOptimizers) ||
          table.id != list.tables_.size()) {
        return unreadable;
      }
      list.tables_.push_back(std::move(table));
    }
  } catch (const nlohmann::json::exception&) {
    return unreadable;
  }
  return list;
}

Result<TableList> TableList::of_store(const StoreSummary& summary, CommitHeader* header) {
  return summary.meta.empty() ? Result<TableList>(TableList()) : parse(summary.meta, header);
}

std::vector<TableRows> TableList::all_rows() const {
  std::vector<TableRows> rows;
  for (const Table& table : tables_) {
    rows.push_back({static_cast<uint16_t>(table.id), table.rows});
  }
  return rows;
}

std::string TableList::to_meta(const CommitHeader& header) const {
  nlohmann::json json = {{"format", kMetaFormat},
                         {"seed", seed_},
                         {"step", header.step},
                         {"commits", header.commits},
                         {"tables", nlohmann::json::array()}};
  for (const Table& table : tables_) {
    json["tables"].push_back({{"name", table.name},
                              {"id", table.id},
                              {"rows", table.rows},
                              {"width", table.format.width},
                              {"precision", static_cast<int>(table.format.precision)},
                              {"optimizer", static_cast<int>(table.format.optimizer)},
                              {"init_scale", table.init_scale}});
  }
  return json.dump();
}

Status TableList::assign_ids(uint64_t seed, Layout* layout) {
  if (!fresh_ && seed != seed_) {
    return {Code::kInvalid, "seed: the store was made with " + std::to_string(seed_) +
                                ", now it is " + std::to_string(seed)};
  }
  seed_ = seed;
  for (TableLayout& wanted : layout->tables) {
    const auto known = std::find_if(tables_.begin(), tables_.end(),
                                    [&](const Table& t) { return t.name == wanted.name; });
    if (known == tables_.end()) {
      if (tables_.size() >= kMaxTables) {
        return {Code::kInvalid,
                "table " + wanted.name + ": the store has had 65535 tables already"};
      }
      wanted.id = static_cast<uint32_t>(tables_.size());  // dropped tables stay listed
      tables_.push_back({wanted.name, wanted.id, wanted.rows, wanted.format, wanted.init_scale});
      continue;
    }
    if (!same(known->format, wanted.format) || known->init_scale != wanted.init_scale) {
      return {Code::kInvalid, "table " + wanted.name + " was made with " +
                                  describe(known->format, known->init_scale) + "; now it is " +
                                  describe(wanted.format, wanted.init_scale)};
    }
    if (wanted.rows < known->rows) {
      return {Code::kInvalid, "table " + wanted.name + " has " + std::to_string(known->rows) +
                                  " rows and cannot shrink to " + std::to_string(wanted.rows)};
    }
    known->rows = wanted.rows;
    wanted.id = known->id;
  }
  return {};
}

}  // namespace rowtide
