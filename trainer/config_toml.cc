// Reads and writes TOML by the tables of config_keys.h; the only file that sees the TOML library.

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include "trainer/config_toml.h"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <sstream>

#include "trainer/config_keys.h"
#include "trainer/config_resolve.h"

namespace rowtide {
namespace {

// Where a value stands, for messages.
struct Place {
  std::string source;  // "model.toml:12" or "--set data.batch=0"
  std::string key;     // "data.batch"

  Status error(const std::string& what) const {
    return {Code::kInvalid, source + ": " + key + what};
  }
  Status wrong(const std::string& shown, const Allowed& allowed) const {
    return error(" = " + shown + ": must be " + allowed.to_string());
  }
};

std::string show(const toml::node& node) {
  if (auto s = node.value_exact<std::string>()) return toml_of(&*s);
  if (auto b = node.value_exact<bool>()) return toml_of(&*b);
  if (auto i = node.value_exact<int64_t>()) return std::to_string(*i);
  if (auto d = node.value_exact<double>()) return toml_of(&*d);
  return node.is_array() ? "a list" : node.is_table() ? "a table" : "a date";
}

Status type_error(const toml::node& node, const char* type, const Place& place) {
  return place.error(" = " + show(node) + ": must be " + type);
}

// One read() for each alternative of ConfigField.

Status read(const toml::node& node, bool& out, const Allowed&, const Place& place) {
  const auto value = node.value_exact<bool>();
  if (!value) return type_error(node, "true or false", place);
  out = *value;
  return {};
}

Status read(const toml::node& node, uint64_t& out, const Allowed& allowed, const Place& place) {
  const auto text = node.value_exact<std::string>();
  if (text && allowed.size) {
    const auto bytes = parse_size(*text);
    if (!bytes.ok() || *bytes < allowed.least || *bytes > allowed.most) {
      return place.wrong(show(node), allowed);
    }
    out = *bytes;
    return {};
  }
  const auto value = node.value_exact<int64_t>();
  if (!value || *value < 0 || *value < allowed.least || *value > allowed.most) {
    return place.wrong(show(node), allowed);
  }
  out = static_cast<uint64_t>(*value);
  return {};
}

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// "1/7", or kNone.
double fraction(const std::string& text) {
  double parts[2];
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, parts[0]);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '/') return kNone;
  const auto second = std::from_chars(first.ptr + 1, end, parts[1]);
  return second.ec == std::errc{} && second.ptr == end ? parts[0] / parts[1] : kNone;
}

Status read(const toml::node& node, double& out, const Allowed& allowed, const Place& place) {
  const auto text = node.value_exact<std::string>();
  const double value = node.is_number()           ? node.value<double>().value_or(kNone)
                       : text && allowed.fraction ? fraction(*text)
                                                  : kNone;
  if (!(value >= allowed.least && value <= allowed.most)) return place.wrong(show(node), allowed);
  out = value;
  return {};
}

Status read(const toml::node& node, std::string& out, const Allowed& allowed, const Place& place) {
  const auto value = node.value_exact<std::string>();
  if (!value) return type_error(node, "a string", place);
  if (!allowed.has_word(*value)) return place.wrong(show(node), allowed);
  out = *value;
  return {};
}

template <typename Item>
Status read(const toml::node& node, std::vector<Item>& out, const Allowed& allowed,
            const Place& place) {
  const toml::array* const array = node.as_array();
  out.clear();
  if (array == nullptr) {  // one entry may stand for a list of one
    ROWTIDE_TRY(read(node, out.emplace_back(), allowed, place));
    return {};
  }
  for (const toml::node& entry : *array) {
    ROWTIDE_TRY(read(entry, out.emplace_back(), allowed, place));
  }
  return {};
}

Status read_field(const toml::node& node, const ConfigField& field, const Allowed& allowed,
                  const Place& place) {
  return std::visit([&](auto* value) { return read(node, *value, allowed, place); }, field);
}

Status unknown_key(const Place& place, std::string_view key, const std::vector<std::string>& all) {
  const std::string near = nearest_word(key, all);
  return {Code::kInvalid, place.source + ": unknown key " + std::string(key) +
                              (near.empty() ? "" : "; did you mean " + near + "?")};
}

template <typename Owner>
std::vector<std::string> names_of(std::span<const ConfigKey<Owner>> keys) {
  std::vector<std::string> names;
  for (const auto& key : keys) names.push_back(key.path());
  return names;
}

