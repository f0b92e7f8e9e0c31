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

}  // namespace
}  // namespace rowtide
