#include "trainer/console.h"

#include <gtest/gtest.h>

#include "tests/support/scratch_directory.h"
#include "trainer/exit_code.h"
#include "trainer/learning_rate.h"
#include "trainer/wait_watch.h"

namespace rowtide {
namespace {

class ConsoleTest : public ::testing::Test {
 protected:
  // What the calls in `use` print; they move the time by `now_`.
  template <typename Use>
  std::string printed(bool terminal, Use use) {
    const std::string path = scratch_.file("out");
    std::FILE* const file = std::fopen(path.c_str(), "w");
    {
      Console console(file, terminal, 80, [this] { return now_; });
      use(console);
    }
    std::fclose(file);
    return read_file(path);
  }

  ScratchDirectory scratch_;
  double now_ = 100;
};

TEST_F(ConsoleTest, WithoutATerminalThereIsALineEveryTenSeconds) {
  const std::string out = printed(false, [this](Console& console) {
    for (int second = 0; second <= 25; ++second) {
      now_ = 100 + second;
      console.progress({"train", second / 100.0, "step " + std::to_string(second)});
    }
  });
  EXPECT_EQ(out,
            "train: 10 %, step 10, ends in 1:30\n"
            "train: 20 %, step 20, ends in 1:20\n");
}

TEST_F(ConsoleTest, OnATerminalOneLineIsRewritten) {
  const std::string out = printed(true, [this](Console& console) {
    console.progress({"train", 0, "step 0"});
    now_ += 10;
    console.progress({"train", 0.5, "step 5"});
    console.say("a notice");
  });
  EXPECT_EQ(out,
            "\r\033[Ktrain      0 % [....................] step 0"
            "\r\033[Ktrain     50 % [##########..........] step 5, ends in 0:10"
            "\r\033[Ka notice\n");
}

TEST_F(ConsoleTest, AResumedRunIsEstimatedFromWhereItBegan) {
  const std::string out = printed(false, [this](Console& console) {
    console.progress({"train", 0.5, "x"});
    now_ += 10;
    console.progress({"train", 0.75, "x"});
  });
  EXPECT_EQ(out, "train: 75 %, x, ends in 0:10\n");
}

TEST(MinutesAndSecondsTest, ReadsLikeAClock) {
  EXPECT_EQ(minutes_and_seconds(5), "0:05");
  EXPECT_EQ(minutes_and_seconds(65), "1:05");
  EXPECT_EQ(minutes_and_seconds(7325), "2:02:05");
}

TEST(WaitWatchTest, SaysOnceWhoWaitsForWhomAfterFiveSeconds) {
  double now = 0;
  std::vector<std::string> said;
  WaitWatch watch([&](const std::string& line) { said.push_back(line); }, [&] { return now; });
  {
    const WaitWatch::Wait wait(watch, "the trainer waits for the reader");
    now = 4.9;
    watch.check();
    EXPECT_TRUE(said.empty());
    for (now = 5; now < 20; ++now) watch.check();
  }
  now = 100;
  watch.check();
  EXPECT_EQ(said, std::vector<std::string>{"the trainer waits for the reader, for 5 s now"});
}

TEST(WaitWatchTest, EndsWithItsThread) {
  WaitWatch watch([](const std::string&) {});
  const WaitWatch::Wait wait(watch, "the trainer waits for nothing");
}

TEST(ExitCodeTest, SaysWhichPartFailed) {
  const std::tuple<Part, Code, int> cases[] = {
      {Part::kConfig, Code::kInvalid, 2},     {Part::kConfig, Code::kNoSpace, 2},
      {Part::kConfig, Code::kUnavailable, 5}, {Part::kData, Code::kFormat, 3},
      {Part::kData, Code::kNotFound, 3},      {Part::kRuntime, Code::kIo, 4},
      {Part::kRuntime, Code::kNoSpace, 4},    {Part::kRuntime, Code::kLocked, 4},
      {Part::kRuntime, Code::kCorrupt, 4},    {Part::kRuntime, Code::kDevice, 5},
      {Part::kRuntime, Code::kInvalid, 2},    {Part::kRuntime, Code::kOk, 0},
      {Part::kLoss, Code::kInvalid, 1}};
  for (const auto& [part, code, expected] : cases) {
    EXPECT_EQ(exit_code({{code, "x"}, part}), expected) << code_name(code);
  }
}

TEST(LearningRateTest, WarmsUpStaysAndDecays) {
  OptimizerConfig optimizer{
      .learning_rate = 1, .warmup = 4, .decay = "linear", .decay_start = 10, .decay_steps = 10};
  EXPECT_FLOAT_EQ(learning_rate_of(optimizer, 0), 0.25f);
  EXPECT_FLOAT_EQ(learning_rate_of(optimizer, 2), 0.75f);
  EXPECT_FLOAT_EQ(learning_rate_of(optimizer, 3), 1);
  EXPECT_FLOAT_EQ(learning_rate_of(optimizer, 10), 1);
  EXPECT_FLOAT_EQ(learning_rate_of(optimizer, 15), 0.5f);
  EXPECT_FLOAT_EQ(learning_rate_of(optimizer, 19), 0.1f);
  EXPECT_FLOAT_EQ(learning_rate_of(optimizer, 1000), 0.1f);
  optimizer.decay = "quadratic";
  EXPECT_FLOAT_EQ(learning_rate_of(optimizer, 15), 0.25f);
  EXPECT_FLOAT_EQ(learning_rate_of({.learning_rate = 0.5}, 1000), 0.5f);
}

}  // namespace
}  // namespace rowtide
