// The best split of a node of a boosted tree, from its histogram.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "boost/codes.h"
#include "boost/kernels.h"
#include "boost/listed.h"
#include "boost/tree_options.h"

namespace spinney {

// The value of one unit of the packed sums.
struct Units {
  double gradient = 1, hessian = 1;
};

struct Sums {
  std::int64_t gradient = 0, hessian = 0;
};

inline Packed packed(Sums s) { return (static_cast<Packed>(s.gradient) << 32) + static_cast<Packed>(s.hessian); }

struct BoostSplit {
  double gain = 0;                     // 0: no split
  std::uint32_t feature = 0, cut = 0;  // codes up to `cut` go left
  bool missing_left = false;
  bool saw_missing = false;  // the node has missing values in this column
  bool is_category = false;
  std::vector<std::uint32_t> left_codes;  // categories
  Sums left;
  double score = 0;  // without bounds: the gain before the node's score is subtracted, in units of the sums
};

struct Bounds {  // of the values in a subtree, from monotonic constraints
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
};

// The terms of a node that are the same for all columns.
struct NodeTerms {
  Sums total;
  Row n_rows = 0;
  Bounds bounds;
  double least = 0;   // minimum hessian of a side, in units
  double parent = 0;  // score of the unsplit node
};

// Scratch of one thread.
struct SplitScratch {
  std::vector<Packed> prefix, cells;
  std::vector<float> scores;
  struct {
    std::vector<std::uint32_t> categories, places, sorted;
    std::vector<double> steps;
  } order;
  std::vector<Packed> ordered;
  ListedScratch listed;
};

class SplitSearch {
 public:
  SplitSearch(const Coding& coding, const BoostParams& params, Units units);

  NodeTerms terms(Sums total, Row n_rows, Bounds bounds) const;

  // The best split of a node on one column, from its cells. Whether a side has enough rows is estimated from its
  // fraction of the hessian and, if `counts` (rows by code) is given, checked by their number as well. Counting
  // therefore never finds a better split, and it does not matter when a leaf is counted. Number splits with a score
  // below `floor` need not be found.
  BoostSplit search(std::uint32_t feature, const Packed* cells, const NodeTerms& terms, double floor,
                    SplitScratch& scratch, const Row* counts = nullptr) const;

  // Some tables have many columns of two codes, for example one-hot encodings.
  bool is_flag(std::uint32_t feature) const {
    const CodedColumn& column = coding_.columns[feature];
    return column.n_codes == 2 && !column.has_missing && !column.is_category;
  }
  // Returns whether one of n such columns may have a split with a score of `floor`. The cells hold one of the two codes
  // of each.
  bool may_split_flags(const Packed* cells, std::size_t n, const NodeTerms& terms, double floor) const;

  // Twice the second-order decrease of the loss by the best step of a node.
  double score_of_node(double gradient, double hessian, Bounds bounds, double extra_l2) const;
  bool is_plain() const { return plain_; }

  // The optimal step of a node, within bounds, before the learning rate.
  double step(double gradient, double hessian, Bounds bounds, double extra_l2 = 0) const;

 private:
  struct Query;
  void count_cuts(const Query& q, std::uint32_t n_cuts, bool missing_left, CutQuery& query) const;
  void try_cuts(const Query& q, const Packed* cells, std::uint32_t n_cuts, Packed before, bool missing_left,
                SplitScratch& scratch, BoostSplit& best) const;
  void try_categories(const Query& q, const Packed* cells, SplitScratch& scratch, BoostSplit& best) const;
  void drop_rare(const Query& q, const Packed* cells, std::vector<std::uint32_t>& categories) const;
  void sort_by_step(const Packed* cells, SplitScratch& scratch) const;
  std::size_t try_sorted(const Query& q, const Packed* cells, SplitScratch& scratch, BoostSplit& best) const;
  std::size_t try_in_order(const Query& q, const Packed* cells, SplitScratch& scratch, BoostSplit& best) const;
  static bool is_bounded(Bounds bounds) { return !(bounds.low < -1e300 && bounds.high > 1e300); }
  bool is_free(const Query& q) const;
  void charge(BoostSplit& split) const;
  std::optional<std::uint32_t> try_free_cuts(const Query& q, const Packed* cells, std::size_t n_cuts, Packed before,
                                             CutQuery query, SplitScratch& scratch, BoostSplit& best,
                                             double extra_l2) const;
  bool offer(const Query& q, Packed left, Row n_left, BoostSplit& best, double extra_l2) const;

  const Coding& coding_;
  const BoostParams& params_;
  const Units units_;
  const bool plain_;  // no L1 penalty, no limit on steps
};

}  // namespace spinney