template <typename Owner>
Status read_keys(const toml::table& table, std::string_view section, Owner& owner,
                 std::span<const ConfigKey<Owner>> keys, const std::string& file,
                 const std::string& prefix) {
  for (const auto& [name, node] : table) {
    const std::string path =
        (section.empty() ? "" : std::string(section) + ".") + std::string(name.str());
    const Place place{file + ":" + std::to_string(name.source().begin.line), prefix + path};
    const auto key =
        std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return k.path() == path; });
    if (key == keys.end()) return unknown_key(place, path, names_of(keys));
    ROWTIDE_TRY(read_field(node, key->field(owner), key->allowed, place));
  }
  return {};
}

std::string file_of(const Place& place) { return place.source.substr(0, place.source.rfind(':')); }

template <typename Owner>
Status read_entry(const toml::node& node, Owner& out, std::span<const ConfigKey<Owner>> keys,
                  const Place& place) {
  if (!node.is_table()) return type_error(node, "a list of tables { ... }", place);
  return read_keys(*node.as_table(), "", out, keys, file_of(place), place.key + ": ");
}

Status read(const toml::node& node, TableConfig& out, const Allowed&, const Place& place) {
  return read_entry(node, out, table_keys(), place);
}
Status read(const toml::node& node, SsdConfig& out, const Allowed&, const Place& place) {
  return read_entry(node, out, ssd_keys(), place);
}

// The tables may also be a name.
Status read(const toml::node& node, std::vector<TableConfig>& out, const Allowed& allowed,
            const Place& place) {
  if (const auto name = node.value_exact<std::string>()) {
    auto tables = known_tables(*name);
    if (!tables.ok()) return place.error(" = " + show(node) + ": " + tables.status().message());
    out = std::move(*tables);
    return {};
  }
  return read<TableConfig>(node, out, allowed, place);
}

Status read_document(const toml::table& document, const std::string& file, Config& config) {
  std::vector<std::string> sections;
  for (const auto& key : config_keys()) sections.emplace_back(key.section);
  for (const auto& [name, node] : document) {
    const Place place{file + ":" + std::to_string(name.source().begin.line),
                      std::string(name.str())};
    if (std::find(sections.begin(), sections.end(), name.str()) == sections.end()) {
      return unknown_key(place, name.str(), sections);
    }
    if (!node.is_table()) return type_error(node, "a section, [NAME]", place);
    ROWTIDE_TRY(read_keys(*node.as_table(), name.str(), config, config_keys(), file, ""));
  }
  return {};
}

Status read_set(const std::string& set, Config& config) {
  const size_t equals = set.find('=');
  const std::string path = set.substr(0, equals);
  const Place place{"--set " + set, path};
  if (equals == std::string::npos) return {Code::kInvalid, place.source + ": no '='"};
  const auto keys = config_keys();
  const auto key =
      std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return k.path() == path; });
  if (key == keys.end()) return unknown_key(place, path, names_of(keys));

  const std::string text = set.substr(equals + 1);
  const toml::value<std::string> bare(text);
  const auto parsed = toml::parse("v = " + text);
  const toml::node* node = parsed ? parsed.table().get("v") : nullptr;
  const bool wants_word = std::holds_alternative<std::string*>(key->field(config));
  if (node == nullptr || (wants_word && !node->is_string())) node = &bare;
  return read_field(*node, key->field(config), key->allowed, place);
}

}  // namespace

Result<Config> parse_config(std::string_view text, const std::string& name,
                            const std::vector<std::string>& sets) {
  const auto parsed = toml::parse(text);
  if (!parsed) {
    return {Code::kInvalid, name + ":" + std::to_string(parsed.error().source().begin.line) +
                                ": no valid TOML: " + std::string(parsed.error().description())};
  }
  Config config;
  ROWTIDE_TRY(read_document(parsed.table(), name, config));
  for (const std::string& set : sets) ROWTIDE_TRY(read_set(set, config));
  if (Status status = resolve_config(config, name); !status.ok()) {
    return {status.code(), name + ": " + status.message()};
  }
  return config;
}

Result<Config> load_config(const std::string& path, const std::vector<std::string>& sets) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return {Code::kNotFound, "cannot read the configuration " + path};
  return parse_config(text.str(), path, sets);
}

std::string write_config(const Config& config) {
  Config copy = config;
  std::ostringstream out;
  out << "# The resolved configuration of this run.\n";
  std::string_view section;
  for (const auto& key : config_keys()) {
    if (key.section != section) out << "\n[" << (section = key.section) << "]\n";
    out << "# " << key.meaning << "\n" << key.name << " = " << toml_of(key.field(copy)) << "\n";
  }
  return out.str();
}

}  // namespace rowtide
