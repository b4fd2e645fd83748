#include "loss/distribution_rows.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "loss/losses.h"

namespace spinney {

namespace {

template <class Type>
concept Distribution = requires { Type::bounds(0, 0.0); };

template <class Type, class Work>
bool run_if_distribution(Work& work) {
  if constexpr (Distribution<Type>) work.template operator()<Type>();
  return Distribution<Type>;
}

template <class Work>
void with_distribution(Loss loss, Work work) {
  bool is_done = false;
#define SPINNEY_RUN(id, Type, ...) is_done = is_done || (loss == Loss::id && run_if_distribution<Type>(work));
  SPINNEY_LOSSES(SPINNEY_RUN)
#undef SPINNEY_RUN
  if (!is_done) throw std::invalid_argument("This loss is not a distribution.");
}

template <class Type>
std::array<ScoreBounds, Type::n_scores> bounds_of(double parameter) {
  std::array<ScoreBounds, Type::n_scores> found;
  for (std::uint32_t k = 0; k < Type::n_scores; ++k) found[k] = Type::bounds(k, parameter);
  return found;
}

template <class Type>
void take_bounded(const DistributionRows& rows, std::size_t r, const std::array<ScoreBounds, Type::n_scores>& bounds,
                  double* score) {
  for (std::uint32_t k = 0; k < Type::n_scores; ++k)
    score[k] = std::clamp(rows.scores[k][r], bounds[k].low, bounds[k].high);
}

}  // namespace

void fill_distribution_losses(Loss loss, double parameter, const DistributionRows& rows, double* losses) {
  with_distribution(loss, [&]<class Type>() {
    const auto bounds = bounds_of<Type>(parameter);
    double score[Type::n_scores];
    for (std::size_t r = 0; r < rows.n; ++r) {
      take_bounded<Type>(rows, r, bounds, score);
      losses[r] = Type::value(rows.target[r], score, parameter);
    }
  });
}

void fill_distribution_gradients(Loss loss, double parameter, const DistributionRows& rows, double* const* gradients,
                                 double* const* hessians) {
  with_distribution(loss, [&]<class Type>() {
    const auto bounds = bounds_of<Type>(parameter);
    double score[Type::n_scores];
    GradientPair found[Type::n_scores];
    for (std::size_t r = 0; r < rows.n; ++r) {
      take_bounded<Type>(rows, r, bounds, score);
      Type::at(rows.target[r], score, parameter, found);
      for (std::uint32_t k = 0; k < Type::n_scores; ++k) {
        const double given = rows.scores[k][r], g = found[k].gradient;
        const bool leads_out = (given <= bounds[k].low && g > 0) || (given >= bounds[k].high && g < 0);
        gradients[k][r] = leads_out ? 0.0 : g;
        hessians[k][r] = found[k].hessian;
      }
    }
  });
}

double bounded_score(Loss loss, std::uint32_t score, double parameter, double value) {
  with_distribution(loss, [&]<class Type>() {
    const ScoreBounds bounds = Type::bounds(score, parameter);
    value = std::clamp(value, bounds.low, bounds.high);
  });
  return value;
}

}  // namespace spinney
