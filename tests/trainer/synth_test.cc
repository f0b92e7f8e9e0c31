#include "trainer/synth.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "tests/support/criteo_files.h"
#include "tests/support/scratch_directory.h"

namespace rowtide {
namespace {

class SynthTest : public ::testing::Test {
 protected:
  std::string write(SynthOptions options, const std::string& name) {
    options.out = scratch_.file(name);
    const Status status = write_synthetic_criteo(options);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return options.out;
  }
  std::string bytes(SynthOptions options, const std::string& name) {
    return read_file(write(std::move(options), name));
  }

  ScratchDirectory scratch_;
};

// The number behind "key": in a flat JSON object.
double number_in(const std::string& json, const std::string& key) {
  const size_t at = json.find("\"" + key + "\": ");
  EXPECT_NE(at, std::string::npos) << key;
  return std::stod(json.substr(at + key.size() + 4));
}

TEST_F(SynthTest, BytesDependOnNothingButTheOptions) {
  for (const std::string name : {"a.tsv", "a.tsv.gz"}) {
    const std::string expected = bytes({.rows = 20000, .scale = 0.1, .threads = 1}, name);
    for (int threads : {2, 5}) {
      EXPECT_EQ(bytes({.rows = 20000, .scale = 0.1, .threads = threads}, name), expected);
    }
    EXPECT_NE(bytes({.rows = 20000, .seed = 2, .scale = 0.1}, name), expected);
    EXPECT_NE(bytes({.rows = 20000, .scale = 0.2}, name), expected);
  }
}

TEST_F(SynthTest, SeveralFilesHoldTheRowsOfOne) {
  const std::string whole = bytes({.rows = 20001, .scale = 0.1}, "whole.tsv");
  write({.rows = 20001, .files = 3, .scale = 0.1}, "part.tsv.gz");
  write({.rows = 20001, .files = 3, .scale = 0.1}, "part");
  EXPECT_EQ(read_file(scratch_.file("part-0")) + read_file(scratch_.file("part-1")) +
                read_file(scratch_.file("part-2")),
            whole);
  std::vector<std::string> files;
  double rows = 0, positives = 0;
  for (int f = 0; f < 3; ++f) {
    files.push_back(scratch_.file("part-" + std::to_string(f) + ".tsv.gz"));
    const std::string truth = read_file(files.back() + ".truth.json");
    EXPECT_EQ(number_in(truth, "first_row"), rows);
    rows += number_in(truth, "rows");
    positives += number_in(truth, "positives");
  }
  EXPECT_EQ(rows, 20001);
  const Reading reading =
      read_all(CriteoReaderOptions{.files = files, .tables = criteo_tables(), .threads = 2});
  ASSERT_TRUE(reading.status.ok()) << reading.status.to_string();
  EXPECT_EQ(reading.rows, reference_criteo_rows(whole, true));
  EXPECT_EQ(positives, std::count_if(reading.rows.begin(), reading.rows.end(),
                                     [](const CriteoRow& row) { return row.label == 1; }));
}

TEST_F(SynthTest, TheTruthFileSaysHowGoodTheTruthIs) {
  const std::string file = write({.rows = 100000, .seed = 9, .scale = 0.5}, "a.tsv");
  const std::string truth = read_file(file + ".truth.json");
  EXPECT_EQ(number_in(truth, "rows"), 100000);
  EXPECT_NEAR(number_in(truth, "positives"), 25000, 1000);
  EXPECT_NEAR(number_in(truth, "auc"), 0.80, 0.01);
  EXPECT_LT(number_in(truth, "ne"), 0.85);
  EXPECT_NEAR(number_in(truth, "logloss"), number_in(truth, "ne") * 0.5623, 0.01);  // rate 1/4
  EXPECT_EQ(number_in(truth, "seed"), 9);
  EXPECT_EQ(number_in(truth, "scale"), 0.5);
}

TEST_F(SynthTest, TinyAndScaledDownDataAreStillCriteo) {
  for (uint64_t rows : {1, 2, 100}) {
    for (double scale : {1e-9, 1.0, 3.0}) {
      const Reading reading = read_all(write({.rows = rows, .scale = scale}, "tiny"));
      EXPECT_TRUE(reading.status.ok()) << reading.status.to_string();
      EXPECT_EQ(reading.rows.size(), rows);
    }
  }
  const std::string truth = read_file(write({.rows = 1}, "one") + ".truth.json");
  EXPECT_NE(truth.find("\"auc\": null"), std::string::npos);
}

TEST_F(SynthTest, ProgressGrowsToOne) {
  std::vector<double> seen;
  write({.rows = 50000,
         .files = 2,
         .scale = 0.01,
         .threads = 2,
         .progress = [&](double fraction) { seen.push_back(fraction); }},
        "p");
  ASSERT_FALSE(seen.empty());
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.back(), 1);
}

TEST_F(SynthTest, OptionsThatCannotBeAreRefused) {
  const auto code_of = [&](SynthOptions options) {
    options.out = scratch_.file("x");
    return write_synthetic_criteo(options).code();
  };
  EXPECT_EQ(code_of({.rows = 0}), Code::kInvalid);
  EXPECT_EQ(code_of({.rows = 3, .files = 0}), Code::kInvalid);
  EXPECT_EQ(code_of({.rows = 3, .files = 4}), Code::kInvalid);
  EXPECT_EQ(code_of({.rows = 3, .scale = 0}), Code::kInvalid);
  EXPECT_EQ(code_of({.rows = 3, .scale = -1}), Code::kInvalid);
  EXPECT_EQ(code_of({.rows = 3, .scale = 1000}), Code::kInvalid);
  EXPECT_EQ(code_of({.rows = 3, .threads = -1}), Code::kInvalid);
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path()));
}

TEST_F(SynthTest, APlaceThatCannotBeWrittenIsNamed) {
  const Status status = write_synthetic_criteo({.rows = 10, .out = scratch_.file("missing/a.tsv")});
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("missing/a.tsv"), std::string::npos);
}

TEST_F(SynthTest, AFullDiskIsNamedAndLeavesNoFile) {
  const Status full = write_synthetic_criteo({.rows = 10, .out = "/dev/full"});
  EXPECT_EQ(full.code(), Code::kNoSpace);
  EXPECT_NE(full.message().find("/dev/full"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists("/dev/full"));

  rlimit before, small;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = 3000;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status limited = write_synthetic_criteo({.rows = 100, .out = scratch_.file("a.tsv")});
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(limited.code(), Code::kNoSpace) << limited.to_string();
  EXPECT_NE(limited.message().find("a.tsv: cannot be written at byte 3000"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path()));
}

TEST_F(SynthTest, MoreFilesThanAProcessMayOpen) {
  rlimit before, small;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  small = before;
  small.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &small), 0);
  write({.rows = 1000, .files = 100, .scale = 0.01}, "many");
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(std::filesystem::exists(scratch_.file("many-99.truth.json")));
}

TEST_F(SynthTest, IfOneFileFailsNoneIsLeft) {
  std::filesystem::create_directory(scratch_.file("a-1"));
  const Status status =
      write_synthetic_criteo({.rows = 100, .out = scratch_.file("a"), .files = 2});
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_FALSE(std::filesystem::exists(scratch_.file("a-0")));
  EXPECT_FALSE(std::filesystem::exists(scratch_.file("a-0.truth.json")));
}

}  // namespace
}  // namespace rowtide
