// The built program as scripts use it: exit codes, messages, what a run leaves behind.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <random>

#include "tests/support/watchdog.h"
#include "tests/trainer/command_line_case.h"
#include "trainer/criteo_reader.h"
#include "trainer/interrupt.h"

namespace rowtide {
namespace {

TEST_F(CommandLineTest, EveryHelpPageHasTheExitCodes) {
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {}, {"synth"}, {"synth", "criteo"}, {"train"}, {"eval"}, {"plan"}, {"inspect"}}) {
    auto arguments = command;
    arguments.push_back("--help");
    const Finished help = rowtide(arguments);
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_TRUE(contains(help.out, "130 second Ctrl-C")) << help.out;
  }
  EXPECT_TRUE(contains(rowtide({"train", "--help"}).out, "commit_every"));
  EXPECT_TRUE(contains(rowtide({"--version"}).out, "rowtide 0."));
}

TEST_F(CommandLineTest, WrongUsageAndConfigurationExitWith2) {
  const std::vector<std::string> wrong[] = {
      {},
      {"trian"},
      {"train"},
      {"train", "/nowhere.toml"},
      train_arguments({"--nonsense"}),
      train_arguments({"--set", "data.bacth=3"}),
      train_arguments({"--set", "data.batch=0"}),
      train_arguments({"--set", "tiers.policy=nonsense"}),
      {"synth", "criteo", "--rows", "0", "--out", scratch_.file("x")},
      {"eval", scratch_.path(), "--data", file()},
      {"inspect", scratch_.path()}};
  for (const auto& arguments : wrong) {
    const Finished finished = rowtide(arguments);
    EXPECT_EQ(finished.exit_code, 2) << finished.err << finished.out;
    EXPECT_FALSE(finished.err.empty());
  }
  EXPECT_FALSE(std::filesystem::exists(run()));
}

TEST_F(CommandLineTest, WrongDataExitsWith3BeforeAnythingIsWritten) {
  write_file(scratch_.file("header.tsv"), "label\tI1\n");
  write_file(scratch_.file("empty.tsv"), "");
  for (const std::string name : {"header.tsv", "empty.tsv", "missing.tsv"}) {
    const Finished finished = train({"--set", "data.files=" + scratch_.file(name)});
    EXPECT_EQ(finished.exit_code, 3) << finished.err;
    EXPECT_TRUE(contains(finished.err, name)) << finished.err;
    EXPECT_FALSE(std::filesystem::exists(run()));
  }
}

TEST_F(CommandLineTest, AMalformedLineOnTheWayFailsTheRunAndIsRecorded) {
  ASSERT_EQ(
      rowtide({"synth", "criteo", "--rows", "3000", "--out", scratch_.file("bad.tsv")}).exit_code,
      0);
  write_file(scratch_.file("bad.tsv"), read_file(scratch_.file("bad.tsv")) + "1\tx\n");
  const auto arguments = train_arguments(
      {"--set", "data.files=" + scratch_.file("bad.tsv"), "--set", "data.eval_fraction=0"});
  const Finished finished = rowtide(arguments);
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_TRUE(contains(finished.err, "bad.tsv:3001:")) << finished.err;
  EXPECT_EQ(metrics().back()["event"], "failed");
  EXPECT_TRUE(contains(metrics().back()["message"], "bad.tsv:3001:"));
  EXPECT_TRUE(contains(read_file(run() + "/report.html"), "class='state failed'"));
}

TEST_F(CommandLineTest, APipeIsRefusedByName) {
  const std::string pipe = scratch_.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Watchdog watchdog("a look at a pipe that nobody writes to");
  for (const std::string key : {"data.files=", "data.eval_files="}) {
    const Finished refused = train({"--set", "data.eval_fraction=0", "--set", key + pipe});
    EXPECT_EQ(refused.exit_code, 3) << refused.err;
    EXPECT_TRUE(contains(refused.err, pipe)) << refused.err;
  }
  EXPECT_EQ(rowtide({"plan", config(), "--set", "data.files=" + pipe}).exit_code, 0);
}

