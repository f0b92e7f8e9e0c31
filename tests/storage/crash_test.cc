// Random sequences against a plain map, with a crash at every kind of moment.

#include <random>

#include "tests/storage/store_fixture.h"

namespace rowtide::storage {
namespace {

using Versions = std::map<Key, uint64_t>;

// A store on the fake disk has one thread, so the thread sanitizer has little to see.
#ifdef __SANITIZE_THREAD__
constexpr uint64_t kSeeds = 4;
#else
constexpr uint64_t kSeeds = 20;
#endif

// One store, one plain map, and what each commit held.
class CrashRun {
 public:
  // `eager`: the least write buffer, so that appends wait often, commits right after an open, and
  // processes that die alone.
  explicit CrashRun(uint64_t seed, bool eager = false) : random_(seed), t_(seed), eager_(eager) {
    constexpr uint32_t kSizes[] = {4, 20, 68, 132, 260, 516, 2052, 16388};
    bytes_ = kSizes[pick(std::size(kSizes))];
    keys_ = bytes_ < 1000 ? 50 + pick(1500) : 10 + pick(40);
    t_.options.payload_bytes = {bytes_};
    t_.options.directories[0].bytes = std::max<uint64_t>(1 << 20, keys_ * (bytes_ + 20) * 6);
    if (bytes_ > 1000) t_.options.directories[0].bytes += 4 << 20;
    if (pick(3) == 0) t_.options.directories.push_back({"dir2", 1 << 20});
    t_.options.tables = {{0, keys_}};
    if (pick(4) == 0) t_.options.tables.clear();
    t_.options.max_rows = keys_;
    t_.options.write_buffer_bytes = eager ? 1 : 64 << 10 << pick(4);
    t_.faults() = {.delay = pick(2) * 0.5, .short_transfer = pick(2) * 0.3};
  }

  void run(int lives) {
    for (int life = 0; life < lives && !::testing::Test::HasFatalFailure(); ++life) {
      live();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }

 private:
  uint64_t pick(uint64_t n) { return random_() % n; }

  void open() {
    const Status status = t_.open();
    ASSERT_TRUE(status.ok()) << status.to_string();
    const uint32_t epoch = t_.store->last_commit().epoch;
    ASSERT_TRUE(epoch == committed_ || epoch == maybe_committed_) << epoch;
    if (epoch == maybe_committed_ && epoch != committed_) {
      before_ = committed_;
      committed_ = epoch;
    }
    now_ = commits_[committed_];
    ASSERT_TRUE(holds(*t_.store, now_, keys_, bytes_)) << "commit " << committed_;
    epoch_ = t_.store->next_epoch();
    if (before_ != 0) check_reader(before_);
  }

  void check_reader(uint32_t epoch) {
    auto reader = t_.open_reader(epoch);
    ASSERT_TRUE(reader.ok()) << reader.status().to_string();
    ASSERT_TRUE(holds(**reader, commits_[epoch], keys_, bytes_)) << "reader of commit " << epoch;
  }

  void put(Key key, uint32_t epoch) {
    const Status status = t_.put(key, ++version_, epoch);
    if (t_.disk.frozen()) return;
    ASSERT_TRUE(status.ok()) << status.to_string();
    now_[key] = version_;
  }

  // The rows of a commit are those at its cut, whatever is written while it is made.
  void commit() {
    const Versions at_cut = now_;
    const uint32_t epoch = epoch_++;
    if (pick(2) == 0) {
      ASSERT_TRUE(t_.store->begin_commit(epoch).ok());
      for (uint64_t i = pick(100); i > 0 && !t_.disk.frozen(); --i) put(pick(keys_), epoch_);
    }
    commits_[epoch] = at_cut;
    maybe_committed_ = epoch;
    if (t_.disk.frozen()) return;
    const Status status = t_.commit(epoch);
    if (t_.disk.frozen()) return;
    ASSERT_TRUE(status.ok()) << status.to_string();
    before_ = committed_;
    committed_ = epoch;
  }

  void live() {
    open();
    if (::testing::Test::HasFatalFailure()) return;
    if (eager_ && pick(2) == 0) commit();
    if (::testing::Test::HasFatalFailure()) return;
    t_.disk.freeze_after(pick(pick(2) == 0 ? 100 : 3000));
    std::vector<ColdStore::Done> done;
    for (int step = 0; step < 60 && !t_.disk.frozen(); ++step) {
      for (uint64_t i = pick(bytes_ < 1000 ? 400 : 10); i > 0 && !t_.disk.frozen(); --i) {
        put(pick(4) == 0 ? pick(keys_) : pick(keys_) * pick(keys_) / keys_, epoch_);
      }
      if (::testing::Test::HasFatalFailure()) return;
      if (pick(6) == 0 && !t_.disk.frozen()) commit();
      if (pick(3) == 0) t_.store->poll(false, done);
      const Key key = pick(keys_);
      const std::string expected = now_.contains(key) ? std::to_string(now_[key]) : "absent";
      if (!t_.disk.frozen()) {
        ASSERT_EQ(read_row(*t_.store, key, bytes_, ~0ull), expected);
      }
    }
    eager_&& pick(2) == 0 ? t_.kill() : t_.crash();
  }

  std::mt19937_64 random_;
  StoreTester t_;
  bool eager_;
  uint32_t bytes_ = 0;
  uint64_t keys_ = 0, version_ = 0;
  Versions now_;
  std::map<uint32_t, Versions> commits_ = {{0, {}}};
  uint32_t committed_ = 0, before_ = 0, maybe_committed_ = 0, epoch_ = 1;
};

class CrashTest : public ::testing::TestWithParam<int> {};

TEST_P(CrashTest, EveryCrashReturnsToTheLastCommitAndReadersToTheOneBefore) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(GetParam() * 1000 + seed));
    CrashRun(static_cast<uint64_t>(GetParam()) * 1000 + seed).run(8);
    if (HasFatalFailure()) return;
  }
}

TEST_P(CrashTest, SoItDoesWhereAppendsWaitCommitsComeEarlyAndProcessesDieAlone) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(GetParam() * 1000 + seed));
    CrashRun(static_cast<uint64_t>(GetParam()) * 1000 + seed, /*eager=*/true).run(8);
    if (HasFatalFailure()) return;
  }
}

// A row with two marked copies, whose heir dies between one recovery and the next.
TEST(CrashTestSeed, EveryRecoveryChoosesTheSameOfTwoCopies) { CrashRun(15008).run(8); }

INSTANTIATE_TEST_SUITE_P(Seeds, CrashTest, ::testing::Range(0, 3));
INSTANTIATE_TEST_SUITE_P(SlowSeeds, CrashTest, ::testing::Range(3, 24));

}  // namespace
}  // namespace rowtide::storage
