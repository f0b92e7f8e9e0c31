#include "trainer/field_scan.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace rowtide {
namespace {

// The text with something unfriendly behind it.
std::string padded(const std::string& text) { return text + std::string(64, 'f'); }

// A whole field as a number, by the standard library.
bool whole(const std::string& text, int base, uint32_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

TEST(FieldScanTest, HexAgreesWithTheStandardLibrary) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    char text[9];
    std::snprintf(text, sizeof text, i % 2 ? "%x" : "%X",
                  static_cast<uint32_t>(random()) >> random() % 32);
    uint32_t value = 0, expected = 0;
    ASSERT_TRUE(whole(text, 16, expected));
    ASSERT_TRUE(
        read_hex(padded(text).data(), static_cast<uint32_t>(std::string(text).size()), value));
    ASSERT_EQ(value, expected) << text;
  }
}

TEST(FieldScanTest, HexReadsUnsignedAndNothingAsZero) {
  uint32_t value = 1;
  EXPECT_TRUE(read_hex(padded("ffffffff").data(), 8, value));
  EXPECT_EQ(value, 0xffffffffu);
  EXPECT_TRUE(read_hex(padded("80000000").data(), 8, value));
  EXPECT_EQ(value, 0x80000000u);
  EXPECT_TRUE(read_hex(padded("").data(), 0, value));
  EXPECT_EQ(value, 0u);
  EXPECT_FALSE(read_hex(padded("123456789").data(), 9, value));
}

// Every byte in every place of fields of every length.
TEST(FieldScanTest, OnlyDigitsAreDigits) {
  for (uint32_t length = 1; length <= 8; ++length) {
    for (uint32_t place = 0; place < length; ++place) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string text(length, '7');
        text[place] = static_cast<char>(byte);
        uint32_t value, expected;
        ASSERT_EQ(read_hex(padded(text).data(), length, value), whole(text, 16, expected))
            << byte << " at " << place << " of " << length;
        const bool decimal = read_digits(padded(text).data(), length, value);
        ASSERT_EQ(decimal, whole(text, 10, expected)) << byte << " at " << place;
        if (decimal) {
          ASSERT_EQ(value, expected);
        }
      }
    }
  }
}

TEST(FieldScanTest, FindsEveryDelimiter) {
  std::mt19937 random(2);
  for (size_t size : {0, 1, 63, 64, 65, 1000}) {
    std::string text(size, 'x');
    std::vector<uint32_t> expected;
    for (size_t i = 0; i < size; ++i) {
      text[i] = "\t\nx\x89\x8a\v\b0"[random() % 8];
      if (text[i] == '\t' || text[i] == '\n') expected.push_back(static_cast<uint32_t>(i));
    }
    std::vector<uint32_t> found(size);
    found.resize(index_delimiters(padded(text).data(), size, found.data()));
    EXPECT_EQ(found, expected);
  }
}

}  // namespace
}  // namespace rowtide