TEST_F(CommandLineTest, ALookNeedsNoProfile) {
  const std::string profile = scratch_.file("profile");
  write_file(profile, "C3:0\n");
  ASSERT_EQ(train({"--steps", "3", "--set", "tiers.admission=profile", "--set",
                   "tiers.profile=" + profile})
                .exit_code,
            0);
  std::filesystem::remove(profile);
  EXPECT_EQ(rowtide({"inspect", run()}).exit_code, 0);
  EXPECT_EQ(rowtide({"eval", run(), "--data", file()}).exit_code, 0);
}

TEST_F(CommandLineTest, CountingRowsIsNoTraining) {
  std::string files;
  for (int i = 0; i < 100; ++i) files += (i > 0 ? ", '" : "'") + file() + "'";
  ASSERT_EQ(train({"--steps", "1", "--set", "data.files=[" + files + "]", "--set",
                   "data.eval_fraction=0.001"})
                .exit_code,
            0);
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_TRUE(count_criteo_rows({.files = std::vector<std::string>(100, file())}).ok());
  const std::chrono::duration<double> counting = std::chrono::steady_clock::now() - begun;
  EXPECT_LT(metrics().at(1)["seconds"].get<double>(), counting.count() / 2);
}

TEST_F(CommandLineTest, ADeviceThatThisBuildLacksExitsWith5) {
  const Finished finished = train({"--set", "tiers.device=cuda"});
  EXPECT_EQ(finished.exit_code, 5) << finished.err;
  EXPECT_TRUE(contains(finished.err, "cpu")) << finished.err;
  EXPECT_FALSE(std::filesystem::exists(run()));
  EXPECT_EQ(rowtide({"plan", config(), "--set", "tiers.device=cuda"}).exit_code, 5);
}

// Rows of 16 KiB: fewer than six segments of them are more than the least that a directory may
// have.
TEST_F(CommandLineTest, ABudgetTooSmallNamesOneThatWouldDo) {
  const std::string store = scratch_.file("wide");
  const auto with = [&](const std::string& tier, uint64_t bytes, const std::string& directory) {
    const std::string number = std::to_string(bytes);
    const std::string set = tier == "ssd"
                                ? "tiers.ssd=[{directory='" + store + "', bytes=" + number + "}]"
                                : "tiers." + tier + "_bytes=" + number;
    return train({"--steps", "1", "--set", "data.batch=1", "--set", "data.eval_fraction=0", "--set",
                  "model.dim=4096", "--set", "model.bottom=[8, 4096]", "--set",
                  "tiers.hbm_bytes='256MiB'", "--set", "tiers.ddr_bytes='256MiB'", "--set", set},
                 directory);
  };
  for (const std::string tier : {"hbm", "ddr", "ssd"}) {
    const Finished refused = with(tier, tier == "ssd" ? 1 << 20 : 4096, tier);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    const std::string before = "the least that works is ";
    const size_t at = refused.err.find(before);
    ASSERT_TRUE(contains(refused.err, tier) && at != std::string::npos) << refused.err;
    const uint64_t least = std::stoull(refused.err.substr(at + before.size()));
    EXPECT_EQ(with(tier, least - 4096, tier).exit_code, 2);
    EXPECT_FALSE(std::filesystem::exists(scratch_.file(tier)));
    const Finished trained = with(tier, least, tier);
    EXPECT_EQ(trained.exit_code, 0) << tier << " " << least << ": " << trained.err;
  }
}

TEST_F(CommandLineTest, AStoreThatIsNoStoreExitsWith4) {
  std::filesystem::create_directories(scratch_.file("other"));
  write_file(scratch_.file("other/thesis.tex"), "x");
  const Finished finished =
      train({"--set", "tiers.ssd=[{directory='" + scratch_.file("other") + "', bytes='64MiB'}]"});
  EXPECT_EQ(finished.exit_code, 4) << finished.err;
  EXPECT_TRUE(contains(finished.err, "thesis.tex") || contains(finished.err, "other"))
      << finished.err;
  EXPECT_FALSE(std::filesystem::exists(run()));
}

