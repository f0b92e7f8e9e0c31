#pragma once
// command_line_case — a tiny model, a data set and the built program, for tests that use it as
// scripts do.

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/program.h"
#include "trainer/config_resolve.h"
#include "trainer/synth.h"

namespace rowtide {

using Json = nlohmann::json;

inline constexpr uint64_t kRows = 4000;

class CommandLineTest : public ::testing::Test {
 protected:
  // One data set for all tests.
  static void SetUpTestSuite() {
    data_ = new ScratchDirectory;
    ASSERT_TRUE(write_synthetic_criteo({.rows = kRows, .out = file()}).ok());
  }
  static void TearDownTestSuite() { delete data_; }
  static std::string file() { return data_->file("train.tsv.gz"); }

  void SetUp() override {
    if (!std::filesystem::exists(Program::path())) {
      GTEST_SKIP() << "no rowtide in the folder that ROWTIDE_BIN names";
    }
    write_config("1GiB", "1GiB");
    // Little more than the least that works, so that rows go all the way down and back.
    const std::string plan = rowtide({"plan", config()}).out;
    write_config(std::to_string(least(plan, "hbm") * 5 / 4),
                 std::to_string(least(plan, "ddr") + (200 << 10)));
  }

  void write_config(const std::string& hbm, const std::string& ddr) {
    write_file(config(), R"([data]
batch = 64
eval_fraction = 0.2
[model]
dim = 8
bottom = [16, 8]
top = [16, 1]
cap_rows = 20000
[tiers]
hbm_bytes = ")" + hbm + R"("
ddr_bytes = ")" + ddr + R"("
ssd = [{directory = "store", bytes = "64MiB"}]
known_batches = 6
placed_batches = 2
[run]
metrics_every = 1
digest = true
)");
  }

  // The last column of a tier's line in a plan.
  static uint64_t least(const std::string& plan, const std::string& tier) {
    const size_t table = plan.rfind("planned        budget");
    const size_t line = plan.find("\n" + tier + " ", table);
    const std::string text = plan.substr(line + 1, plan.find('\n', line + 1) - line - 1);
    const size_t number = text.rfind("  ") + 2;
    const auto bytes = parse_size(text.substr(number));
    EXPECT_TRUE(bytes.ok()) << text;
    return bytes.ok() ? *bytes : 0;
  }

  std::string config() const { return scratch_.file("tiny.toml"); }
  std::string run() const { return scratch_.file("run"); }

  Finished rowtide(const std::vector<std::string>& arguments) {
    return Program(scratch_, arguments).wait();
  }
  std::vector<std::string> train_arguments(const std::vector<std::string>& more = {},
                                           const std::string& directory = "run") {
    std::vector<std::string> all = {"train", config(),
                                    "--set", "data.files=" + file(),
                                    "--set", "run.directory=" + scratch_.file(directory)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Finished train(const std::vector<std::string>& more = {}, const std::string& directory = "run") {
    return rowtide(train_arguments(more, directory));
  }

  std::vector<Json> metrics(const std::string& directory = "run") {
    std::vector<Json> lines;
    std::istringstream in(read_file(scratch_.file(directory) + "/metrics.jsonl"));
    for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
    return lines;
  }
  // What lies in a folder and below.  Locks are left out: they say who was there, not what is.
  static std::map<std::string, std::string> files_of(const std::string& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file() || entry.path().filename() == "LOCK") continue;
      files[entry.path()] = read_file(entry.path());
    }
    return files;
  }

  static void flip_byte(const std::string& path, size_t at) {
    std::string bytes = read_file(path);
    bytes.at(at) ^= 1;
    write_file(path, bytes);
  }
  // Spoils every version of a row's record in the run's log: TABLE:ROW, in fp32.  Without its hints
  // the next run does not read it before it is asked for.
  void rot(const std::string& row) {
    std::istringstream words(rowtide({"inspect", run(), "--row", row}).out);
    std::string word;
    words >> word >> word;  // its name, "weights"
    std::string weights;
    for (float value; words >> value;) weights.append(reinterpret_cast<const char*>(&value), 4);
    int found = 0;
    for (const auto& [path, bytes] : files_of(run() + "/store")) {
      for (size_t at = 0; (at = bytes.find(weights, at)) != bytes.npos; ++at, ++found) {
        flip_byte(path, at);
      }
    }
    ASSERT_GT(found, 0) << row;
    std::filesystem::remove(run() + "/store/HINTS");
  }

  // Step and loss of each metrics line.
  std::vector<std::pair<uint64_t, double>> losses(const std::string& directory = "run") {
    std::vector<std::pair<uint64_t, double>> out;
    for (const Json& line : metrics(directory)) {
      if (line["event"] == "metrics") out.emplace_back(line["steps"], line["loss"]);
    }
    return out;
  }

  inline static ScratchDirectory* data_ = nullptr;
  ScratchDirectory scratch_;
};

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace rowtide
