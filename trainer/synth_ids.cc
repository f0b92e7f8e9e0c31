#include "trainer/synth_ids.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "runtime/base/key.h"

namespace rowtide {
namespace {

// A class of the mixture: share of the draws, exponent, share of the ids.
struct ClassLaw {
  double draws, exponent, ids;
};
// Fitted to reuse histograms of production batches, one of about a million draws a table and one
// of twice as many; ids_per_draw is how many different ids such a table had in use.
struct Mixture {
  ClassLaw classes[3];
  double ids_per_draw;
};
constexpr Mixture kMixtures[] = {
    {{{0.15, 0.57, 0.016}, {0.37, 0.77, 0.092}, {0.48, 1.06, 0.892}}, 0.57},
    {{{0.37, 0.73, 0.053}, {0.27, 0.75, 0.165}, {0.36, 1.13, 0.782}}, 0.20},
};

constexpr uint64_t kFewIds = 64;          // a column of fewer has one class
constexpr uint64_t kSingleRanks = 256;    // of a class are pieces of their own
constexpr double kPieceGrowth = 1.0905;   // 2^(1/8): a piece's ranks differ by 9 % at most
constexpr double kDriftingIds = 4;        // ids for each rank, so that none returns too soon
constexpr double kMostStableMass = 0.28;  // of a drifting column
constexpr double kFastestDrift = 1.5;     // with kDriftingIds: two sevenths until an id returns

double unit(uint32_t word) { return word * 0x1p-32; }

uint32_t scaled(uint32_t word, uint64_t count) { return static_cast<uint32_t>(word * count >> 32); }

}  // namespace

uint64_t random_word(uint64_t key, uint64_t n) {
  return mix64(key + (n + 1) * 0x9e3779b97f4a7c15ull);
}

IdColumn::IdColumn(const IdColumnOptions& options) {
  lay_out_classes(options);
  choose_frequent(options);
  choose_drift(options);
  build_alias();
}

void IdColumn::lay_out_classes(const IdColumnOptions& options) {
  const Mixture& mixture = kMixtures[options.flat];
  const uint64_t ids = options.cardinality;
  constexpr ClassLaw kOneClass[] = {{1.0, 1.0, 1.0}};
  const auto laws = ids < kFewIds ? std::span<const ClassLaw>(kOneClass)
                                  : std::span<const ClassLaw>(mixture.classes);
  double ranks = static_cast<double>(ids);
  if (options.unseen > 0) {
    ranks =
        std::min(ranks / kDriftingIds, mixture.ids_per_draw * static_cast<double>(options.rows));
    ranks = std::max(ranks, static_cast<double>(kFewIds));
  }
  uint64_t first = 0;
  for (uint32_t c = 0; c < laws.size(); ++c) {
    const auto share = [&](double of) {
      return static_cast<uint64_t>(std::max(1.0, std::floor(of * laws[c].ids)));
    };
    const uint64_t own = c + 1 < laws.size() ? share(static_cast<double>(ids)) : ids - first;
    classes_.push_back(
        {.first = first, .ids = own, .ranks = std::min(own, share(ranks)), .stable = 0});
    first += own;
    cut_pieces(laws[c].draws, laws[c].exponent, c);
  }
}

// Pieces of a Zipf law over a class's ranks with the given share of all draws.
void IdColumn::cut_pieces(double share, double exponent, uint32_t of_class) {
  const uint64_t ranks = classes_[of_class].ranks;
  const size_t begin = pieces_.size();
  double sum = 0;
  for (uint64_t rank = 0; rank < ranks;) {
    const auto grown = static_cast<uint64_t>(static_cast<double>(rank) * kPieceGrowth);
    const uint64_t end = rank < kSingleRanks ? rank + 1 : std::min(ranks, grown);
    const double count = static_cast<double>(end - rank);
    const double middle = static_cast<double>(rank) + (count + 1) / 2;
    pieces_.push_back({of_class, rank, end - rank, count * std::pow(middle, -exponent)});
    sum += pieces_.back().mass;
    rank = end;
  }
  for (size_t i = begin; i < pieces_.size(); ++i) pieces_[i].mass *= share / sum;
}

// The most frequent ranks; they are the first ones of their classes.
void IdColumn::choose_frequent(const IdColumnOptions& options) {
  std::vector<const Piece*> single;
  for (const Piece& piece : pieces_) {
    if (piece.ranks == 1) single.push_back(&piece);
  }
  std::stable_sort(single.begin(), single.end(),
                   [](const Piece* a, const Piece* b) { return a->mass > b->mass; });
  const double most = options.unseen > 0 ? kMostStableMass : 1.0;
  double mass = 0;
  for (const Piece* piece : single) {
    const double expected = piece->mass * options.present * static_cast<double>(options.rows);
    mass += piece->mass;
    if (expected < static_cast<double>(options.frequent_rows) || mass > most + 1e-9) break;
    ++classes_[piece->of_class].stable;
  }
  for (Class& c : classes_) {
    c.first_effect = frequent_ids_;
    frequent_ids_ += static_cast<uint32_t>(c.stable);
  }
}

// Some ids are new to a seventh because they are rare; drift adds what is missing to the share
// asked for.  A rank that changes its id d times a seventh is accessed by an id born in the same
// seventh in a share d/2 of the cases, or 1 - 1/(2d) if d > 1.
void IdColumn::choose_drift(const IdColumnOptions& options) {
  if (options.unseen <= 0) return;
  const double draws = static_cast<double>(options.rows) / 7 * options.present;
  double rare = 0, stable = 0;
  for (const Piece& piece : pieces_) {
    if (piece.first < classes_[piece.of_class].stable) {
      stable += piece.mass;
    } else {
      rare += piece.mass * std::exp(-piece.mass / static_cast<double>(piece.ranks) * draws);
    }
  }
  const double born = (options.unseen - rare) / (1 - stable - rare);
  drift_ = born <= 0 ? 0 : born <= 0.5 ? 2 * born : 0.5 / (1 - std::min(born, 0.9));
  drift_ = std::min(drift_, kFastestDrift);
}

void IdColumn::build_alias() {
  const size_t count = pieces_.size();
  double sum = 0;
  for (const Piece& piece : pieces_) sum += piece.mass;
  std::vector<double> heights(count);  // 1 is the mean
  std::vector<uint32_t> low, high;
  for (uint32_t i = 0; i < count; ++i) {
    heights[i] = pieces_[i].mass / sum * static_cast<double>(count);
    (heights[i] < 1 ? low : high).push_back(i);
  }
  alias_.resize(count);
  for (uint32_t i = 0; i < count; ++i) alias_[i] = {~uint32_t{0}, i};
  while (!low.empty() && !high.empty()) {
    const uint32_t l = low.back(), h = high.back();
    low.pop_back();
    alias_[l] = {static_cast<uint32_t>(heights[l] * 0x1p32), h};
    heights[h] -= 1 - heights[l];
    if (heights[h] < 1) {
      high.pop_back();
      low.push_back(h);
    }
  }
}

IdColumn::Draw IdColumn::draw(uint64_t random, uint64_t random2, double time) const {
  uint32_t i = scaled(static_cast<uint32_t>(random >> 32), alias_.size());
  if (static_cast<uint32_t>(random) >= alias_[i].threshold) i = alias_[i].other;
  const Piece& piece = pieces_[i];
  const Class& c = classes_[piece.of_class];
  uint64_t rank = piece.first;
  if (piece.ranks > 1) rank += scaled(static_cast<uint32_t>(random2), piece.ranks);
  if (rank < c.stable) {
    return {c.first + rank, static_cast<int32_t>(c.first_effect + rank)};
  }
  rank -= c.stable;
  if (drift_ > 0) {
    // Each rank changes its id at a phase of its own.
    const double phase = unit(static_cast<uint32_t>(mix64(rank + 1)));
    const auto changes = static_cast<uint64_t>(time * drift_ + phase);
    rank = (rank + changes * (c.ranks - c.stable)) % (c.ids - c.stable);
  }
  return {c.first + c.stable + rank, -1};
}

}  // namespace rowtide
