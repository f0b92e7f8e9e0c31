// Matrix factorisation of real ratings through rowtide.h, with ids that are a site's own and genres
// as bags: it learns, and tiers change no bit of it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "tests/support/paired_runtime.h"

namespace rowtide {
namespace {

constexpr uint32_t kDim = 16;
constexpr size_t kBatch = 256;
constexpr float kMean = 3.5f;

struct Rating {
  int64_t user, movie;
  float stars;
};

struct Ratings {
  std::vector<Rating> train, held_out;
  std::map<int64_t, std::vector<int64_t>> genres;  // of a movie
  uint64_t genre_count = 0;
};

std::map<int64_t, std::vector<int64_t>> read_genres(const std::string& path, uint64_t* count) {
  std::map<int64_t, std::vector<int64_t>> of_movie;
  std::map<std::string, int64_t> numbers;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    while (!line.empty() && line.back() == '\r') line.pop_back();
    auto& genres = of_movie[std::stoll(line)];
    std::istringstream names(line.substr(line.rfind(',') + 1));  // titles may hold commas
    for (std::string name; std::getline(names, name, '|');) {
      genres.push_back(numbers.emplace(name, numbers.size()).first->second);
    }
  }
  *count = numbers.size();
  return of_movie;
}

Ratings read_ratings(const std::string& folder) {
  Ratings ratings;
  ratings.genres = read_genres(folder + "/movies.csv", &ratings.genre_count);
  std::ifstream file(folder + "/ratings.csv");
  std::string line;
  std::getline(file, line);
  std::vector<Rating> all;
  while (std::getline(file, line)) {
    Rating r{};
    char comma;
    std::istringstream(line) >> r.user >> comma >> r.movie >> comma >> r.stars;
    all.push_back(r);
  }
  std::mt19937_64 random(1);
  for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random() % i]);
  for (size_t i = 0; i < all.size(); ++i) {
    (i % 10 == 0 ? ratings.held_out : ratings.train).push_back(all[i]);
  }
  return ratings;
}

RuntimeOptions model_options(const Ratings& ratings) {
  RuntimeOptions o;
  const auto table = [&](const char* name, uint64_t rows, uint32_t width, float scale) {
    o.tables.push_back({.name = name,
                        .rows = rows,
                        .width = width,
                        .optimizer = OptimizerKind::kAdagrad,
                        .init_scale = scale});
  };
  table("user", 1000, kDim, 0.1f);
  table("movie", 1000000, kDim, 0.1f);  // numbers of the site: sparse, and no one counted them
  table("genre", ratings.genre_count, kDim, 0.1f);
  table("user bias", 1000, 1, 0);
  table("movie bias", 1000000, 1, 0);
  o.features = {{.name = "user", .table = 0, .max_ids_per_sample = 1},
                {.name = "movie", .table = 1, .max_ids_per_sample = 1},
                {.name = "genre", .table = 2, .pooling = Pooling::kMean, .max_ids_per_sample = 10},
                {.name = "user bias", .table = 3, .max_ids_per_sample = 1},
                {.name = "movie bias", .table = 4, .max_ids_per_sample = 1}};
  o.max_samples = kBatch;
  o.max_ids = kBatch * 14;
  o.known_batches = 8;
  o.placed_batches = 2;
  o.threads = 1;
  return o;
}

// stars ~ mean + bias of user and movie + user . (movie + genres)
class Factorisation {
 public:
  Factorisation(const Ratings& ratings, const RuntimeOptions& options)
      : ratings_(ratings), runtime_(open_or_fail(options)) {}

  Runtime& runtime() { return *runtime_; }

  // The mean squared error of each batch of one pass.
  std::vector<float> train() {
    std::vector<float> errors;
    std::deque<std::pair<size_t, Step>> flights;
    for (size_t begin = 0; begin < ratings_.train.size() || !flights.empty();) {
      for (; begin < ratings_.train.size() && flights.size() < 6; begin += kBatch) {
        flights.emplace_back(begin, std::move(*runtime_->submit(batch(ratings_.train, begin))));
        if (begin + kBatch >= ratings_.train.size()) runtime_->end_of_input();
      }
      errors.push_back(step(flights.front().first, flights.front().second));
      flights.pop_front();
    }
    return errors;
  }

  double held_out_rmse() {
    double sum = 0;
    for (size_t begin = 0; begin < ratings_.held_out.size(); begin += kBatch) {
      auto evaluation = runtime_->evaluate(batch(ratings_.held_out, begin));
      const std::span<float> out = outputs(ratings_.held_out, begin);
      EXPECT_TRUE(evaluation->forward({.pooled = out}).ok());
      for (size_t s = 0; s < out.size() / kWidth; ++s) {
        const float e = predict(&out[s * kWidth]) - ratings_.held_out[begin + s].stars;
        sum += double{e} * e;
      }
    }
    return std::sqrt(sum / static_cast<double>(ratings_.held_out.size()));
  }

