#pragma once
// criteo_rows — what Criteo lines mean, read the plain way: split, then convert field by field.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace rowtide {

struct CriteoRow {
  float label = 0;
  std::vector<float> dense;  // (13), ln(max(x, 0) + 1); missing is 0
  std::vector<int64_t> ids;  // (26), missing is 0
};

// Well-formed lines with a label, or without.
inline std::vector<CriteoRow> reference_criteo_rows(const std::string& text, bool has_label) {
  std::vector<CriteoRow> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    std::istringstream fields(line + "\t");
    CriteoRow row;
    std::string field;
    if (has_label && std::getline(fields, field, '\t')) row.label = field == "1";
    for (int i = 0; i < 13 && std::getline(fields, field, '\t'); ++i) {
      const long value = std::strtol(field.c_str(), nullptr, 10);
      row.dense.push_back(std::log1p(static_cast<float>(value > 0 ? value : 0)));
    }
    for (int i = 0; i < 26 && std::getline(fields, field, '\t'); ++i) {
      row.ids.push_back(static_cast<int64_t>(std::strtoul(field.c_str(), nullptr, 16)));
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace rowtide
