#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "tests/support/as_nobody.h"
#include "tests/support/criteo_files.h"
#include "tests/support/scratch_directory.h"
#include "trainer/criteo_error.h"

namespace rowtide {
namespace {

// A well-formed line: label 0, I1..I13 = 1..13, C1..C26 = 1..26 as 8 digits.
std::vector<std::string> plain_fields() {
  std::vector<std::string> fields = {"0"};
  for (int i = 1; i <= 13; ++i) fields.push_back(std::to_string(i));
  for (int i = 1; i <= 26; ++i) fields.push_back("000000" + std::to_string(10 + i));
  return fields;
}

std::string joined(const std::vector<std::string>& fields, const char* by = "\t") {
  std::string line;
  for (const std::string& field : fields) line += by + field;
  return line.substr(1);
}

// The plain line with one field (from 1) replaced.
std::string with(size_t field, const std::string& text) {
  auto fields = plain_fields();
  fields[field - 1] = text;
  return joined(fields);
}

const std::string kGood = joined(plain_fields());

class CriteoErrorsTest : public ::testing::Test {
 protected:
  std::string put(const std::string& text) {
    write_file(scratch_.file("data.tsv"), text);
    return scratch_.file("data.tsv");
  }
  // The error of reading a file with this text, without the folder; empty if there is none.
  std::string error_of(const std::string& text) {
    std::string message = read_all(put(text)).status.message();
    const size_t at = message.find(scratch_.path());
    if (at != std::string::npos) message.erase(at, scratch_.path().size() + 1);
    return message;
  }