 private:
  static constexpr size_t kWidth = 3 * kDim + 2;

  Batch batch(const std::vector<Rating>& of, size_t begin) {
    const size_t end = std::min(begin + kBatch, of.size());
    ids_.clear();
    offsets_ = {0};
    const auto feature = [&](auto&& ids_of) {
      for (size_t i = begin; i < end; ++i) {
        ids_of(of[i]);
        offsets_.push_back(static_cast<int64_t>(ids_.size()));
      }
    };
    feature([&](const Rating& r) { ids_.push_back(r.user); });
    feature([&](const Rating& r) { ids_.push_back(r.movie); });
    feature([&](const Rating& r) {
      const auto& genres = ratings_.genres.at(r.movie);
      ids_.insert(ids_.end(), genres.begin(), genres.end());
    });
    feature([&](const Rating& r) { ids_.push_back(r.user); });
    feature([&](const Rating& r) { ids_.push_back(r.movie); });
    return {.samples = end - begin, .ids = ids_, .offsets = offsets_};
  }

  std::span<float> outputs(const std::vector<Rating>& of, size_t begin) {
    pooled_.resize(kBatch * kWidth);
    return std::span(pooled_).first(std::min(kBatch, of.size() - begin) * kWidth);
  }

  static float predict(const float* x) {
    float dot = 0;
    for (uint32_t d = 0; d < kDim; ++d) dot += x[d] * (x[kDim + d] + x[2 * kDim + d]);
    return kMean + x[3 * kDim] + x[3 * kDim + 1] + dot;
  }

  float step(size_t begin, Step& step) {
    const std::span<float> out = outputs(ratings_.train, begin);
    EXPECT_TRUE(step.forward({.pooled = out}).ok());
    const size_t samples = out.size() / kWidth;
    gradient_.resize(out.size());
    float sum = 0;
    for (size_t s = 0; s < samples; ++s) {
      const float* x = &out[s * kWidth];
      float* g = &gradient_[s * kWidth];
      const float e = predict(x) - ratings_.train[begin + s].stars;
      sum += e * e;
      for (uint32_t d = 0; d < kDim; ++d) {
        g[d] = e * (x[kDim + d] + x[2 * kDim + d]);
        g[kDim + d] = g[2 * kDim + d] = e * x[d];
      }
      g[3 * kDim] = g[3 * kDim + 1] = e;
    }
    EXPECT_TRUE(step.backward_and_apply({.pooled = gradient_}, {.learning_rate = 0.05f}).ok());
    return sum / static_cast<float>(samples);
  }

  const Ratings& ratings_;
  std::unique_ptr<Runtime> runtime_;
  std::vector<int64_t> ids_, offsets_;
  std::vector<float> pooled_, gradient_;
};

TEST(MovielensTest, LossFallsAndTiersChangeNoBitOfIt) {
  const char* data = std::getenv("ROWTIDE_DATA");
  if (data == nullptr) GTEST_SKIP() << "ROWTIDE_DATA is not set";
  const std::string folder = std::string(data) + "/movielens-latest-small";
  if (!std::ifstream(folder + "/ratings.csv")) GTEST_SKIP() << "no " << folder << "/ratings.csv";
  const Ratings ratings = read_ratings(folder);
  ASSERT_GT(ratings.train.size(), 80000u);

  RuntimeOptions options = model_options(ratings);
  Factorisation in_memory(ratings, options);
  const double before = in_memory.held_out_rmse();
  const std::vector<float> errors = in_memory.train();
  const double after = in_memory.held_out_rmse();
  EXPECT_LT(after, 0.9 * before);
  EXPECT_LT(after, 0.95);
  const std::string digest = digest_of(in_memory.runtime());

  // Movies and users through one set and transit; then with a twentieth of all rows used.
  for (TableOptions& table : options.tables) table.placement = Placement::kCached;
  for (uint64_t hot : {uint64_t{0}, uint64_t{10000} * (kDim * 8 + 1) / 20}) {
    ScratchDirectory directory;
    options.ssd = {{directory / "store", 64 << 20}};
    set_budgets(options, hot, hot);
    Factorisation tiered(ratings, options);
    EXPECT_EQ(tiered.train(), errors);
    EXPECT_EQ(tiered.held_out_rmse(), after);
    EXPECT_EQ(digest_of(tiered.runtime()), digest);
    EXPECT_GT(tiered.runtime().stats().ssd.hits, 1000u);
  }
}

}  // namespace
}  // namespace rowtide
