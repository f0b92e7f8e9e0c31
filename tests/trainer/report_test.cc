#include "trainer/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "tests/support/scratch_directory.h"
#include "trainer/chart.h"
#include "trainer/config_toml.h"
#include "trainer/metrics_log.h"

namespace rowtide {
namespace {

StepRecord step_record(uint64_t steps) {
  const double t = double(steps);
  StepRecord record{.steps = steps,
                    .samples = steps * 2048,
                    .seconds = t / 20,
                    .samples_per_s = 40960 + 2000 * std::sin(t / 70),
                    .learning_rate = 0.01,
                    .loss = 0.45 + 0.25 * std::exp(-t / 200) + 0.01 * std::sin(t),
                    .ne = 0.82 + 0.2 * std::exp(-t / 200) + 0.01 * std::sin(t)};
  Stats& stats = record.stats;
  stats.hbm = {steps * 45000, steps * 9000};
  stats.ddr = {steps * 5000, steps * 3000};
  stats.ssd = {steps * 2000, steps * 1500};
  stats.fresh = {uint64_t(1000000 * (1 - std::exp(-t / 300))), steps * 400};
  stats.hbm_tier = {steps * 4900, 0, 0, 30 << 20, 32 << 20};
  stats.ddr_tier = {steps * 2000, steps * 4800, 0, 100 << 20, 128 << 20};
  stats.ssd_tier = {0, steps * 1800, steps * 100, steps << 18, 1 << 30};
  stats.rows_read_from_ssd = steps * 1500;
  stats.stall_s = t / 200;
  for (size_t i = 0; i < kStageCount; ++i) record.stages.seconds[i] = t / 100 * double(i % 5 + 1);
  for (int i = 1; i <= 26; ++i) {
    stats.tables.push_back({.name = "C" + std::to_string(i),
                            .hbm = {steps * 1000u / i, steps},
                            .ddr = {steps * 20 * i, steps},
                            .ssd = {steps * 9 * i, steps},
                            .resident = i % 3 == 0});
  }
  return record;
}

class ReportTest : public ::testing::Test {
 protected:
  MetricsLog start(bool resume = false, uint64_t step = 0) {
    StartRecord record{.config = *parse_config("", "model.toml"),
                       .plan = {{"hbm", "resident <C1>", 4 << 20},
                                {"hbm", "sets of group 16+1", 26 << 20},
                                {"ddr", "index", 40 << 20},
                                {"ddr", "slots", 60 << 20},
                                {"ssd", "log", 1 << 30},
                                {"process", "dense part", 9 << 20},
                                {"process", "reader", 20 << 20}},
                       .instruction_set = "avx2",
                       .io_engine = "io_uring",
                       .file_system = "ext4",
                       .step = step};
    return std::move(*MetricsLog::open(scratch_.file("metrics.jsonl"), resume, record));
  }
  void train(MetricsLog& log, uint64_t from, uint64_t to) {
    for (uint64_t step = from; step <= to; step += 10) {
      ASSERT_TRUE(log.step(step_record(step)).ok());
      if (step % 200 != 0) continue;
      const double gain = 0.1 * (1 - std::exp(-double(step) / 300));
      ASSERT_TRUE(log.evaluation({.steps = step,
                                  .quality = {.samples = 100000,
                                              .logloss = 0.56 - gain,
                                              .ne = 0.97 - gain,
                                              .auc = 0.68 + gain,
                                              .calibration = 1.01}})
                      .ok());
    }
  }
  std::string report() {
    const Status status =
        write_report(scratch_.file("metrics.jsonl"), scratch_.file("report.html"));
    EXPECT_TRUE(status.ok()) << status.to_string();
    return read_file(scratch_.file("report.html"));
  }