  ScratchDirectory scratch_;
};

TEST_F(CriteoErrorsTest, AMalformedLineIsNamedWithWhatWasExpected) {
  struct Case {
    std::string line, error;
  };
  const std::string forty = "40 fields separated by tabs (label, I1..I13, C1..C26)";
  const std::string integer = "a decimal integer of 32 bits (at most 10 digits), or nothing";
  const std::string hex = "1 to 8 hexadecimal digits, or nothing";
  const Case cases[] = {
      {with(1, ""), "1: field 1 (label): expected the label 0 or 1, there is \"\""},
      {with(1, "2"), "1: field 1 (label): expected the label 0 or 1, there is \"2\""},
      {with(1, "01"), "1: field 1 (label): expected the label 0 or 1, there is \"01\""},
      {with(2, "x"), "3: field 2 (I1): expected " + integer + ", there is \"x\""},
      {with(4, "-"), "7: field 4 (I3): expected " + integer + ", there is \"-\""},
      {with(4, "1.5"), "7: field 4 (I3): expected " + integer + ", there is \"1.5\""},
      {with(4, "+1"), "7: field 4 (I3): expected " + integer + ", there is \"+1\""},
      {with(4, " 1"), "7: field 4 (I3): expected " + integer + ", there is \" 1\""},
      {with(4, "2147483648"), "7: field 4 (I3): expected " + integer + ", there is \"2147483648\""},
      {with(4, "-2147483649"),
       "7: field 4 (I3): expected " + integer + ", there is \"-2147483649\""},
      {with(4, "00000000001"),
       "7: field 4 (I3): expected " + integer + ", there is \"00000000001\""},
      {with(14, "12\r"), "30: field 14 (I13): expected " + integer + ", there is \"12\\x0d\""},
      {with(21, "123456789"), "87: field 21 (C7): expected " + hex + ", there is \"123456789\""},
      {with(21, "0x12"), "87: field 21 (C7): expected " + hex + ", there is \"0x12\""},
      {with(21, "12g4"), "87: field 21 (C7): expected " + hex + ", there is \"12g4\""},
      {with(40, "-1"), "258: field 40 (C26): expected " + hex + ", there is \"-1\""},
      {with(40, std::string("\0\1", 2)),
       "258: field 40 (C26): expected " + hex + ", there is \"\\x00\\x01\""},
      {with(40, "1\t2"),
       "260: expected the end of the line after field 40 (C26), there are 41 fields; the next is "
       "\"2\""},
      {kGood + "\t",
       "267: expected the end of the line after field 40 (C26), there are 41 fields; "
       "the next is \"\""},
      {"", "1: expected " + forty + ", there is 1: \"\""},
      {"junk", "5: expected " + forty + ", there is 1: \"junk\""},
      {joined(plain_fields(), ","),
       "266: expected " + forty +
           ", there is 1: \"0,1,2,3,4,5,6,7,8,9,10,11,12,13,...\" (the line has commas; convert it "
           "to tabs)"},
      {kGood.substr(0, kGood.rfind('\t')),
       "257: expected " + forty +
           ", there are 39: \"0\\t1\\t2\\t3\\t4\\t5\\t6\\t7\\t8\\t9\\t10\\t11\\t12\\t13\\t...\""},
      {std::string(5000, 'x'),
       "1: expected 40 fields, there is a line of more than 4096 "
       "characters: \"" +
           std::string(32, 'x') + "...\""},
      {std::string(600000, '\t'),
       "1: expected 40 fields, there is a line of more than 4096 "
       "characters: \"" +
           [] {
             std::string tabs;
             for (int i = 0; i < 32; ++i) tabs += "\\t";
             return tabs;
           }() +
           "...\""},
  };
  for (const Case& c : cases) {
    for (const char* end : {"\n", "\r\n"}) {
      EXPECT_EQ(error_of(kGood + end + kGood + end + c.line + end + kGood + end),
                "data.tsv:3:" + c.error);
    }
    EXPECT_EQ(error_of(kGood + "\n" + kGood + "\n" + c.line),
              c.line.empty() ? "" : "data.tsv:3:" + c.error);
  }
}

TEST_F(CriteoErrorsTest, ALineBesideTheLayoutOfTheFirstIsAnError) {
  const std::string unlabelled = kGood.substr(2);
  EXPECT_TRUE(error_of(kGood + "\n" + unlabelled).starts_with("data.tsv:2:"));
  EXPECT_TRUE(error_of(unlabelled + "\n" + kGood).starts_with("data.tsv:2:"));
  EXPECT_EQ(error_of(unlabelled + "\n" + unlabelled), "");
}

TEST_F(CriteoErrorsTest, TheFirstLineIsCheckedAtOpen) {
  std::string header = "label";
  for (int i = 1; i <= 39; ++i) header += "\tx" + std::to_string(i);
  const std::string file = put(header + "\n" + kGood + "\n");
  const auto reader = CriteoReader::open({.files = {file}, .tables = criteo_tables()});
  EXPECT_EQ(reader.status().code(), Code::kFormat);
  EXPECT_TRUE(reader.status().message().ends_with(
      "data.tsv:1:1: field 1 (label): expected the label 0 or 1, there is \"label\" (a header "
      "line? Criteo files have none)"))
      << reader.status().message();
}

TEST_F(CriteoErrorsTest, BatchesBeforeTheErrorAreRead) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += kGood + "\n";
  const std::string file = put(text + "bad\n" + text);
  for (int threads : {1, 4}) {
    const Reading reading = read_all(CriteoReaderOptions{
        .files = {file}, .tables = criteo_tables(), .batch = 1000, .threads = threads});
    EXPECT_EQ(reading.batch_samples, std::vector<uint64_t>(5, 1000));
    EXPECT_EQ(reading.status.code(), Code::kFormat);
    EXPECT_NE(reading.status.message().find("data.tsv:5001:4: "), std::string::npos);
  }
}

TEST_F(CriteoErrorsTest, AnErrorIsRepeated) {
  auto reader = CriteoReader::open({.files = {put(kGood + "\nbad\n")}, .tables = criteo_tables()});
  ASSERT_TRUE(reader.ok());
  ClickBatch batch;
  const Status first = (*reader)->next(batch);
  EXPECT_EQ(first.code(), Code::kFormat);
  EXPECT_EQ((*reader)->next(batch).message(), first.message());
}

TEST_F(CriteoErrorsTest, SkippedLinesAreCountedWithTheRowTheyPrecede) {
  const std::string file = put("header\n" + kGood + "\n" + kGood + "\n\nbad\n" + kGood + "\n" +
                               std::string(700000, 'x') + "\n" + kGood + "\nlast,bad");
  std::vector<std::string> log;
  const Reading reading =
      read_all(CriteoReaderOptions{.files = {file},
                                   .tables = criteo_tables(),
                                   .batch = 2,
                                   .on_error = OnError::kSkip,
                                   .log = [&](const std::string& line) { log.push_back(line); }});
  EXPECT_TRUE(reading.status.ok()) << reading.status.to_string();
  EXPECT_EQ(reading.batch_samples, (std::vector<uint64_t>{2, 2, 0}));
  EXPECT_EQ(reading.skipped, (std::vector<uint64_t>{1, 3, 1}));
  EXPECT_EQ(reading.stats.skipped_lines, 5u);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_NE(log[0].find("data.tsv:1:7: expected 40 fields"), std::string::npos) << log[0];
}

TEST_F(CriteoErrorsTest, RowsAreNumberedWithoutSkippedLines) {
  std::string text;
  for (int i = 0; i < 4000; ++i) text += (i % 3 == 0 ? "bad\n" : "") + kGood + "\n";
  const std::string file = put(text);
  const Reading reading = read_all(CriteoReaderOptions{.files = {file},
                                                       .tables = criteo_tables(),
                                                       .batch = 100,
                                                       .first_row = 3900,
                                                       .on_error = OnError::kSkip});
  EXPECT_EQ(reading.first_rows, (std::vector<uint64_t>{3900, 4000}));
  EXPECT_EQ(reading.skipped, (std::vector<uint64_t>{34, 0}));  // before rows 3900, 3903, ... 3999
}

TEST_F(CriteoErrorsTest, SkippingNeedsOneWellFormedLineAmongTheFirst) {
  const Reading reading = read_all(CriteoReaderOptions{
      .files = {put("a\nb\n")}, .tables = criteo_tables(), .on_error = OnError::kSkip});
  EXPECT_EQ(reading.status.code(), Code::kFormat);
}

TEST_F(CriteoErrorsTest, ACutGzipIsAnErrorEvenWhenLinesAreSkipped) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += kGood + "\n";
  const std::string packed = gzipped(text);
  write_file(scratch_.file("cut.gz"), packed.substr(0, packed.size() - 20));
  for (OnError on_error : {OnError::kFail, OnError::kSkip}) {
    const Reading reading = read_all(CriteoReaderOptions{.files = {scratch_.file("cut.gz")},
                                                         .tables = criteo_tables(),
                                                         .batch = 10,
                                                         .on_error = on_error});
    EXPECT_EQ(reading.status.code(), Code::kCorrupt);
    EXPECT_NE(reading.status.message().find("cut.gz"), std::string::npos);
    EXPECT_GT(reading.rows.size(), 100u);
  }
}

