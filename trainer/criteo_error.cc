#include "trainer/criteo_error.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <vector>

namespace rowtide {
namespace {

constexpr size_t kDense = 13, kIds = 26;
constexpr size_t kShown = 32;           // characters of a field that a message repeats
constexpr size_t kLongestLine = 4'096;  // a real one has at most 392 characters

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t begin = 0;;) {
    const size_t end = line.find('\t', begin);
    fields.push_back(line.substr(begin, end - begin));
    if (end == line.npos) return fields;
    begin = end + 1;
  }
}

// In quotes, shortened, and without characters that a terminal would act on.
std::string quoted(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\t') {
      out += "\\t";
    } else if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += std::string("\\x") + kHex[byte >> 4] + kHex[byte & 15];
    }
  }
  return out + (text.size() > kShown ? "...\"" : "\"");
}

template <typename Integer>
bool is_whole(std::string_view text, int base) {
  Integer value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

// What the field should have been; null if it is that.  `number` counts from the label as 0.
const char* expectation(std::string_view text, size_t number) {
  if (number == 0) return text == "0" || text == "1" ? nullptr : "the label 0 or 1";
  if (text.empty()) return nullptr;
  if (number <= kDense) {
    const size_t digits = text.size() - (text[0] == '-');
    return digits <= 10 && is_whole<int32_t>(text, 10)
               ? nullptr
               : "a decimal integer of 32 bits (at most 10 digits), or nothing";
  }
  return text.size() <= 8 && is_whole<uint32_t>(text, 16) ? nullptr
                                                          : "1 to 8 hexadecimal digits, or nothing";
}

std::string field_name(size_t number) {
  if (number == 0) return "label";
  return number <= kDense ? "I" + std::to_string(number) : "C" + std::to_string(number - kDense);
}

std::string plural(size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// A hint for the two mistakes that are common.
std::string hint(std::string_view line, size_t fields) {
  const auto commas = static_cast<size_t>(std::count(line.begin(), line.end(), ','));
  if (fields < 3 && commas > kDense) return " (the line has commas; convert it to tabs)";
  return "";
}

}  // namespace

std::string explain_criteo_line(std::string_view line, bool has_label) {
  const size_t expected = has_label + kDense + kIds;
  if (line.size() > kLongestLine) {
    return "1: expected " + plural(expected, "field") + ", there is a line of more than " +
           plural(kLongestLine, "character") + ": " + quoted(line);
  }
  const auto fields = split(line);
  if (fields.size() < expected) {
    return std::to_string(line.size() + 1) + ": expected " + std::to_string(expected) +
           " fields separated by tabs" +
           (has_label ? " (label, I1..I13, C1..C26)" : " (I1..I13, C1..C26, no label)") +
           ", there " + (fields.size() == 1 ? "is " : "are ") + std::to_string(fields.size()) +
           ": " + quoted(line) + hint(line, fields.size());
  }
  size_t column = 1;
  for (size_t i = 0; i < expected; ++i) {
    const size_t number = i + !has_label;
    if (const char* what = expectation(fields[i], number)) {
      const bool letters =
          i == 0 && !fields[i].empty() && std::isalpha(static_cast<unsigned char>(fields[i][0]));
      return std::to_string(column) + ": field " + std::to_string(i + 1) + " (" +
             field_name(number) + "): expected " + what + ", there is " + quoted(fields[i]) +
             (letters ? " (a header line? Criteo files have none)" : "");
    }
    column += fields[i].size() + 1;
  }
  if (fields.size() > expected) {
    return std::to_string(column) + ": expected the end of the line after field " +
           std::to_string(expected) + " (C26), there are " + std::to_string(fields.size()) +
           " fields; the next is " + quoted(fields[expected]);
  }
  return "";
}

std::string explain_first_criteo_line(std::string_view line, bool& has_label) {
  const auto tabs = static_cast<size_t>(std::count(line.begin(), line.end(), '\t'));
  has_label = tabs + 1 != kDense + kIds;
  return explain_criteo_line(line, has_label);
}

}  // namespace rowtide
