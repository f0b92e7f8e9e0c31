#include "trainer/criteo_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "tests/support/criteo_files.h"
#include "trainer/criteo_error.h"

namespace rowtide {
namespace {

// Up to two changes of the kind that break lines, or just fail to.
std::string mutated(std::string line, std::mt19937_64& random) {
  constexpr std::string_view kLikely = "\t\r-+0fFgG,. x9z\x7f\x80\xb0";
  for (uint64_t changes = random() % 3; changes > 0; --changes) {
    const size_t at = random() % line.size();
    const char c =
        random() % 2 ? kLikely[random() % kLikely.size()] : static_cast<char>(random() % 256);
    switch (random() % 4) {
      case 0:
        line[at] = c;
        break;
      case 1:
        line.insert(at, 1 + random() % 9, c);
        break;
      case 2:
        line.erase(at, std::min<size_t>(1 + random() % 3, line.size() - 1));
        break;
      case 3:
        line[at] = line[random() % line.size()];
        break;
    }
  }
  std::replace(line.begin(), line.end(), '\n', '!');
  return line;
}

void fill(TextChunk& chunk, const std::string& line) {
  std::memcpy(chunk.text.get(), line.data(), line.size());
  chunk.text[line.size()] = '\n';
  chunk.size = line.size() + 1;
  std::memset(chunk.text.get() + chunk.size, 0, TextChunk::kPadding);
}

// The parser, the explanation and the reference are written apart and agree on every line.
TEST(CriteoLinesTest, ParserAndExplanationAgreeOnEveryLine) {
  std::mt19937_64 random(77);
  int good = 0, bad = 0;
  for (const bool has_label : {true, false}) {
    CriteoLines lines(criteo_tables(), DenseTransform::kLog1p, has_label, OnError::kSkip);
    TextChunk chunk;
    ParsedRows rows;
    for (uint64_t i = 0; i < 15000; ++i) {
      const std::string line = mutated(random_criteo_line(i, has_label), random);
      fill(chunk, line);
      lines.parse(chunk, rows);
      std::string_view text = line;
      if (text.ends_with('\r')) text.remove_suffix(1);
      ASSERT_EQ(rows.rows == 1, explain_criteo_line(text, has_label).empty()) << line;
      ASSERT_EQ(rows.rows + rows.bad.size(), 1u);
      if (rows.rows == 0) {
        ++bad;
        EXPECT_EQ(rows.bad[0].text, text);
        continue;
      }
      ++good;
      const CriteoRow expected = reference_criteo_rows(line, has_label).at(0);
      for (size_t d = 0; d < 13; ++d) ASSERT_EQ(rows.dense[d], expected.dense[d]) << line;
      for (size_t f = 0; f < 26; ++f) {
        ASSERT_EQ(rows.ids[f * ParsedRows::kMaxRows], expected.ids[f]) << line;
      }
    }
  }
  EXPECT_GT(good, 10000);
  EXPECT_GT(bad, 10000);
}

// Both together have the fields of one line.
TEST(CriteoLinesTest, ALabelAloneDoesNotJoinTheLineBelow) {
  const std::string good = random_criteo_line(1);
  CriteoLines lines(criteo_tables(), DenseTransform::kLog1p, true, OnError::kSkip);
  TextChunk chunk;
  chunk.first_line = 7;
  fill(chunk, "1\n" + good.substr(2) + "\n" + good + "\nx");
  ParsedRows rows;
  lines.parse(chunk, rows);
  EXPECT_EQ(rows.rows, 1u);
  ASSERT_EQ(rows.bad.size(), 3u);
  EXPECT_EQ(rows.bad[0].line, 7u);
  EXPECT_EQ(rows.bad[0].text, "1");
  EXPECT_EQ(rows.bad[1].line, 8u);
  EXPECT_EQ(rows.bad[2].line, 10u);
  EXPECT_EQ(rows.bad[2].rows_before, 1u);
}

// The shortest well-formed line: as many rows as a chunk can ever hold.
TEST(CriteoLinesTest, AChunkOfTheShortestLinesFits) {
  CriteoLines lines(criteo_tables(), DenseTransform::kLog1p, false, OnError::kSkip);
  const std::string shortest(38, '\t');
  TextChunk chunk;
  std::string text;
  while (text.size() + 39 <= TextChunk::kBytes) text += shortest + "\n";
  text += std::string(TextChunk::kBytes - text.size(), 'x');
  fill(chunk, text);
  ParsedRows rows;
  lines.parse(chunk, rows);
  EXPECT_EQ(rows.rows, TextChunk::kBytes / 39);
  EXPECT_EQ(rows.bad.size(), 1u);
}

}  // namespace
}  // namespace rowtide