TEST_F(CommandLineTest, ANewRunWhoseStoreIsInUseLeavesNoTrace) {
  const std::string ssd = "tiers.ssd=[{directory='" + scratch_.file("ssd") + "', bytes='64MiB'}]";
  Program program(scratch_, train_arguments({"--set", "run.epochs=1000", "--set", ssd}));
  ASSERT_TRUE(wait_for_lines(run(), "metrics.jsonl", 3));
  program.stop();
  std::filesystem::create_directory(scratch_.file("empty"));
  const ScratchDirectory other;
  for (const char* name : {"empty", "deep/below"}) {
    const Finished refused = Program(other, train_arguments({"--set", ssd}, name)).wait();
    EXPECT_EQ(refused.exit_code, 4) << refused.err;
    EXPECT_TRUE(contains(refused.err, std::to_string(program.pid()))) << refused.err;
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.file("empty")));
  EXPECT_FALSE(std::filesystem::exists(scratch_.file("deep")));
  program.signal(SIGKILL);
  program.wait();
}

TEST_F(CommandLineTest, AStoreThatRottedExitsWith4) {
  // Resident tables would be read, and refused, at once.
  ASSERT_EQ(train({"--steps", "10", "--set", "tiers.placement=cached"}).exit_code, 0);
  rot("C3:0");
  const Finished row = rowtide({"inspect", run(), "--row", "C3:0"});
  EXPECT_EQ(row.exit_code, 4) << row.err;
  EXPECT_TRUE(contains(row.err, "row 0")) << row.err;

  flip_byte(run() + "/store/MANIFEST", 40);
  for (const auto& arguments :
       {train_arguments({"--resume"}), {"inspect", run()}, {"eval", run(), "--data", file()}}) {
    const Finished refused = rowtide(arguments);
    EXPECT_EQ(refused.exit_code, 4) << refused.err;
    EXPECT_TRUE(contains(refused.err, "MANIFEST")) << refused.err;
  }
}

TEST_F(CommandLineTest, ADigestThatFailsIsTheEndOfTheRun) {
  const std::vector<std::string> all_rows = {"--set", "data.eval_fraction=0",  "--steps", "10",
                                             "--set", "tiers.placement=cached"};
  ASSERT_EQ(train(all_rows).exit_code, 0);
  rot("C3:0");
  auto resume = all_rows;
  resume.push_back("--resume");
  EXPECT_EQ(train(resume).exit_code, 4);
  EXPECT_EQ(metrics().back()["event"], "failed");
  EXPECT_TRUE(contains(metrics().back()["message"], "store/LOG")) << metrics().back();
  EXPECT_TRUE(metrics().back()["digest"].is_null());
}

TEST_F(CommandLineTest, ARunLeavesItsDirectoryAndCanBeLookedAt) {
  const Finished trained = train();
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  for (const char* name : {"config.toml", "metrics.jsonl", "run.log", "report.html", "store"}) {
    EXPECT_TRUE(std::filesystem::exists(run() + "/" + name)) << name;
  }
  const auto lines = metrics();
  EXPECT_EQ(lines.front()["event"], "start");
  const Json& end = lines.back();
  EXPECT_EQ(end["event"], "end");
  EXPECT_EQ(end["steps"], kRows * 8 / 10 / 64);
  EXPECT_EQ(end["samples"], kRows * 8 / 10);
  uint64_t hits = 0;
  for (const char* tier : {"hbm", "ddr", "ssd", "new"})
    hits += end["tiers"][tier]["hits"].get<uint64_t>();
  EXPECT_EQ(hits, kRows * 8 / 10 * 26);
  EXPECT_GT(end["auc"].get<double>(), 0.4);

  const Finished digest = rowtide({"inspect", run(), "--digest"});
  EXPECT_EQ(digest.exit_code, 0) << digest.err;
  EXPECT_EQ(digest.out, end["digest"].get<std::string>() + "\n");
  const Finished look = rowtide({"inspect", run()});
  EXPECT_TRUE(contains(look.out, "C26")) << look.out;
  EXPECT_TRUE(contains(look.out, "commits")) << look.out;
  const Finished row = rowtide({"inspect", run(), "--row", "C3:17"});
  EXPECT_TRUE(contains(row.out, "C3:17\n  weights ")) << row.out << row.err;
  for (const char* wrong : {"C3", "C3:x", "C99:1", "C3:-1", "C3:99999999"}) {
    EXPECT_EQ(rowtide({"inspect", run(), "--row", wrong}).exit_code, 2) << wrong;
  }
  const Finished eval = rowtide({"eval", run(), "--data", file()});
  EXPECT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_TRUE(contains(eval.out, "AUC")) << eval.out;
  EXPECT_EQ(rowtide({"eval", run(), "--data", "/nowhere.tsv"}).exit_code, 3);
}

