// How configuration values read: in files, in error messages, in --help.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <sstream>
#include <type_traits>
#include <utility>

#include "trainer/config_keys.h"

namespace rowtide {
namespace {

std::vector<std::string> split(std::string_view words) {
  std::vector<std::string> out;
  while (!words.empty()) {
    const size_t bar = std::min(words.find('|'), words.size());
    out.emplace_back(words.substr(0, bar));
    words.remove_prefix(std::min(bar + 1, words.size()));
  }
  return out;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < ' ' || c == 127) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04X", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

template <typename Number>
std::string number(Number value) {
  char text[64];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

std::string plain(const std::string& text) { return quoted(text); }
std::string plain(uint64_t value) { return number(value); }
std::string plain(double value) { return number(value); }
std::string plain(bool value) { return value ? "true" : "false"; }
template <typename Owner>
std::string inline_table(Owner entry, std::span<const ConfigKey<Owner>> keys) {
  std::string out;
  for (const auto& key : keys) {
    out += (out.empty() ? "{" : ", ") + std::string(key.name) + " = " + toml_of(key.field(entry));
  }
  return out + "}";
}
std::string plain(const TableConfig& entry) { return inline_table(entry, table_keys()); }
std::string plain(const SsdConfig& entry) { return inline_table(entry, ssd_keys()); }

template <typename Item>
std::string plain(const std::vector<Item>& items) {
  // Long entries get a line each.
  constexpr bool kLines = std::is_class_v<Item> && !std::is_same_v<Item, std::string>;
  std::string out = "[";
  for (size_t i = 0; i < items.size(); ++i) {
    out += (i == 0 ? "" : ",") + std::string(kLines ? "\n  " : i == 0 ? "" : " ") + plain(items[i]);
  }
  return out + (kLines && !items.empty() ? "\n]" : "]");
}

size_t edits(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({change, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Allowed::to_string() const {
  if (!words.empty()) {
    std::string out = "one of:";
    for (const std::string& word : split(words)) out += (out.back() == ':' ? " " : ", ") + word;
    return out;
  }
  std::string out = number(least) + " to " + number(most);
  if (most == std::ldexp(1.0, std::ilogb(most)) && most > 1e9) {
    out = number(least) + " to 2^" + number(std::ilogb(most));
  }
  if (size) out += " bytes, or a size such as \"64MiB\"";
  return out;
}

bool Allowed::has_word(std::string_view word) const {
  const auto all = split(words);
  return words.empty() || std::find(all.begin(), all.end(), word) != all.end();
}

std::string toml_of(const ConfigField& field) {
  return std::visit([](const auto* value) { return plain(*value); }, field);
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& words) {
  std::string best;
  size_t least = std::max<size_t>(word.size() / 2, 2) + 1;
  for (const std::string& candidate : words) {
    if (const size_t n = edits(word, candidate); n < least) least = n, best = candidate;
  }
  return best;
}

std::string describe_config_keys() {
  std::ostringstream out;
  Config defaults;
  std::string_view section;
  for (const auto& key : config_keys()) {
    if (key.section != section) out << "\n[" << (section = key.section) << "]\n";
    out << "  " << key.name << " = " << toml_of(key.field(defaults)) << "\n      " << key.meaning;
    if (!key.allowed.words.empty()) out << "; " << key.allowed.to_string();
    out << (key.may_change ? " (may change on --resume)\n" : "\n");
  }
  out << "\nEach of model.tables:\n ";
  for (const auto& key : table_keys()) out << " " << key.name;
  return out.str() + "\n";
}

}  // namespace rowtide
