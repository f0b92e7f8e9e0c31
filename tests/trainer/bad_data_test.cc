// Malformed lines in a whole run: what was trained is kept, what is skipped is counted.

#include "tests/trainer/command_line_case.h"

namespace rowtide {
namespace {

constexpr uint64_t kTrained = kRows * 8 / 10;  // the rest is held out

class BadDataTest : public CommandLineTest {
 protected:
  void SetUp() override {
    CommandLineTest::SetUp();
    if (IsSkipped()) return;
    const auto rows = std::to_string(kRows);
    ASSERT_EQ(rowtide({"synth", "criteo", "--rows", rows, "--out", clean()}).exit_code, 0);
    std::istringstream in(read_file(clean()));
    for (std::string line; std::getline(in, line);) lines_.push_back(line);
    ASSERT_EQ(lines_.size(), kRows);
  }

  std::string clean() const { return scratch_.file("clean.tsv"); }
  std::string bad() const { return scratch_.file("bad.tsv"); }

  void put_bad(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    write_file(bad(), text);
  }
  // The good lines, but for one.
  std::vector<std::string> with_bad(size_t row) const {
    auto lines = lines_;
    lines[row] = "1\tx";
    return lines;
  }

  // The step of the last commit, as `inspect` says it.
  uint64_t committed_step() {
    const std::string look = rowtide({"inspect", run()}).out;
    const std::string before = "the last after step ";
    const size_t at = look.find(before);
    return at == std::string::npos ? 0 : std::stoull(look.substr(at + before.size()));
  }

  std::vector<std::string> lines_;  // of clean.tsv
};

TEST_F(BadDataTest, AFailedEvaluationAtTheEndCostsNoTraining) {
  put_bad(with_bad(kTrained + 100));
  const Finished failed = train({"--set", "data.files=" + bad()});
  EXPECT_EQ(failed.exit_code, 3) << failed.err;
  EXPECT_TRUE(contains(failed.err, "bad.tsv:" + std::to_string(kTrained + 101))) << failed.err;
  EXPECT_EQ(metrics().back()["event"], "failed");
  EXPECT_EQ(committed_step(), kTrained / 64);

  put_bad(lines_);  // mended
  const Finished resumed = train({"--set", "data.files=" + bad(), "--resume"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(metrics().back()["steps"], kTrained / 64);
  EXPECT_TRUE(metrics().back()["auc"].is_number());
}

TEST_F(BadDataTest, AFailedEvaluationOnTheWayCostsNoTraining) {
  put_bad(with_bad(500));
  const Finished failed = train({"--set", "data.eval_fraction=0", "--set",
                                 "data.eval_files=" + bad(), "--set", "run.eval_every=10"});
  EXPECT_EQ(failed.exit_code, 3) << failed.err;
  EXPECT_TRUE(contains(failed.err, "bad.tsv:501:")) << failed.err;
  EXPECT_EQ(committed_step(), 10u);
}

TEST_F(BadDataTest, NothingHeldOutIsSaidBeforeTheTraining) {
  const Finished failed = train({"--set", "data.eval_fraction=0.0001"});
  EXPECT_EQ(failed.exit_code, 2) << failed.err;
  EXPECT_TRUE(contains(failed.err, "data.eval_fraction")) << failed.err;
  EXPECT_EQ(metrics().back()["steps"], 0);
}

// Row numbers pass over what is skipped, so the same rows are trained on and held out as without.
TEST_F(BadDataTest, SkippedLinesAreCountedAndChangeNothingElse) {
  std::vector<std::string> lines;
  for (uint64_t row = 0; row < kRows; ++row) {
    if (row % 3 == 0) lines.push_back("1\tx");
    lines.push_back(lines_[row]);
  }
  put_bad(lines);
  ASSERT_EQ(train({"--set", "data.files=" + clean()}, "clean").exit_code, 0);
  const Finished skipping = train({"--set", "data.files=" + bad(), "--set", "data.on_error=skip"});
  ASSERT_EQ(skipping.exit_code, 0) << skipping.err;
  const Json end = metrics().back(), expected = metrics("clean").back();
  EXPECT_EQ(end["samples"], kTrained);
  EXPECT_EQ(end["skipped_lines"], (kTrained + 2) / 3);
  EXPECT_EQ(expected["skipped_lines"], 0);
  for (const char* same : {"digest", "loss", "auc", "eval_loss"}) {
    EXPECT_EQ(end[same], expected[same]) << same;
  }
  for (const Json& line : metrics()) {
    if (line["event"] != "eval") continue;
    EXPECT_EQ(line["samples"], kRows - kTrained);
  }
  EXPECT_TRUE(contains(read_file(run() + "/run.log"), "skipped " + bad() + ":1:"));
}

}  // namespace
}  // namespace rowtide
