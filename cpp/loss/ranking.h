// Ranking losses: the rows of a list are ranked by their scores, and gradients come from pairs of them.
//
// A row of weight w equals w identical rows at consecutive ranks. Rows of equal scores share their ranks: everything
// that depends on their order is averaged over all orders, so that the table order does not matter.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/types.h"

namespace spinney {

struct RankingParams {
  bool by_gain = true;          // pairs are weighted by the change in normalised gain if they are swapped (LambdaMART)
  std::size_t truncation = 30;  // number of top ranks that count
};

class RankedLists {
 public:
  // `rows` are those that count, list after list, ascending in each; `ends` is where each list ends; `gain` and
  // `weight` (empty: all 1) are parallel to `rows`.
  RankedLists(std::vector<Row> rows, std::vector<Row> ends, std::vector<double> gain, std::vector<double> weight,
              RankingParams params);

  // Gradient and hessian of each row, by row of the table, without weights; rows of no list are unchanged. Returns the
  // mean loss.
  double gradients(const double* scores, double* gradients, double* hessians, int n_threads) const;

  // By gain: 1 minus the mean normalised gain of lists with positive gain; else the mean over pairs of log(1 + e^(worse
  // - better)), where each list is weighted by its number of pairs per row.
  double mean_loss(const double* scores, int n_threads) const;

  // Normalised discounted gain of each list; NaN if it has no gain.
  std::vector<double> normalised_gains(const double* scores, int n_threads) const;

 private:
  struct Scratch;
  template <class Body>
  void for_each_list(int n_threads, Body&& body) const;
  void find_largest_gains();
  void sort_by_gain();
  void read(std::size_t list, const double* scores, Scratch& s) const;
  void sort_by_score(Scratch& s) const;
  void place(Scratch& s) const;
  double mean_change(double begin, double end) const;
  double gain_of(const Scratch& s) const;
  void gain_gradients(std::size_t list, Scratch& s) const;
  double pair_gradients(std::size_t list, const double* scores, Scratch& s) const;
  double up_to(double place) const;  // sum of the discounts of all ranks before this one
  std::size_t begin_of(std::size_t list) const { return list == 0 ? 0 : ends_[list - 1]; }
  double mean_of(std::span<const double> losses) const;

  std::vector<Row> rows_, ends_;  // not by gain: each list with the largest gain first
  std::vector<double> gain_, weight_;
  RankingParams params_;
  std::vector<double> discounts_;  // of each rank, then their cumulative sums
  std::vector<double> sums_;
  std::vector<double> ideal_;  // by gain: maximum gain of each list; else its pair weight per row
};

}  // namespace spinney
