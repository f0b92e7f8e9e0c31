#include "runtime/admission.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <unordered_map>

namespace rowtide {
namespace {

// Calls visit(table, row) for each line "table:row" of the profile.
template <typename Visit>
Status read_profile(const RuntimeOptions& options, Visit&& visit) {
  std::ifstream file(options.profile);
  if (!file) return {Code::kNotFound, "profile " + options.profile + " cannot be read"};
  std::unordered_map<std::string, uint32_t> index;
  for (uint32_t t = 0; t < options.tables.size(); ++t) index.emplace(options.tables[t].name, t);
  std::string line;
  for (uint64_t number = 1; std::getline(file, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const size_t colon = line.rfind(':');
    const auto table = index.find(line.substr(0, colon));
    const char* digits = colon == std::string::npos ? "" : line.c_str() + colon + 1;
    char* end = nullptr;
    const uint64_t row = std::strtoull(digits, &end, 10);
    if (end == digits || *end != 0 || *digits < '0' || *digits > '9' || table == index.end() ||
        row >= options.tables[table->second].rows) {
      return {Code::kInvalid, options.profile + ":" + std::to_string(number) +
                                  ": expected table:row, found \"" + line + "\""};
    }
    visit(table->second, row);
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
  return read_profile(options, [](uint32_t, uint64_t) {});
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
    uint64_t lines = 0;
    (void)read_profile(options, [&](uint32_t, uint64_t) { ++lines; });
    capacity_ = lines * 2 + 1;
    named_ = ddr.take<Key>(capacity_);
    if (named_ == nullptr) return;
    std::fill_n(named_, capacity_, kNoKey);
    (void)read_profile(options, [&](uint32_t table, uint64_t row) {
      // The file may have grown meanwhile; what has no room is not admitted.
      if (added_ == lines) return;
      ++added_;
      const Key key = make_key(layout.tables[table].id, row);
      *named(key) = key;
    });
  }
}

Key* Admission::named(Key key) const {
  uint64_t at = mix64(key) % capacity_;
  while (named_[at] != key && named_[at] != kNoKey) at = at + 1 == capacity_ ? 0 : at + 1;
  return named_ + at;
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
        refused[u] = *named(keys[u]) == kNoKey;
        break;
    }
  }
}

}  // namespace rowtide
