// Losses for censored times: Cox's partial likelihood, and accelerated failure times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace spinney {

// Cox's proportional hazards: scores are log hazards. Ties by Breslow: all rows of a time are at risk during its
// events; or by Efron: the events of a time happen one after another in unknown order, and those that have happened are
// no longer at risk. Their weights count by their mean there.
class CoxRows {
 public:
  // `time` and `is_event` of all rows; those of weight 0 (empty: all have 1) are excluded.
  CoxRows(std::span<const double> time, std::span<const std::uint8_t> is_event, std::span<const double> weight,
          bool is_efron = false);

  // Gradients and hessians by row, without weights. Returns the mean loss.
  double gradients(const double* scores, double* gradients, double* hessians) const;
  double mean_loss(const double* scores) const;

  // Event times in ascending order, and the cumulative hazard at a score of 0 up to each (Breslow or Efron estimate).
  struct Baseline {
    std::vector<double> time, hazard;
  };
  Baseline baseline(const double* scores) const;

 private:
  struct Risks;  // at each event time
  Risks risks(const double* scores) const;

  // The contributions of one time: hazards and sums of squares, to rows at risk and to the events themselves.
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

// Accelerated failure times: the logarithm of a time is the score plus `scale` times a variable of this distribution,
// centred at its median. A time is known exactly or within an interval.
class TimedRows {
 public:
  // Logarithms of the first and last possible event times of a row: equal, or infinite where the interval is open.
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

// The survival function at z, the log time minus the score divided by the scale; and the quantile function of z.
double survival_at(TimeDistribution distribution, double z);
double quantile_of(TimeDistribution distribution, double probability);

// Harrell's concordance: the fraction of comparable pairs whose predictions are in the right order; equal predictions
// count half. Pairs are weighted by the product of their weights; NaN if there is none. Larger `expected` means later.
double concordance(std::span<const double> low, std::span<const double> high, std::span<const double> expected,
                   std::span<const double> weight);

}  // namespace spinney
