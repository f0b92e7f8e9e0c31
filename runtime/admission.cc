#include "runtime/admission.h"

#include <cstring>
#include <fstream>

namespace rowtide {
namespace {

// Reads lines "table:row" of a profile into keys.
Status read_profile(const RuntimeOptions& options, std::unordered_set<Key>* keys) {
  std::ifstream file(options.profile);
  if (!file) return {Code::kNotFound, "profile " + options.profile + " cannot be read"};
  std::string line;
  for (uint64_t number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    const size_t colon = line.rfind(':');
    const std::string table = line.substr(0, colon);
    char* end = nullptr;
    const uint64_t row =
        colon == std::string::npos ? 0 : std::strtoull(line.c_str() + colon + 1, &end, 10);
    size_t t = 0;
    while (t < options.tables.size() && options.tables[t].name != table) ++t;
    if (end == nullptr || *end != 0 || end == line.c_str() + colon + 1 ||
        t == options.tables.size() || row >= options.tables[t].rows) {
      return {Code::kInvalid, options.profile + ":" + std::to_string(number) +
                                  ": expected table:row, found \"" + line + "\""};
    }
    keys->insert(make_key(static_cast<uint32_t>(t), row));
  }
  return {};
}

}  // namespace

Status check_admission(const RuntimeOptions& options) {
  if (options.admission == "always" || options.admission == "count") return {};
  if (options.admission != "profile") {
    return {Code::kInvalid,
            "admission \"" + options.admission + "\" is none of always, count, profile"};
  }
  std::unordered_set<Key> keys;
  return read_profile(options, &keys);
}

Admission::Admission(const RuntimeOptions& options, const Layout& layout, Carver& ddr)
    : kind_(options.admission == "count"     ? Kind::kCount
            : options.admission == "profile" ? Kind::kProfile
                                             : Kind::kAlways) {
  if (kind_ == Kind::kCount) {
    uint64_t rows = 0;
    for (const GroupLayout& group : layout.groups) rows += group.most_rows;
    capacity_ = rows * 64;  // remembers some hundred batches at two bits a key
    seen_ = ddr.take<uint8_t>(capacity_);
  }
  if (kind_ == Kind::kProfile) {
    std::unordered_set<Key> named;  // by index; keys carry the table's id
    (void)read_profile(options, &named);
    for (Key key : named) {
      profile_.insert(make_key(layout.tables[table_of(key)].id, row_of(key)));
    }
  }
}

bool Admission::seen_before(Key key) {
  if (capacity_ == 0) return true;
  bool seen = true;
  for (uint64_t hash : {mix64(key), mix64(~key)}) {
    const uint64_t bit = hash % (capacity_ * 8);
    seen &= (seen_[bit / 8] >> bit % 8 & 1) != 0;
    seen_[bit / 8] |= static_cast<uint8_t>(1 << bit % 8);
  }
  // Forgets all when a quarter of the bits may be set: then chance admits one in sixteen.
  if (!seen && ++added_ >= capacity_) {
    std::memset(seen_, 0, capacity_);
    added_ = 0;
  }
  return seen;
}

void Admission::judge(const Key* keys, uint32_t begin, uint32_t end, uint8_t* refused) {
  for (uint32_t u = begin; u < end; ++u) {
    switch (kind_) {
      case Kind::kAlways:
        refused[u] = 0;
        break;
      case Kind::kCount:
        refused[u] = !seen_before(keys[u]);
        break;
      case Kind::kProfile:
        refused[u] = profile_.count(keys[u]) == 0;
        break;
    }
  }
}

}  // namespace rowtide