TEST_F(CommandLineTest, ARunIsNotOverwrittenAndResumesOnlyAsItWas) {
  ASSERT_EQ(train({"--steps", "3"}).exit_code, 0);
  const Finished again = train();
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_TRUE(contains(again.err, "--resume")) << again.err;
  const Finished changed = train({"--resume", "--set", "optimizer.learning_rate=0.5"});
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_TRUE(contains(changed.err, "optimizer.learning_rate was 0.01 and is now 0.5"))
      << changed.err;
}

TEST_F(CommandLineTest, PausedAndResumedEqualsUninterrupted) {
  ASSERT_EQ(train({}, "whole").exit_code, 0);
  ASSERT_EQ(train({"--steps", "17"}).exit_code, 0);
  EXPECT_EQ(metrics().back()["steps"], 17);
  // Tiers and threads may change on the way.
  ASSERT_EQ(train({"--resume", "--steps", "30", "--set", "tiers.policy=lru", "--set",
                   "run.threads=1", "--set", "tiers.hbm_bytes=1MiB"})
                .exit_code,
            0);
  ASSERT_EQ(train({"--resume"}).exit_code, 0);
  EXPECT_EQ(metrics().back()["digest"], metrics("whole").back()["digest"]);
  EXPECT_EQ(metrics().back()["auc"], metrics("whole").back()["auc"]);
  EXPECT_EQ(losses(), losses("whole"));
  EXPECT_GT(metrics("whole").back()["tiers"]["ssd"]["unique_hits"].get<uint64_t>(), 100u);
}

TEST_F(CommandLineTest, AStopThatIsPastLeavesTheWindowOpen) {
  const std::vector<std::string> wide = {"--set", "run.metrics_every=10"};
  ASSERT_EQ(train(wide, "whole").exit_code, 0);
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), wide.begin(), wide.end());
    return train(more).exit_code;
  };
  ASSERT_EQ(with({"--steps", "17"}), 0);
  ASSERT_EQ(with({"--resume", "--steps", "12"}), 0);
  ASSERT_EQ(with({"--resume"}), 0);
  EXPECT_EQ(losses(), losses("whole"));
}

TEST_F(CommandLineTest, CtrlCCommitsAndResumesToTheSameModel) {
  const std::vector<std::string> long_run = {"--set", "run.epochs=3"};
  ASSERT_EQ(train(long_run, "whole").exit_code, 0);
  Program program(scratch_, train_arguments(long_run));
  ASSERT_TRUE(wait_for_lines(run(), "metrics.jsonl", 12));
  program.signal(SIGINT);
  const Finished stopped = program.wait();
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  ASSERT_EQ(metrics().back()["event"], "interrupted") << "it ended before the signal came";
  EXPECT_TRUE(contains(stopped.out, "--resume")) << stopped.out;
  EXPECT_TRUE(contains(read_file(run() + "/report.html"), "class='state interrupted'"));

  // What it says is what goes on, with all that --set changed.
  const std::string hint = "rowtide train " + run() + "/config.toml --resume";
  EXPECT_TRUE(contains(stopped.out, hint)) << stopped.out;
  ASSERT_EQ(rowtide({"train", run() + "/config.toml", "--resume"}).exit_code, 0);
  EXPECT_EQ(metrics().back()["digest"], metrics("whole").back()["digest"]);
  EXPECT_EQ(losses(), losses("whole"));
}

TEST_F(CommandLineTest, WithoutAStoreCtrlCSaysThatNothingIsKept) {
  Program program(scratch_, train_arguments({"--set", "run.epochs=1000", "--set", "tiers.ssd=[]",
                                             "--set", "tiers.hbm_bytes=64MiB"}));
  ASSERT_TRUE(wait_for_lines(run(), "metrics.jsonl", 3));
  program.signal(SIGINT);
  const Finished stopped = program.wait();
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_TRUE(contains(stopped.out, "nothing is kept")) << stopped.out;
  EXPECT_FALSE(contains(stopped.out, "--resume")) << stopped.out;
}

