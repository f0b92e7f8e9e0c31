#pragma once
// config_resolve — what a configuration leaves open, and the rules between its keys.

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "trainer/config.h"

namespace rowtide {

// The tables of a data set known by name: "criteo-kaggle", "criteo-terabyte".
// Errors: kNotFound.
Result<std::vector<TableConfig>> known_tables(const std::string& name);
std::vector<std::string> known_table_names();

// "64MiB", "1.5 GB" or "4096" as bytes.  Errors: kInvalid.
Result<uint64_t> parse_size(std::string_view text);
// "1.23 GiB", for people.
std::string readable_size(double bytes);

// Fills what is left to defaults (tables' words, the directory after `name`.toml), makes the
// profile an absolute path, and checks the rules between keys.  Errors: kInvalid, naming the keys.
Status resolve_config(Config& config, const std::string& name);

// Whether a run of `before` may go on as `after`.  Errors: kInvalid, naming the key, old and new.
Status check_resume(const Config& before, const Config& after);

}  // namespace rowtide
