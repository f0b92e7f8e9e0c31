#pragma once
// config_keys — the one table of configuration keys.
//
// Parsing, error messages, --help, the resolved file, the rule of what may change on resume and
// the README's list all come from it.  It knows no TOML.

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trainer/config.h"

namespace rowtide {

// Where a key's value lies, and thereby its type.
using ConfigField =
    std::variant<bool*, uint64_t*, double*, std::string*, std::vector<std::string>*,
                 std::vector<uint64_t>*, std::vector<TableConfig>*, std::vector<SsdConfig>*>;

struct Allowed {
  double least = 0, most = 0;     // of numbers, and of each number of a list
  std::string_view words;         // "a|b|c": of strings; empty: any
  bool size = false;              // bytes: "64MiB" is accepted too
  bool fraction = false;          // "1/7" is accepted too
  std::string to_string() const;  // "1 to 4096", "one of: a, b"
  bool has_word(std::string_view word) const;
};

// A key of a section, or of one table or SSD directory.
template <typename Owner>
struct ConfigKey {
  std::string_view section;  // empty in the entries of a list
  std::string_view name;
  ConfigField (*field)(Owner&);
  Allowed allowed;
  bool may_change;  // when a run is resumed
  std::string_view meaning;

  std::string path() const {
    return section.empty() ? std::string(name) : std::string(section) + "." + std::string(name);
  }
};

std::span<const ConfigKey<Config>> config_keys();
std::span<const ConfigKey<TableConfig>> table_keys();
std::span<const ConfigKey<SsdConfig>> ssd_keys();

// The value as it stands in a TOML file.
std::string toml_of(const ConfigField& field);

// The word of `words` nearest to `word`, by edits; empty if none is near.
std::string nearest_word(std::string_view word, const std::vector<std::string>& words);

// All keys with type, default and meaning, for --help.
std::string describe_config_keys();

}  // namespace rowtide