TEST_F(CommandLineTest, ASecondProcessIsToldThePidOfTheFirstAndChangesNothing) {
  const std::vector<std::string> running = {"--set", "run.epochs=1000"};
  Program program(scratch_, train_arguments(running));
  ASSERT_TRUE(wait_for_lines(run(), "metrics.jsonl", 3));
  program.stop();
  const auto before = files_of(run());
  std::vector<std::vector<std::string>> second = {{"inspect", run()}};
  for (const char* place : {"", "elsewhere"}) {  // a second store is no excuse
    auto arguments = train_arguments(running);
    arguments.insert(arguments.end(), {"--resume", "--steps", "1", "--set", "tiers.policy=lru"});
    const std::string store = "[{directory='" + scratch_.file(place) + "', bytes='64MiB'}]";
    if (*place != 0) arguments.insert(arguments.end(), {"--set", "tiers.ssd=" + store});
    second.push_back(arguments);
  }
  for (const auto& arguments : second) {
    const ScratchDirectory other;
    const Finished refused = Program(other, arguments).wait();
    EXPECT_EQ(refused.exit_code, 4) << refused.err;
    EXPECT_TRUE(contains(refused.err, std::to_string(program.pid()))) << refused.err;
    EXPECT_EQ(files_of(run()), before);
  }
  program.signal(SIGKILL);
  program.wait();
}

