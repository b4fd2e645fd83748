// The log-rank criterion for censored times: the exact two-sample statistic of every cut of a sequence of rows.
//
// At each event time s of a node, with Y(s) rows at risk and d(s) events, U = sum over s of d_L(s) - Y_L(s) d(s) / Y(s)
// and V = sum of c(s) p(s) (1 - p(s)), with p = Y_L / Y and c = d (Y - d) / (Y - 1); the goodness is U² / V.
// - U is additive over the rows on the left: a row contributes its event minus the node's cumulative hazard (Nelson and
//   Aalen) over the time at which it was at risk.
// - So is the sum of c p. The sum of c p² is that of K over all pairs of rows on the left, where K(a, b) is the sum of
//   c / Y² up to the earlier of two times. Adding a row changes it by a sum over the rows already there, which a Fenwick
//   tree over the event times returns. All n cuts take n log n steps, where tables of events and rows at risk by side
//   take n times the number of event times.
// With several causes the goodness is the sum over the causes, in each of which the events of other causes are censored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "criterion/user.h"

namespace spinney {

class LogRank final : public UserCriterion {
 public:
  // Columns of y: numbers of event times up to the time and up to the entry of a row, and its cause, 0 if censored.
  static constexpr std::size_t time = 0, entry = 1, cause = 2, n_of_row = 3;

  // `hazard`: of all training rows, cumulative, by number of event times and cause. `counts`: all weights are integers.
  LogRank(std::vector<double> hazard, std::size_t n_causes, bool counts)
      : UserCriterion(n_of_row, n_causes), hazard_(std::move(hazard)), counts_(counts) {}

  // Values: the hazard of each cause relative to that of all training rows, from the events D and the number E expected
  // of the training rows' hazard: (D + 1) / (E + 1). Risk: the deviance of proportional hazards, at D / E.
  double evaluate(const Rows& rows, double* value) const override;
  void split(const Rows& rows, const double* x, double* goodness) const override;
  bool split_groups(const Rows& rows, const double* group, std::size_t n_groups, std::uint32_t* order,
                    double* goodness) const override;
  bool wants_groups() const override { return true; }

 private:
  std::size_t n_times() const { return hazard_.size() / n_values - 1; }

  std::vector<double> hazard_;
  bool counts_;
};

}  // namespace spinney
