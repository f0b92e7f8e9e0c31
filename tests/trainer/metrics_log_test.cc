#include "trainer/metrics_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/scratch_directory.h"
#include "trainer/config_toml.h"

namespace rowtide {
namespace {

using Json = nlohmann::json;

// While it lives, nothing more fits into a file: its writes fail as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(const std::string& path) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      if (std::filesystem::read_symlink(entry, gone) != path) continue;
      file_ = std::stoi(entry.path().filename());
    }
    EXPECT_GE(file_, 0);
    kept_ = ::dup(file_);
    const int full = ::open("/dev/full", O_WRONLY);
    ::dup2(full, file_);
    ::close(full);
  }
  ~FullDisk() {
    ::dup2(kept_, file_);
    ::close(kept_);
  }

 private:
  int file_ = -1, kept_ = -1;
};

class MetricsLogTest : public ::testing::Test {
 protected:
  std::string path() const { return scratch_.file("metrics.jsonl"); }
  StartRecord start(uint64_t step = 0) {
    return {.config = *parse_config("", "model.toml"),
            .plan = {{"hbm", "resident C1", 4096}},
            .instruction_set = "avx2",
            .io_engine = "io_uring",
            .file_system = "ext4",
            .step = step};
  }
  std::vector<Json> lines() {
    std::vector<Json> out;
    std::istringstream in(read_file(path()));
    for (std::string line; std::getline(in, line);) out.push_back(Json::parse(line));
    return out;
  }
  MetricsLog open(bool resume = false, uint64_t step = 0) {
    auto log = MetricsLog::open(path(), resume, start(step));
    EXPECT_TRUE(log.ok()) << log.status().to_string();
    return std::move(*log);
  }
  static StepRecord at(uint64_t steps) { return {.steps = steps, .samples = steps * 10}; }

  ScratchDirectory scratch_;
};

TEST_F(MetricsLogTest, TheFirstLineSaysWhatRunsWhere) {
  open();
  const Json first = lines().at(0);
  EXPECT_EQ(first["event"], "start");
  EXPECT_EQ(first["schema"], 1);
  EXPECT_EQ(first["version"], version());
  EXPECT_EQ(first["instruction_set"], "avx2");
  EXPECT_EQ(first["io_engine"], "io_uring");
  EXPECT_EQ(first["file_system"], "ext4");
  EXPECT_TRUE(first.contains("cpu"));
  EXPECT_EQ(first["config"]["data"]["batch"], 2048);
  EXPECT_EQ(first["config"]["model"]["tables"].size(), 26u);
  EXPECT_EQ(first["config"]["model"]["tables"][2]["rows"], 10131227);
  EXPECT_EQ(first["config"]["tiers"]["ssd"][0]["directory"], "store");
  EXPECT_EQ(first["plan"][0]["what"], "resident C1");
}

TEST_F(MetricsLogTest, TheLastLineHasEveryPromisedField) {
  EndRecord record{.last = at(5), .quality = Quality{.ne = 0.9, .auc = 0.7, .calibration = 1.1}};
  record.last.stats.hbm = {.hits = 30, .unique_hits = 20};
  record.last.stats.fresh = {.hits = 4, .unique_hits = 3};
  record.last.stats.ssd_tier = {
      .rows_in = 1, .written = 2, .dropped = 3, .bytes_used = 4, .bytes_budget = 5};
  record.last.stats.tables = {{.name = "C1"}};
  record.digest = "00ff";
  ASSERT_TRUE(open().end(record).ok());
  const Json last = lines().back();
  EXPECT_EQ(last["event"], "end");
  for (const char* field : {"steps", "samples", "samples_per_s", "loss", "ne", "auc", "calibration",
                            "digest", "stall_s", "placed_lowered", "transit_rows"}) {
    EXPECT_TRUE(last.contains(field)) << field;
  }
  EXPECT_EQ(last["auc"], 0.7);
  EXPECT_EQ(last["tiers"]["hbm"]["hits"], 30);
  EXPECT_EQ(last["tiers"]["new"]["unique_hits"], 3);
  for (const char* field :
       {"hits", "unique_hits", "rows_in", "written", "dropped", "bytes_used", "bytes_budget"}) {
    for (const char* tier : {"hbm", "ddr", "ssd"}) EXPECT_TRUE(last["tiers"][tier].contains(field));
  }
  EXPECT_EQ(last["tiers"]["ssd"]["bytes_budget"], 5);
  EXPECT_EQ(last["tables"][0]["name"], "C1");
  std::vector<std::string> stages;
  for (const auto& [name, seconds] : last["stages"].items()) stages.push_back(name);
  EXPECT_EQ(stages.size(), kStageCount);
  for (const char* name : kStageNames) EXPECT_TRUE(last["stages"].contains(name)) << name;
}

TEST_F(MetricsLogTest, WhatIsNoNumberIsNull) {
  StepRecord record = at(1);
  record.loss = std::nan("");
  record.ne = INFINITY;
  ASSERT_TRUE(open().step(record).ok());
  EXPECT_TRUE(lines().back()["loss"].is_null());
  EXPECT_TRUE(lines().back()["ne"].is_null());
}

TEST_F(MetricsLogTest, ResumeDropsWhatLiesPastTheCommit) {
  {
    MetricsLog log = open();
    for (uint64_t step : {10, 20, 30}) ASSERT_TRUE(log.step(at(step)).ok());
    ASSERT_TRUE(log.end({.event = "failed", .last = at(31)}).ok());
  }
  open(true, 20);
  const auto all = lines();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0]["event"], "start");
  EXPECT_EQ(all[1]["steps"], 10);
  EXPECT_EQ(all[2]["steps"], 20);
  EXPECT_EQ(all[3]["event"], "resume");
  EXPECT_EQ(all[3]["steps"], 20);
}

TEST_F(MetricsLogTest, ResumeDropsALineThatWasCut) {
  {
    MetricsLog log = open();
    for (uint64_t step : {10, 20}) ASSERT_TRUE(log.step(at(step)).ok());
  }
  const std::string whole = read_file(path());
  for (size_t cut = 1; cut < 200; ++cut) {
    write_file(path(), whole.substr(0, whole.size() - cut));
    open(true, 20);
    ASSERT_EQ(lines().size(), 3u) << "cut by " << cut;
    EXPECT_EQ(lines()[2]["event"], "resume");
  }
}

TEST_F(MetricsLogTest, ResumeOfAnEmptyFileStarts) {
  write_file(path(), "");
  open(true, 0);
  EXPECT_EQ(lines().at(0)["event"], "start");
}

// A disk that fills while the log is open, and one that is full when it is opened.
TEST_F(MetricsLogTest, AFullDiskIsNamed) {
  const auto expect_full = [&](const Status& status) {
    EXPECT_EQ(status.code(), Code::kNoSpace);
    EXPECT_NE(status.message().find(path() + ": No space left on device"), std::string::npos)
        << status.message();
  };
  {
    MetricsLog log = open();
    const FullDisk full(path());
    expect_full(log.step(at(1)));
    expect_full(log.evaluation({}));
    expect_full(log.commit(1, 1, 0));
    expect_full(log.end({.event = "end", .last = at(1)}));
  }
  EXPECT_EQ(lines().size(), 1u);
  std::filesystem::create_symlink("/dev/full", path() + ".part");
  expect_full(MetricsLog::open(path(), true, start()).status());
  EXPECT_EQ(lines().size(), 1u);  // what was there stays
}

}  // namespace
}  // namespace rowtide
