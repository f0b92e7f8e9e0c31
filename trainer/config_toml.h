#pragma once
// config_toml — a Config from a TOML file and --set overrides, and back.

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "trainer/config.h"

namespace rowtide {

// The resolved configuration of a file: every default filled in, every rule checked.
// `sets` are "section.key=value", the value as TOML or as a bare word.
// Errors: kNotFound (the file), kInvalid (names file, line and key; the nearest known key; what is
// allowed).
Result<Config> load_config(const std::string& path, const std::vector<std::string>& sets = {});

// The same from text; `name` stands for the file in messages and names the run directory.
Result<Config> parse_config(std::string_view text, const std::string& name,
                            const std::vector<std::string>& sets = {});

// Every key with its meaning, as TOML that parses to the same Config.
// REQUIRES: the configuration is resolved.
std::string write_config(const Config& config);

}  // namespace rowtide
