// Absolute error: its statistic, a median, is not additive over rows. It is computed on sequences of cells, from both
// ends.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "criterion/target.h"

namespace spinney {

// Weighted median and mean absolute deviation of one output.
double summarise_median(const Target& target, std::span<const Row> rows, std::size_t k, double* value);

// Running weighted median of rows that are added one by one, with the absolute deviation from it: a Fenwick tree over
// the ranks of y among the node's rows. Sums are 128-bit integers, so they do not depend on the row order.
class RunningMedian {
 public:
  // Ranks the node's rows by output k. From here on rows are identified by their position in `rows`.
  void prepare(const Target& target, std::span<const Row> rows, std::size_t k);
  void clear();
  void add(std::uint32_t position);
  double deviation() const;  // Σ w |y - median| of the added rows, in fixed weights
  double median() const;
  std::uint32_t rank(std::uint32_t position) const { return rank_[position]; }

 private:
  __extension__ using Wide = __int128;
  std::size_t find_median() const;

  std::vector<std::uint32_t> rank_, order_;
  std::vector<double> y_;  // distinct, ascending
  std::vector<std::int64_t> fixed_y_, weight_of_;
  std::vector<std::int64_t> weights_;  // Fenwick tree, 1-based
  std::vector<Wide> sums_;
  std::int64_t total_weight_ = 0;
  Wide total_sum_ = 0;
  double y_unit_ = 1;
};

}  // namespace spinney
