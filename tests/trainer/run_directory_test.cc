#include "trainer/run_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "tests/support/as_nobody.h"
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
  const auto run = RunDirectory::prepare(config({"tiers.policy=lru"}), true);
  ASSERT_TRUE(run.ok());
  EXPECT_NE(RunDirectory::read_config(scratch_.file("run"))->tiers.policy, "lru");
  ASSERT_TRUE(run->keep(config({"tiers.policy=lru"})).ok());
  EXPECT_EQ(RunDirectory::read_config(scratch_.file("run"))->tiers.policy, "lru");
}

TEST_F(RunDirectoryTest, APlaceThatCannotBeWrittenIsNamed) {
  write_file(scratch_.file("run"), "a file");
  EXPECT_NE(prepare(false).message().find("no directory"), std::string::npos);
  EXPECT_EQ(RunDirectory::read_config(scratch_.path()).status().code(), Code::kNotFound);
}

TEST_F(RunDirectoryTest, ADirectoryWithoutPermissionIsNamed) {
  ASSERT_TRUE(prepare(false).ok());
  std::filesystem::create_directory(scratch_.file("new"));
  for (const char* name : {"run", "new", "."}) ::chmod(scratch_.file(name).c_str(), 0555);
  const auto prepare_at = [&](const std::string& name) {
    Config at = config();
    at.run.directory = scratch_.file(name);
    return RunDirectory::prepare(at, true).status();
  };
  Status refused[3];
  const bool asked = as_nobody([&] {
    refused[0] = prepare_at("run");
    refused[1] = prepare_at("new");
    refused[2] = prepare_at("none");
  });
  for (const char* name : {".", "run", "new"}) ::chmod(scratch_.file(name).c_str(), 0755);
  if (!asked) GTEST_SKIP() << "root that cannot become another user";
  const char* const named[] = {"run/LOCK", "new/LOCK", "none"};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(refused[i].code(), Code::kIo);
    EXPECT_NE(refused[i].message().find(scratch_.file(named[i])), std::string::npos)
        << refused[i].message();
    EXPECT_NE(refused[i].message().find("Permission denied"), std::string::npos);
  }
}

TEST_F(RunDirectoryTest, AFullDiskIsNamed) {
  const auto run = RunDirectory::prepare(config(), false);
  ASSERT_TRUE(run.ok());
  const std::string before = read_file(run->file("config.toml"));
  // What is written whole is written beside the file first.
  std::filesystem::create_symlink("/dev/full", run->file("config.toml.part"));
  const Status full = run->keep(config({"data.batch=77"}));
  EXPECT_EQ(full.code(), Code::kNoSpace);
  EXPECT_NE(full.message().find(run->file("config.toml")), std::string::npos) << full.message();
  EXPECT_EQ(read_file(run->file("config.toml")), before);
}

TEST_F(RunDirectoryTest, OneProcessAtATimeTrainsHere) {
  {
    const auto first = RunDirectory::prepare(config(), false);
    ASSERT_TRUE(first.ok());
    const Status second = prepare(true, {"tiers.policy=lru"});
    EXPECT_EQ(second.code(), Code::kLocked);
    EXPECT_NE(second.message().find("process " + std::to_string(::getpid())), std::string::npos)
        << second.message();
  }
  EXPECT_TRUE(prepare(true).ok());
}

TEST_F(RunDirectoryTest, ARunThatDiedBeforeItBeganIsNoRun) {
  std::filesystem::create_directory(scratch_.file("run"));
  write_file(scratch_.file("run/LOCK"), "1");
  EXPECT_TRUE(prepare(false).ok());
}

TEST_F(RunDirectoryTest, TheLogKeepsEarlierLines) {
  for (const char* line : {"first", "second"}) {
    RunLog log;
    log.write(std::string("before ") + line);
    log.open(scratch_.file("run.log"));
    log.write(line);
  }
  std::istringstream log(read_file(scratch_.file("run.log")));
  for (const char* said : {"before first", "first", "before second", "second"}) {
    std::string line;
    std::getline(log, line);
    EXPECT_TRUE(line.ends_with(std::string("  ") + said)) << line;
  }
}

}  // namespace
}  // namespace rowtide
