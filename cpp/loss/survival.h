// Losses of times that may be known in part: Cox's partial likelihood, and accelerated failure times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace spinney {

// Cox's proportional hazards: scores are logarithms of hazards. Ties by Breslow: all rows of a time are at risk while its
// events happen; or by Efron: the events of a time happen one after another, in an order that nobody knows, and those that
// have happened are at risk no more. Their weights count by their mean there.
class CoxRows {
 public:
  // `time` and `is_event` of all rows; those of weight 0 (empty: all have 1) are left out.
  CoxRows(std::span<const double> time, std::span<const std::uint8_t> is_event, std::span<const double> weight,
          bool is_efron = false);

  // Gradients and hessians by row, not yet times their weights. Returns the mean loss.
  double gradients(const double* scores, double* gradients, double* hessians) const;
  double mean_loss(const double* scores) const;

  // Times of events in ascending order, and the hazard of a score of 0 up to each (Breslow's estimate, or Efron's).
  struct Baseline {
    std::vector<double> time, hazard;
  };
  Baseline baseline(const double* scores) const;

 private:
  struct Risks;  // at each time of an event
  Risks risks(const double* scores) const;

  // What the rows of one time add: hazards and sums of squared ones, to rows at risk and to the events themselves.
  struct Tie {
    double hazard = 0, squares = 0, own_hazard = 0, own_squares = 0;
    double loss = 0;  // without the scores of events
    bool has_events = false;
  };
  Tie tie(const Risks& risks, std::size_t begin, std::size_t end) const;
  std::size_t end_of_time(std::size_t begin) const;

  std::vector<Row> order_;             // rows of positive weight, by time
  std::vector<double> time_, weight_;  // in this order
  std::vector<std::uint8_t> is_event_;
  double total_ = 0;  // weight
  bool is_efron_;
};

enum class TimeDistribution : std::uint8_t { normal, logistic, extreme };

// Accelerated failure times: the logarithm of a time is the score plus `scale` times a variable of this distribution, about its
// median. A time is known, or lies between two.
class TimedRows {
 public:
  // Logarithms of the first and last time at which a row's event may have happened: equal, or minus and plus infinity where
  // nothing is known on that side.
  TimedRows(std::span<const double> low, std::span<const double> high, std::span<const double> weight,
            TimeDistribution distribution);

  double gradients(const double* scores, double scale, double* gradients, double* hessians, int n_threads) const;
  double mean_loss(const double* scores, double scale, int n_threads) const;

 private:
  template <class Body>
  double sum(int n_threads, Body&& body) const;

  std::vector<double> low_, high_, weight_;
  TimeDistribution distribution_;
  double total_ = 0;
};

// Share of a row that is still without event at z, the logarithm of time less the score over the scale; and the z at which
// a share of events has happened.
double share_left(TimeDistribution distribution, double z);
double quantile_of(TimeDistribution distribution, double share);

// Harrell's concordance: of all pairs of which one is known to have come before the other, the share whose predictions say so;
// equal predictions count half. Pairs count by the product of their weights; NaN if there is none. Larger `expected` means
// later.
double concordance(std::span<const double> low, std::span<const double> high, std::span<const double> expected,
                   std::span<const double> weight);

}  // namespace spinney
