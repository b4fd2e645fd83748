// Losses of lists: the rows of a group are ranked by their scores, and pairs of them pull each other apart.
//
// A row of weight w stands for w equal rows, one below another: it takes w places of its list. Rows of equal scores share their
// places: all that depends on their order is the mean over all orders, so that the order of the table does not matter.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/types.h"

namespace spinney {

struct RankingParams {
  bool by_gain = true;  // pairs count by what swapping them would change in the list's normalised gain (LambdaMART)
  std::size_t truncation = 30;  // first places of a list that count
};

class RankedLists {
 public:
  // `rows` are those that count, list after list, ascending in each; `ends` is where each list ends among them; `gain` and
  // `weight` (empty: all 1) go with `rows`.
  RankedLists(std::vector<Row> rows, std::vector<Row> ends, std::vector<double> gain, std::vector<double> weight,
              RankingParams params);

  // Gradient and hessian of each row, by row of the table and not yet times its weight; rows of no list keep what they have.
  // Returns the mean loss.
  double gradients(const double* scores, double* gradients, double* hessians, int n_threads) const;

  // By gain: 1 minus the mean normalised gain of lists that have any; else the mean over pairs of log(1 + e^(worse - better)),
  // where each list counts by the number of pairs for each of its rows.
  double mean_loss(const double* scores, int n_threads) const;

  // Normalised discounted gain of each list; NaN if no row of it has any.
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
  void pull_by_gain(std::size_t list, Scratch& s) const;
  double pull_by_pairs(std::size_t list, const double* scores, Scratch& s) const;
  double up_to(double place) const;  // discounts of all places before this one
  std::size_t begin_of(std::size_t list) const { return list == 0 ? 0 : ends_[list - 1]; }
  double mean_of(std::span<const double> losses) const;

  std::vector<Row> rows_, ends_;  // if not by gain, of each list largest gain first
  std::vector<double> gain_, weight_;
  RankingParams params_;
  std::vector<double> discounts_;  // of each place, then their sums up to it
  std::vector<double> sums_;
  std::vector<double> ideal_;  // by gain: largest gain of each list; else its weight of pairs for each of its rows
};

}  // namespace spinney
