#pragma once
// IdColumn — ids of one categorical column as production data has them: skewed, and drifting.
//
// One Zipf law does not fit real columns; a mixture of three classes does (a flat head, a middle
// and a steep long tail, with their own exponents over their own ids).  Ranks that carry effects
// keep their id for ever.  Every other rank changes its id now and then, each at its own moment, so
// that in every seventh of the data a set share of the accesses is to ids that the seventh before
// did not have.
//
// It knows nothing of missing values and labels.

#include <cstdint>
#include <vector>

namespace rowtide {

// A counter-based generator: the n-th word of a key, without state.
uint64_t random_word(uint64_t key, uint64_t n);

struct IdColumnOptions {
  uint64_t cardinality = 3;
  uint64_t rows = 0;           // of the whole data
  uint64_t frequent_rows = 0;  // an id with an effect is expected in at least this many rows
  double present = 1;          // share of the rows that have a value
  double unseen = 0;           // share of a seventh's accesses to ids new to it; 0: no drift
  bool flat = false;           // the flatter of the two fitted mixtures
};

class IdColumn {
 public:
  explicit IdColumn(const IdColumnOptions& options);

  struct Draw {
    uint64_t id;         // in [0, cardinality)
    int32_t effect = 0;  // number of a frequent id, in [0, frequent_ids()); -1 for the others
  };
  // `time` counts sevenths of the data.
  Draw draw(uint64_t random, uint64_t random2, double time) const;

  uint32_t frequent_ids() const { return frequent_ids_; }
  double drift() const { return drift_; }

 private:
  // The ids [first, first + ids) belong to a class: `stable` of them to its first ranks, the
  // others to the ranks behind in turn.
  struct Class {
    uint64_t first, ids, ranks, stable;
    uint32_t first_effect;
  };
  // Neighbouring ranks of one class that are equally likely.
  struct Piece {
    uint32_t of_class;
    uint64_t first, ranks;
    double mass;
  };
  // Walker's alias method: a piece is drawn with one multiplication and one comparison.
  struct Alias {
    uint32_t threshold, other;
  };

  void lay_out_classes(const IdColumnOptions& options);
  void cut_pieces(double share, double exponent, uint32_t of_class);
  void choose_frequent(const IdColumnOptions& options);
  void choose_drift(const IdColumnOptions& options);
  void build_alias();

  std::vector<Class> classes_;
  std::vector<Piece> pieces_;
  std::vector<Alias> alias_;
  uint32_t frequent_ids_ = 0;
  double drift_ = 0;  // how often a rank changes its id, a seventh
};

}  // namespace rowtide