TEST_F(CommandLineTest, AResumeThatIsRefusedLeavesTheRunAsItWas) {
  // The log outgrows the budget that it is then given.
  ASSERT_EQ(train({"--steps", "45", "--set", "run.commit_every=5"}).exit_code, 0);
  const auto before = files_of(run());
  const Finished refused =
      train({"--resume", "--set", "tiers.ssd=[{directory='store', bytes='1MiB'}]"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_TRUE(contains(refused.err, "the budget is")) << refused.err;
  EXPECT_EQ(files_of(run()), before);
  EXPECT_EQ(rowtide({"inspect", run()}).exit_code, 0);
}

TEST_F(CommandLineTest, AResumeThatLooksForItsRowsElsewhereIsRefused) {
  ASSERT_EQ(train({"--steps", "10"}).exit_code, 0);
  const auto before = files_of(run());
  const std::string elsewhere = "[{directory='" + scratch_.file("moved") + "', bytes='64MiB'}]";
  for (const std::string& ssd : {elsewhere, std::string("[]")}) {
    const Finished refused =
        train({"--resume", "--set", "tiers.ssd=" + ssd, "--set", "tiers.hbm_bytes=64MiB"});
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_TRUE(contains(refused.err, "store")) << refused.err;
    EXPECT_EQ(files_of(run()), before);
  }
  std::filesystem::remove_all(scratch_.file("moved"));
  std::filesystem::rename(run() + "/store", scratch_.file("moved"));
  EXPECT_EQ(train({"--resume", "--set", "tiers.ssd=" + elsewhere}).exit_code, 0);
}

TEST_F(CommandLineTest, TheStoreOfAnotherRunIsRefused) {
  const std::string store = scratch_.file("shared");
  const std::string ssd = "tiers.ssd=[{directory='" + store + "', bytes='64MiB'}]";
  ASSERT_EQ(train({"--steps", "10", "--set", ssd}, "first").exit_code, 0);
  ASSERT_EQ(train({"--steps", "5"}, "second").exit_code, 0);
  const auto before = files_of(scratch_.file("second"));
  const std::string first = read_file(scratch_.file("first/ID"));
  for (const char* name : {"second", "third"}) {
    const Finished refused = train({"--resume", "--set", ssd}, name);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_TRUE(contains(refused.err, store) && contains(refused.err, first) &&
                contains(refused.err, scratch_.file(name)))
        << refused.err;
  }
  EXPECT_EQ(files_of(scratch_.file("second")), before);
  EXPECT_FALSE(std::filesystem::exists(scratch_.file("third")));
  EXPECT_EQ(train({"--resume", "--set", ssd}, "first").exit_code, 0);
}

// Seven segments of 128 KiB, of which cleaning could gain no more than it pads: it went round for
// ever.
TEST_F(CommandLineTest, ALogTooSmallForWhatChangesEndsTheRunByName) {
  const Watchdog watchdog("a run whose log gets full");
  ASSERT_EQ(train({"--steps", "30"}).exit_code, 0);
  const Finished full =
      train({"--resume", "--set", "tiers.ssd=[{directory='store', bytes='1MiB'}]"});
  EXPECT_EQ(full.exit_code, 4) << full.err;
  EXPECT_TRUE(contains(full.err, "the log is full")) << full.err;
  EXPECT_EQ(train({"--resume"}).exit_code, 0);  // with the budget of before
}

TEST_F(CommandLineTest, AllInMemoryGivesTheSameDigest) {
  ASSERT_EQ(train().exit_code, 0);
  const Finished memory =
      train({"--set", "tiers.hbm_bytes=64MiB", "--set", "tiers.ssd=[]"}, "memory");
  ASSERT_EQ(memory.exit_code, 0) << memory.err;
  EXPECT_EQ(metrics().back()["digest"], metrics("memory").back()["digest"]);
}

TEST_F(CommandLineTest, ALossThatIsNoNumberStopsTheRunAndKeepsTheCommit) {
  const std::vector<std::string> hot = {
      "--set", "optimizer.embedding=sgd",      "--set", "optimizer.dense=sgd",
      "--set", "optimizer.learning_rate=1000", "--set", "run.commit_every=1"};
  const Finished finished = train(hot);
  EXPECT_EQ(finished.exit_code, 1) << finished.err;
  EXPECT_TRUE(contains(finished.err, "at learning rate 1000; the last commit, at step "))
      << finished.err;
  EXPECT_EQ(metrics().back()["event"], "failed");
  EXPECT_EQ(rowtide({"inspect", run()}).exit_code, 0);
}

TEST_F(CommandLineTest, PlanSaysWhatARunTakes) {
  const Finished plan = rowtide({"plan", config()});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  for (const char* part :
       {"hbm", "ddr", "ssd", "dense part", "reader", "process at start", "least"}) {
    EXPECT_TRUE(contains(plan.out, part)) << part << "\n" << plan.out;
  }
  EXPECT_EQ(rowtide({"plan", config(), "--set", "tiers.hbm_bytes=4096"}).exit_code, 2);
}

// Killed at moments drawn by seed, in steps and in commits, and resumed until the end.
TEST_F(CommandLineTest, TwentyKillsChangeNothingSlow) {
  const std::vector<std::string> often = {"--set", "run.epochs=2", "--set", "run.commit_every=7"};
  ASSERT_EQ(train(often, "whole").exit_code, 0);
  auto resume = often;
  resume.push_back("--resume");
  std::mt19937 random(1);
  int kills = 0;
  for (int round = 0; kills < 20; ++round) {
    ASSERT_LT(round, 60) << "most runs ended before they were killed";
    const std::string name = "run" + std::to_string(round);
    for (int part = 0; part < 3; ++part) {
      Program program(scratch_, train_arguments(resume, name));
      const std::string text = read_file(scratch_.file(name) + "/metrics.jsonl");
      const long lines = std::count(text.begin(), text.end(), '\n');
      wait_for_lines(scratch_.file(name), "metrics.jsonl", lines / 2 + long(random() % 40));
      const auto until =
          std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 20000);
      while (std::chrono::steady_clock::now() < until) {
      }
      program.signal(SIGKILL);
      kills += program.wait().exit_code == -1;
    }
    const Finished finished = train(resume, name);
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    ASSERT_EQ(metrics(name).back()["digest"], metrics("whole").back()["digest"]) << name;
    ASSERT_EQ(losses(name), losses("whole")) << name;
  }
}

TEST(InterruptDeathTest, TheSecondCtrlCEndsAtOnceWith130) {
  EXPECT_EXIT(
      {
        watch_for_interrupts();
        ::raise(SIGINT);
        if (!interrupt_requested()) std::exit(1);
        ::raise(SIGINT);
      },
      ::testing::ExitedWithCode(130), "once more ends at once");
}

}  // namespace
}  // namespace rowtide