TEST_F(CriteoErrorsTest, FilesThatCannotBeReadAreNamedAtOpen) {
  const std::string good = put(kGood);
  write_file(scratch_.file("empty"), "");
  const auto code_of = [&](const std::string& file) {
    const Status status =
        CriteoReader::open({.files = {good, file}, .tables = criteo_tables()}).status();
    EXPECT_NE(status.message().find(file), std::string::npos) << status.message();
    return status.code();
  };
  EXPECT_EQ(code_of(scratch_.file("missing")), Code::kNotFound);
  EXPECT_EQ(code_of(good + "/below"), Code::kNotFound);
  EXPECT_EQ(code_of(scratch_.path()), Code::kInvalid);
  EXPECT_EQ(code_of(scratch_.file("empty")), Code::kInvalid);
}

TEST_F(CriteoErrorsTest, AFileWithoutPermissionIsNamed) {
  const std::string file = put(kGood);
  std::filesystem::permissions(file, std::filesystem::perms::none);
  std::filesystem::permissions(scratch_.path(), std::filesystem::perms::all);
  Status status;
  const bool asked = as_nobody(
      [&] { status = CriteoReader::open({.files = {file}, .tables = criteo_tables()}).status(); });
  if (!asked) GTEST_SKIP() << "root that cannot become another user";
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find(file + ": "), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("Permission denied"), std::string::npos);
}

TEST_F(CriteoErrorsTest, OptionsThatCannotWorkAreRefused) {
  const std::string file = put(kGood);
  const auto code_of = [](CriteoReaderOptions options) {
    return CriteoReader::open(std::move(options)).status().code();
  };
  EXPECT_EQ(code_of({.files = {}, .tables = criteo_tables()}), Code::kInvalid);
  EXPECT_EQ(code_of({.files = {file}, .tables = {}}), Code::kInvalid);
  EXPECT_EQ(code_of({.files = {file}, .tables = criteo_tables(0)}), Code::kInvalid);
  EXPECT_EQ(code_of({.files = {file}, .tables = criteo_tables(), .batch = 0}), Code::kInvalid);
  EXPECT_EQ(code_of({.files = {file}, .tables = criteo_tables(), .threads = -1}), Code::kInvalid);
}

// Parser and explanation are written apart and must agree on every line; neither may crash.
TEST_F(CriteoErrorsTest, MutatedFilesAreReadOrNamed) {
  std::mt19937_64 random(9);
  const std::string text = random_criteo_text(40, 1);
  int read = 0;
  for (int round = 0; round < 400; ++round) {
    std::string mutated = text;
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = random() % mutated.size();
      constexpr char kLikely[] = "\t\n\r-+0fFgG,. x";
      const char c =
          random() % 2 ? kLikely[random() % (sizeof kLikely - 1)] : static_cast<char>(random());
      switch (random() % 4) {
        case 0:
          mutated[at] = c;
          break;
        case 1:
          mutated.insert(at, random() % 12, c);
          break;
        case 2:
          mutated.erase(at, random() % 30);
          break;
        case 3:
          mutated.resize(at + 1);
          break;
      }
    }
    for (OnError on_error : {OnError::kFail, OnError::kSkip}) {
      const Reading reading = read_all(CriteoReaderOptions{
          .files = {put(mutated)}, .tables = criteo_tables(), .batch = 7, .on_error = on_error});
      if (reading.status.ok()) {
        ++read;
      } else {
        EXPECT_NE(reading.status.message().find("data.tsv:"), std::string::npos)
            << reading.status.message();
      }
    }
  }
  EXPECT_GT(read, 350);
}

TEST_F(CriteoErrorsTest, MutatedGzipFilesAreReadOrNamed) {
  std::mt19937_64 random(10);
  const std::string packed = gzipped(random_criteo_text(300, 1));
  for (int round = 0; round < 300; ++round) {
    std::string mutated = packed;
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      mutated[random() % mutated.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) mutated.resize(1 + random() % mutated.size());
    const Reading reading = read_all(put(mutated));
    if (!reading.status.ok()) {
      EXPECT_NE(reading.status.message().find("data.tsv"), std::string::npos)
          << reading.status.message();
    }
  }
}

}  // namespace
}  // namespace rowtide