  ScratchDirectory scratch_;
};

TEST_F(ReportTest, AFinishedRunShowsEverythingInOneFile) {
  {
    MetricsLog log = start();
    train(log, 10, 400);
    MetricsLog resumed = start(true, 400);
    train(resumed, 410, 1000);
    ASSERT_TRUE(resumed
                    .end({.last = step_record(1000),
                          .quality = Quality{},
                          .digest = "0123456789abcdef0123456789abcdef",
                          .peak_resident_bytes = 170 << 20})
                    .ok());
  }
  const std::string html = report();
  for (const char* part : {"finished", "Loss", "Normalised entropy", "Moved in a step", "Memory",
                           "0123456789abcdef0123456789abcdef", "resumed", "Configuration",
                           "resident &lt;C1&gt;", "learning_rate = 0.01", "stall", "io_uring"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
  // Self-contained, and no figure came out as NaN.
  for (const char* part : {"http", "src=", "<script", "nan", "inf%"}) {
    EXPECT_EQ(html.find(part), std::string::npos) << part;
  }
}

TEST_F(ReportTest, InterruptedFailedAndKilledRunsHaveOneToo) {
  for (const char* event : {"interrupted", "failed"}) {
    MetricsLog log = start();
    train(log, 10, 50);
    ASSERT_TRUE(
        log.end({.event = event, .message = "step 51: <loss>", .last = step_record(51)}).ok());
    const std::string html = report();
    EXPECT_NE(html.find(std::string("class='state ") + event), std::string::npos);
    EXPECT_NE(html.find("step 51: &lt;loss&gt;"), std::string::npos);
  }
  start();
  EXPECT_NE(report().find("not ended"), std::string::npos);
  write_file(scratch_.file("metrics.jsonl"),
             read_file(scratch_.file("metrics.jsonl")) + "{\"event\":\"metr");
  report();
}

TEST_F(ReportTest, WhatIsNoMetricsFileIsNamed) {
  const std::string path = scratch_.file("metrics.jsonl");
  EXPECT_EQ(write_report(path, scratch_.file("r")).code(), Code::kNotFound);
  write_file(path, "{}\nhello\n{}\n");
  EXPECT_EQ(write_report(path, scratch_.file("r")).message(), path + ":2: no JSON object");
}

TEST_F(ReportTest, AFullDiskIsNamedAndLeavesTheReportThatWasThere) {
  start();
  const std::string before = report();
  const std::string path = scratch_.file("report.html");
  std::filesystem::create_symlink("/dev/full", path + ".part");
  const Status full = write_report(scratch_.file("metrics.jsonl"), path);
  EXPECT_EQ(full.code(), Code::kNoSpace);
  EXPECT_NE(full.message().find(path), std::string::npos) << full.message();
  EXPECT_EQ(read_file(path), before);
}

TEST(ChartTest, GapsOnePointAndNothingAreDrawn) {
  const ChartFrame frame{.x_label = "step"};
  EXPECT_NE(line_chart(frame, {}).find("Nothing"), std::string::npos);
  EXPECT_NE(line_chart(frame, {{"a", "x", {{1, NAN}}}}).find("Nothing"), std::string::npos);
  EXPECT_EQ(line_chart(frame, {{"a", "x", {{1, 2}}}}).find("nan"), std::string::npos);
  EXPECT_EQ(line_chart(frame, {{"a", "x", {{1, 2}, {2, NAN}, {3, 0}}}}).find("nan"),
            std::string::npos);
  EXPECT_EQ(stacked_chart(frame, {{"a", "x", {{1, 0}}}, {"b", "y", {{1, 0}}}}).find("nan"),
            std::string::npos);
}

TEST(ChartTest, NumbersAreShort) {
  EXPECT_EQ(short_number(0.45231), "0.4523");
  EXPECT_EQ(short_number(1234), "1234");
  EXPECT_EQ(short_number(12345), "12.35 k");
  EXPECT_EQ(short_number(2500000), "2.5 M");
}

}  // namespace
}  // namespace rowtide
