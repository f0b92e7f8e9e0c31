#include "trainer/run_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/scratch_directory.h"
#include "trainer/config_toml.h"

namespace rowtide {
namespace {

class RunDirectoryTest : public ::testing::Test {
 protected:
  Config config(const std::vector<std::string>& sets = {}) {
    auto all = sets;
    all.push_back("run.directory=" + scratch_.file("run"));
    return *parse_config("", "model.toml", all);
  }
  Status prepare(bool resume, const std::vector<std::string>& sets = {}) {
    return RunDirectory::prepare(config(sets), resume).status();
  }

  ScratchDirectory scratch_;
};

TEST_F(RunDirectoryTest, HoldsTheResolvedConfiguration) {
  ASSERT_TRUE(prepare(false, {"data.batch=77"}).ok());
  const auto read = RunDirectory::read_config(scratch_.file("run"));
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(*read, config({"data.batch=77"}));
}

TEST_F(RunDirectoryTest, ARunIsNotOverwrittenButResumed) {
  ASSERT_TRUE(prepare(false).ok());
  const Status again = prepare(false);
  EXPECT_EQ(again.code(), Code::kInvalid);
  EXPECT_NE(again.message().find("--resume"), std::string::npos) << again.message();
  const auto resumed = RunDirectory::prepare(config(), true);
  ASSERT_TRUE(resumed.ok());
  EXPECT_TRUE(resumed->resumed());
}

TEST_F(RunDirectoryTest, ResumeInAnEmptyDirectoryBegins) {
  const auto run = RunDirectory::prepare(config(), true);
  ASSERT_TRUE(run.ok());
  EXPECT_FALSE(run->resumed());
}

TEST_F(RunDirectoryTest, ForeignFilesAreLeftAlone) {
  std::filesystem::create_directory(scratch_.file("run"));
  write_file(scratch_.file("run/thesis.tex"), "x");
  for (bool resume : {false, true}) EXPECT_EQ(prepare(resume).code(), Code::kInvalid);
  EXPECT_EQ(read_file(scratch_.file("run/thesis.tex")), "x");
}

TEST_F(RunDirectoryTest, AChangedKeyIsNamedWithOldAndNew) {
  ASSERT_TRUE(prepare(false).ok());
  EXPECT_EQ(prepare(true, {"data.batch=8"}).message(),
            scratch_.file("run") +
                ": data.batch was 2048 and is now 8: it may not change when a run is resumed");
  ASSERT_TRUE(prepare(true, {"tiers.policy=lru"}).ok());
  EXPECT_EQ(RunDirectory::read_config(scratch_.file("run"))->tiers.policy, "lru");
}

TEST_F(RunDirectoryTest, APlaceThatCannotBeWrittenIsNamed) {
  write_file(scratch_.file("run"), "a file");
  EXPECT_NE(prepare(false).message().find("no directory"), std::string::npos);
  EXPECT_EQ(RunDirectory::read_config(scratch_.path()).status().code(), Code::kNotFound);
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  ::chmod(scratch_.path().c_str(), 0500);
  EXPECT_EQ(
      RunDirectory::prepare(*parse_config("", "m", {"run.directory=" + scratch_.file("x")}), false)
          .status()
          .code(),
      Code::kIo);
  ::chmod(scratch_.path().c_str(), 0700);
}

TEST_F(RunDirectoryTest, TheLogKeepsEarlierLines) {
  RunLog(scratch_.file("run.log")).write("first");
  RunLog(scratch_.file("run.log")).write("second");
  const std::string log = read_file(scratch_.file("run.log"));
  EXPECT_NE(log.find("  first\n"), std::string::npos);
  EXPECT_NE(log.find("  second\n"), std::string::npos);
}

}  // namespace
}  // namespace rowtide
