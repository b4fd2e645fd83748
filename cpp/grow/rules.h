// Whether a node may be split, which cuts are allowed, and which of the columns' best cuts is chosen.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "criterion/summary.h"
#include "data/column.h"
#include "grow/node.h"
#include "grow/params.h"
#include "tree/tree.h"

namespace spinney {

// The gain of a column's best cut and the weight of the rows it was computed from, in the target's units.
struct CutGain {
  double gain = 0, weight = 0;
};

class Rules {
 public:
  Rules(const Table& table, const Target& target, const GrowParams& params);

  const Table& table;
  const Target& target;
  const GrowParams& params;

  std::size_t n_columns() const { return params.columns.empty() ? table.n_columns() : params.columns.size(); }
  // Returns whether nodes try only some of the columns.
  bool draws_columns() const { return params.max_features < n_columns() - params.always_try.size(); }

  OpenNode root() const;
  bool too_small(Row n, std::uint32_t depth) const;
  bool may_split(const OpenNode& node, const Summary& summary) const;
  Limits limits(const OpenNode& node, std::uint32_t feature) const;

  // Sets the expected gain of noise for ordered categories; a cut that gains no more is discarded.
  void charge(const OpenNode& node, Candidate& candidate) const;

  // The best candidate; candidates[i] belongs to column features[i]. Ties go to the column that was tried first.
  std::optional<Choice> choose(std::span<const std::uint32_t> features, std::vector<Candidate>& candidates,
                               const OpenNode& node) const;
  // As above, for columns that were evaluated on different rows; candidates.size(): none.
  std::size_t choose_by_gains(std::span<const std::uint32_t> features, std::span<const Candidate> candidates,
                              std::span<const CutGain> gains) const;

  // Sets the state that children inherit. The caller has set their ranges and statistics before.
  void inherit(const OpenNode& parent, const Choice& choice, OpenNode& left, OpenNode& right) const;
  // The same for a parent whose features are no longer needed, or for children that will not be searched.
  void inherit(const OpenNode& parent, const Choice& choice, std::vector<std::uint32_t> features, OpenNode& left,
               OpenNode& right) const;
  void bound_values(const OpenNode& parent, const Choice& choice, double left_mean, double right_mean, OpenNode& left,
                    OpenNode& right) const;

  // The weight of a row in surrogate agreement, without priors and costs, in arbitrary units.
  double case_weight(Row r) const { return case_weight_.empty() ? 1.0 : case_weight_[r]; }
  double two_lightest() const { return two_lightest_; }

  double per_cost(double gain, std::uint32_t feature) const;
  bool is_enough(double gain) const;  // by min_impurity_decrease

  // As a fraction of the root's weight: the order of best-first growth.
  double improvement(double gain) const { return gain / root_weight_; }

  bool bounded() const { return !params.monotonic_cst.empty(); }
  void clip_value(const OpenNode& node, double* value) const;

 private:
  std::size_t choose_by_gain_ratio(std::span<const std::uint32_t> features, std::span<const Candidate> candidates,
                                   std::span<const CutGain> gains) const;
  std::size_t choose_by_cost(std::span<const std::uint32_t> features, std::span<const Candidate> candidates,
                             const OpenNode& node) const;
  double net_gain(const Candidate& candidate, const OpenNode& node) const;
  double root_weight_ = 0;
  std::vector<double> case_weight_;  // by row; empty: every one is 1
  double two_lightest_ = 2;
};

// Turns a node of the tree into a split. `left_codes`/`right_codes`: categories on either side (category columns).
struct SplitRecord {
  std::uint32_t feature = 0;
  bool is_category = false, missing_left = false, default_left = false;
  double threshold = 0;
  std::vector<std::uint32_t> left_codes, right_codes;
  bool stops = false, alone = false;
  std::vector<RankedSplit> ranked_splits;  // this split, its competitors, its surrogates; empty: not recorded
};
void write_split(Tree& tree, std::size_t node, const SplitRecord& split);

}  // namespace spinney
