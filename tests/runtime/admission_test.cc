#include "runtime/admission.h"

#include <gtest/gtest.h>

#include <fstream>

#include "runtime/base/host_arena.h"
#include "tests/support/paired_runtime.h"

namespace rowtide {
namespace {

class AdmissionTest : public testing::Test {
 protected:
  // Which of the keys are refused, as the next batch.
  std::vector<uint8_t> judge(const std::vector<Key>& keys) {
    std::vector<uint8_t> refused(keys.size(), 9);
    admission_->judge(keys.data(), 0, static_cast<uint32_t>(keys.size()), refused.data());
    return refused;
  }
  void make(const RuntimeOptions& options) {
    auto layout = make_layout(options);
    ASSERT_TRUE(layout.ok()) << layout.status().to_string();
    Carver size;
    Admission measured(options, *layout, size);
    memory_ = HostArena::reserve(size.used() + 64, "admission").value();
    Carver carver(memory_.bytes());
    admission_ = std::make_unique<Admission>(options, *layout, carver);
    EXPECT_EQ(carver.used(), size.used());
  }
  RuntimeOptions options(const std::string& admission) {
    RuntimeOptions o = one_table("unused");
    o.tables.push_back({.name = "a:b", .rows = 50, .width = 4});
    o.admission = admission;
    o.profile = directory_ / "profile";
    o.hbm_bytes = o.ddr_bytes = 1 << 30;
    return o;
  }
  void write_profile(const std::string& text) { std::ofstream(directory_ / "profile") << text; }

  ScratchDirectory directory_;
  HostArena memory_;
  std::unique_ptr<Admission> admission_;
};

TEST_F(AdmissionTest, CountAdmitsFromTheSecondBatchOn) {
  make(options("count"));
  EXPECT_EQ(judge({1, 2, 3}), (std::vector<uint8_t>{1, 1, 1}));
  EXPECT_EQ(judge({3, 4, 1}), (std::vector<uint8_t>{0, 1, 0}));
  EXPECT_EQ(judge({4, 2}), (std::vector<uint8_t>{0, 0}));
}

TEST_F(AdmissionTest, CountForgetsButNeverLetsFarMoreThanASixteenthInByChance) {
  make(options("count"));
  uint64_t by_chance = 0;
  constexpr Key kKeys = 200000;
  for (Key key = 0; key < kKeys; ++key) by_chance += judge({key})[0] == 0;
  EXPECT_LT(by_chance, kKeys / 12);
}

TEST_F(AdmissionTest, ProfileAdmitsExactlyWhatTheFileNames) {
  write_profile("t:5\nt:999\r\n\na:b:0\nt:5\n");
  make(options("profile"));
  EXPECT_EQ(judge({make_key(0, 5), make_key(0, 6), make_key(0, 999), make_key(0, 0), make_key(1, 0),
                   make_key(1, 5)}),
            (std::vector<uint8_t>{0, 1, 0, 1, 0, 1}));
}

TEST_F(AdmissionTest, AProfileOfNothingRefusesAll) {
  write_profile("");
  make(options("profile"));
  EXPECT_EQ(judge({1, 2}), (std::vector<uint8_t>{1, 1}));
}

TEST_F(AdmissionTest, ABadLineIsNamedByFileAndNumber) {
  for (const char* line : {"t", "t:", "t:-1", "t:1x", "t:1000", "u:1", ":1", "t: 1", "t:+1"}) {
    write_profile(std::string("t:1\n") + line + "\n");
    const Status status = Runtime::plan(options("profile")).status;
    EXPECT_EQ(status.code(), Code::kInvalid) << line;
    EXPECT_NE(status.message().find("profile:2: expected table:row, found \"" + std::string(line)),
              std::string::npos)
        << status.message();
  }
}

TEST_F(AdmissionTest, I7_AProfileIsPartOfTheDdrBudget) {
  write_profile("t:1\n");
  const uint64_t small = Runtime::plan(options("profile")).ddr_bytes;
  std::ofstream file(directory_ / "profile");
  for (int row = 0; row < 100000; ++row) file << "t:" << row % 1000 << "\n";
  file.close();
  EXPECT_GT(Runtime::plan(options("profile")).ddr_bytes, small + 100000 * sizeof(Key));
}

}  // namespace
}  // namespace rowtide
