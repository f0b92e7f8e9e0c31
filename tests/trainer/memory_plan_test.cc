#include "trainer/memory_plan.h"

#include <gtest/gtest.h>

namespace rowtide {
namespace {

TEST(MemoryPlanTest, PartsThatFitAloneButNotTogetherAreRefusedByName) {
  Plan plan;
  plan.lines = {{"hbm", "sets", 5 << 20},    {"ddr", "warm rows", 6 << 20},
                {"ssd", "log", 1 << 30},     {"process", "dense part", 1 << 20},
                {"process", "reader", 1024}, {"process", "process at start", 1 << 30}};
  constexpr uint64_t kNeed = (12 << 20) + 1024;
  EXPECT_TRUE(check_host_memory(plan, kNeed).ok());
  const Status status = check_host_memory(plan, kNeed - 1);
  EXPECT_EQ(status.code(), Code::kNoSpace);
  EXPECT_EQ(status.message(),
            "the run needs 12 MiB of host memory, 12 MiB are there; most of all warm rows (ddr) "
            "6 MiB, sets (hbm) 5 MiB, dense part (process) 1 MiB");
}

}  // namespace
}  // namespace rowtide
