#include "trainer/text_chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "tests/support/criteo_files.h"
#include "tests/support/scratch_directory.h"

namespace rowtide {
namespace {

class TextChunksTest : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& text) {
    write_file(scratch_.file(name), text);
    return scratch_.file(name);
  }

  // All text, with each chunk's place checked.
  std::string join(const std::vector<std::string>& files) {
    TextChunks chunks(files);
    TextChunk chunk;
    std::string text;
    uint64_t line = 1;
    size_t file = 0;
    for (;;) {
      status_ = chunks.next(chunk);
      if (!status_.ok() || chunk.size == 0) return text;
      if (chunk.file != file) line = 1;
      file = chunk.file;
      EXPECT_EQ(chunk.first_line, line);
      EXPECT_EQ(chunk.text[chunk.size - 1], '\n');
      const std::string_view part(chunk.text.get(), chunk.size);
      EXPECT_EQ(chunk.lines, static_cast<uint64_t>(std::count(part.begin(), part.end(), '\n')));
      line += chunk.lines;
      text += part;
    }
  }

  ScratchDirectory scratch_;
  Status status_;
};

// Lines of 0 to 500 characters.
std::string lines(uint64_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text;
  while (text.size() < bytes) text += std::string(random() % 501, 'a' + random() % 26) + "\n";
  return text;
}

TEST_F(TextChunksTest, PlainAndCompressedFilesOfAnyLengthComeWhole) {
  for (uint64_t bytes : {uint64_t{1}, uint64_t{4096}, TextChunk::kBytes - 600,
                         uint64_t{TextChunk::kBytes}, 3 * TextChunk::kBytes + 17}) {
    const std::string text = lines(bytes, bytes);
    EXPECT_EQ(join({put("plain", text)}), text);
    EXPECT_EQ(join({put("gz", gzipped(text))}), text);
  }
}

TEST_F(TextChunksTest, AChunkFullToTheLastByteIsRight) {
  const std::string full = std::string(TextChunk::kBytes - 3, 'a') + "\nb\n";
  ASSERT_EQ(full.size(), TextChunk::kBytes);
  EXPECT_EQ(join({put("full", full)}), full);
  EXPECT_EQ(join({put("twice", full + full)}), full + full);
}

TEST_F(TextChunksTest, JoinedMembersAndFilesFollowOneAnother) {
  const std::string a = lines(300000, 1), b = lines(70000, 2), c = lines(1000, 3);
  const std::string middle = a + "torn in the mid";
  EXPECT_EQ(join({put("joined.gz", gzipped(middle) + gzipped("dle\n" + b)), put("c", c)}),
            middle + "dle\n" + b + c);
  EXPECT_EQ(join({put("empty-member.gz", gzipped(a) + gzipped("") + gzipped(b))}), a + b);
}

TEST_F(TextChunksTest, TheLastLineOfEachFileGetsANewline) {
  EXPECT_EQ(join({put("a", "1\n2"), put("b", "3"), put("c.gz", gzipped("4"))}), "1\n2\n3\n4\n");
}

TEST_F(TextChunksTest, ALineLongerThanAChunkIsCutAndCountsOnce) {
  const std::string longest(3 * TextChunk::kBytes, 'x');
  const std::string cut = std::string(TextChunk::kBytes, 'x') + "\n";
  EXPECT_EQ(join({put("long", "1\n" + longest + "\n3\n4")}), "1\n" + cut + "3\n4\n");
  EXPECT_EQ(join({put("only", longest)}), cut);
}

TEST_F(TextChunksTest, ACutOrBrokenGzipIsNamedAfterItsWholeLines) {
  const std::string text = lines(600000, 4), packed = gzipped(text);
  for (size_t size : {size_t{3}, size_t{9}, size_t{30}, packed.size() / 2, packed.size() - 9,
                      packed.size() - 8, packed.size() - 1}) {
    const std::string got = join({put("cut.gz", packed.substr(0, size))});
    EXPECT_EQ(status_.code(), Code::kCorrupt) << size;
    EXPECT_NE(status_.message().find("cut.gz"), std::string::npos);
    EXPECT_NE(status_.message().find("byte " + std::to_string(size)), std::string::npos)
        << status_.message();
    EXPECT_TRUE(text.starts_with(got));
    EXPECT_TRUE(got.empty() || got.back() == '\n');
  }
  std::string wrong_sum = packed;
  wrong_sum[packed.size() - 8] ^= 1;
  join({put("sum.gz", wrong_sum)});
  EXPECT_EQ(status_.code(), Code::kCorrupt);
  EXPECT_NE(status_.message().find("checksum"), std::string::npos) << status_.message();
  join({put("junk.gz", packed + "junk behind it")});
  EXPECT_EQ(status_.code(), Code::kCorrupt) << status_.message();
}

TEST_F(TextChunksTest, AFileWithoutTextIsRefused) {
  join({put("nothing.gz", gzipped(""))});
  EXPECT_EQ(status_.code(), Code::kInvalid);
  EXPECT_NE(status_.message().find("nothing.gz"), std::string::npos);
}

TEST(CountNewlinesTest, CountsAnyLength) {
  for (size_t size : {0, 1, 15, 16, 17, 4079, 4080, 4081, 100003}) {
    std::string text(size, 'x');
    size_t expected = 0;
    for (size_t i = 0; i < size; i += 1 + i % 3) {
      text[i] = '\n';
      ++expected;
    }
    EXPECT_EQ(count_newlines(text.data(), size), expected);
    EXPECT_EQ(count_newlines(std::string(size, '\n').data(), size), size);
  }
}

}  // namespace
}  // namespace rowtide
