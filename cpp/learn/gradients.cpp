#include "learn/gradients.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/math.h"
#include "learn/chunks.h"
#include "learn/scales.h"
#include "loss/distribution_rows.h"
#include "loss/losses.h"
#include "loss/ordinal.h"
#include "loss/row_loss.h"

namespace spinney {

Gradients::Gradients(BoostingState& state) : state_(state) {
  for (std::uint32_t k = 0; k < state.n_scores(); ++k) pairs_.emplace_back(state.n_rows(), state.rows.table->spill);
  find_cuts();
}

void Gradients::set(const double* gradients, const double* hessians) {
  const std::size_t n = state_.n_rows(), n_chunks = (n + chunk_rows - 1) / chunk_rows;
  totals_.assign(state_.n_scores(), {});
  for (std::uint32_t k = 0; k < state_.n_scores(); ++k, gradients += n, hessians += n) {
    std::vector<GradientSums> sums(n_chunks);
    for_each_chunk(n, state_.n_threads(), 2.0, [&](std::size_t c, std::size_t begin, std::size_t end) {
      for (std::size_t r = begin; r < end; ++r) {
        const double weight = state_.rows.weight == nullptr ? 1.0 : state_.rows.weight[r];
        pairs_[k].data()[r] = {static_cast<float>(weight * gradients[r]), static_cast<float>(weight * hessians[r])};
      }
      add_sizes(pairs_[k].data() + begin, end - begin, sums[c]);
    });
    for (const GradientSums& s : sums) totals_[k] += s;
  }
  is_known_ = true;
}

void Gradients::find_delta(PlacedComponent& component) const {
  const double *target = state_.target_of(component, state_.rows), *scores = state_.rows.scores[component.first].data();
  std::vector<std::pair<double, double>> sizes;
  for (const Row r : state_.all)
    sizes.emplace_back(std::abs(target[r] - scores[r]), state_.rows.weight == nullptr ? 1.0 : state_.rows.weight[r]);
  component.delta = delta_of(component.loss, component.parameter, sizes);
}

void Gradients::find_cuts() {
  for (PlacedComponent& component : state_.components)
    if (traits_of(component.loss).has_cuts)
      component.cuts = best_cuts({{state_.target_of(component, state_.rows), state_.n_rows()},
                                  state_.rows.scores[component.first].data(),
                                  state_.rows.weight,
                                  static_cast<std::size_t>(component.parameter)},
                                 state_.n_threads());
}

void Gradients::fill(std::vector<LossSum>* losses) {
  const std::vector<GradientSums> sums = fill_chunks(losses);
  const std::size_t width = state_.n_scores();
  totals_.assign(width, {});
  for (std::size_t i = 0; i < sums.size(); ++i) totals_[i % width] += sums[i];
  is_known_ = true;
}

std::vector<GradientSums> Gradients::fill_chunks(std::vector<LossSum>* losses) {
  const std::size_t n = state_.n_rows(), n_chunks = (n + chunk_rows - 1) / chunk_rows, width = state_.n_scores();
  if (state_.is_external()) throw std::logic_error("Set the gradients before each round.");
  for (PlacedComponent& component : state_.components)
    if (traits_of(component.loss).has_delta) find_delta(component);
  find_cuts();
  std::vector<GradientSums> sums(n_chunks * width);
  if (losses != nullptr) losses->assign(n_chunks, {});
  const double ns_per_row = 4.0 * static_cast<double>(width);
  for_each_chunk(n, state_.n_threads(), ns_per_row, [&](std::size_t c, std::size_t begin, std::size_t end) {
    state_.rows.touch(end - begin);
    LossSum* loss = losses == nullptr ? nullptr : &(*losses)[c];
    for (const PlacedComponent& component : state_.components)
      fill_component(component, begin, end, sums.data() + c * width + component.first, loss);
    if (loss != nullptr) loss->count(state_.rows.weight == nullptr ? nullptr : state_.rows.weight + begin, end - begin);
  });
  return sums;
}

void Gradients::fill_component(const PlacedComponent& component, std::size_t begin, std::size_t end, GradientSums* sums,
                               LossSum* loss) {
  if (component.loss == Loss::multinomial) return fill_classes(component, begin, end, sums, loss);
  if (traits_of(component.loss).is_distribution()) return fill_distribution(component, begin, end, sums, loss);
  if (component.loss == Loss::ordinal) return fill_ordinal(component, begin, end, sums, loss);
  const double *weight = state_.rows.weight == nullptr ? nullptr : state_.rows.weight + begin,
               *target = state_.target_of(component, state_.rows) + begin;
  Pair* pairs = pairs_[component.first].data() + begin;
  std::array<double, chunk_rows> losses;
  boost_kernels().losses[static_cast<std::size_t>(component.loss)].gradients(
      target, state_.rows.scores[component.first].data() + begin, weight, end - begin, {component.known()}, pairs,
      loss == nullptr ? nullptr : losses.data());
  add_sizes(pairs, end - begin, *sums);
  if (loss != nullptr) loss->add(losses.data(), weight, end - begin, component.weight);
}

void Gradients::fill_ordinal(const PlacedComponent& component, std::size_t begin, std::size_t end, GradientSums* sums,
                             LossSum* loss) {
  const double *y = state_.target_of(component, state_.rows), *scores = state_.rows.scores[component.first].data();
  const double* weights = state_.rows.weight;
  Pair* pairs = pairs_[component.first].data();
  for (std::size_t r = begin; r < end; ++r) {
    const double weight = weights == nullptr ? 1.0 : weights[r];
    const GradientPair row =
        OrdinalLoss::at(static_cast<std::size_t>(y[r]), scores[r], component.cuts.data(), component.cuts.size());
    pairs[r] = {static_cast<float>(weight * row.gradient), static_cast<float>(weight * row.hessian)};
  }
  add_sizes(pairs + begin, end - begin, *sums);
  const double* from = scores + begin;
  if (loss != nullptr)
    add_losses(component, y + begin, weights == nullptr ? nullptr : weights + begin, &from, end - begin, *loss);
}

void Gradients::fill_distribution(const PlacedComponent& component, std::size_t begin, std::size_t end,
                                  GradientSums* sums, LossSum* loss) {
  constexpr std::size_t block = 256;
  const std::uint32_t width = component.n_scores;
  const double* target = state_.target_of(component, state_.rows);
  std::vector<double> found(2 * width * block);
  std::vector<const double*> scores(width);
  std::vector<double*> gradients(width), hessians(width);
  for (std::uint32_t k = 0; k < width; ++k) {
    gradients[k] = found.data() + 2 * k * block;
    hessians[k] = gradients[k] + block;
  }
  for (std::size_t at = begin; at < end; at += block) {
    const std::size_t n = std::min(block, end - at);
    for (std::uint32_t k = 0; k < width; ++k) scores[k] = state_.rows.scores[component.first + k].data() + at;
    fill_distribution_gradients(component.loss, component.parameter, {target + at, scores.data(), n}, gradients.data(),
                                hessians.data());
    const double* weight = state_.rows.weight == nullptr ? nullptr : state_.rows.weight + at;
    for (std::uint32_t k = 0; k < width; ++k) {
      Pair* pairs = pairs_[component.first + k].data() + at;
      for (std::size_t i = 0; i < n; ++i) {
        const double w = weight == nullptr ? 1.0 : weight[i];
        pairs[i] = {static_cast<float>(w * gradients[k][i]), static_cast<float>(w * hessians[k][i])};
      }
    }
  }
  for (std::uint32_t k = 0; k < width; ++k) {
    add_sizes(pairs_[component.first + k].data() + begin, end - begin, sums[k]);
    scores[k] = state_.rows.scores[component.first + k].data() + begin;
  }
  if (loss != nullptr)
    add_losses(component, target + begin, state_.rows.weight == nullptr ? nullptr : state_.rows.weight + begin,
               scores.data(), end - begin, *loss);
}

void Gradients::fill_classes(const PlacedComponent& component, std::size_t begin, std::size_t end, GradientSums* sums,
                             LossSum* loss) {
  constexpr std::size_t block = 256;
  const std::uint32_t n_classes = component.n_scores;
  const double* target = state_.target_of(component, state_.rows);
  const double factor = MultinomialLoss::curvature(n_classes);
  std::vector<double> proba(block * n_classes);
  std::vector<const double*> from(n_classes);
  std::vector<double*> to(n_classes);
  for (std::uint32_t k = 0; k < n_classes; ++k) to[k] = proba.data() + k * block;
  for (std::size_t at = begin; at < end; at += block) {
    const std::size_t n = std::min(block, end - at);
    for (std::uint32_t k = 0; k < n_classes; ++k) from[k] = state_.rows.scores[component.first + k].data() + at;
    std::array<double, block> losses;
    boost_kernels().softmax(from.data(), n_classes, n, to.data(), loss == nullptr ? nullptr : losses.data());
    const double* weight = state_.rows.weight == nullptr ? nullptr : state_.rows.weight + at;
    if (loss != nullptr) {
      for (std::size_t i = 0; i < n; ++i) losses[i] -= from[static_cast<std::size_t>(target[at + i])][i];
      loss->add(losses.data(), weight, n, component.weight);
    }
    for (std::uint32_t k = 0; k < n_classes; ++k) {
      Pair* pairs = pairs_[component.first + k].data() + at;
      boost_kernels().class_gradients(to[k], target + at, weight, n, k, factor, pairs);
      add_sizes(pairs, n, sums[k]);
    }
  }
}

Units Gradients::quantise(std::uint32_t k, Packed* packed) const {
  const PackedScales scales(totals_[k], state_.place.n_all_rows);
  const auto low = static_cast<std::uint32_t>(state_.key_of_tree(k));
  for_each_chunk(state_.n_rows(), state_.n_threads(), 1.0, [&](std::size_t, std::size_t begin, std::size_t end) {
    state_.touch((end - begin) * sizeof(Pair));
    boost_kernels().quantise(pairs_[k].data() + begin, state_.place.first_row + begin, end - begin, scales.gradient,
                             scales.hessian, low, packed + begin);
  });
  return scales.units();
}

double Gradients::mean_loss(const BoostingRows& rows) const {
  return state_.is_external() ? std::numeric_limits<double>::quiet_NaN() : mean_of(chunk_losses(rows));
}

std::vector<LossSum> Gradients::chunk_losses(const BoostingRows& rows) const {
  const std::size_t n = rows.table->n_rows;
  std::vector<LossSum> sums((n + chunk_rows - 1) / chunk_rows);
  for_each_chunk(n, state_.n_threads(), 4.0 * state_.n_scores(),
                 [&](std::size_t c, std::size_t begin, std::size_t end) { sums[c] = sum_of_losses(rows, begin, end); });
  return sums;
}

// Rows that are out of bag because of small gradients do not represent the others. If there are many, every second,
// third … row is used: the log losses of all rows, before and after, took 23 % of the fit.
double Gradients::mean_loss(std::span<const Row> out_of_bag) const {
  if (state_.is_external() || state_.params.draws_by_gradient) return std::numeric_limits<double>::quiet_NaN();
  const std::size_t step = step_out_of_bag(out_of_bag.size());
  const std::size_t n = (out_of_bag.size() + step - 1) / step;
  std::vector<LossSum> sums((n + chunk_rows - 1) / chunk_rows);
  for_each_chunk(n, state_.n_threads(), 6.0 * state_.n_scores(),
                 [&](std::size_t c, std::size_t begin, std::size_t end) {
                   const auto gathered = [&](const double* from) {
                     std::vector<double> to(from == nullptr ? 0 : end - begin);
                     for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[out_of_bag[(begin + i) * step]];
                     return to;
                   };
                   const std::vector<double> weights = gathered(state_.rows.weight);
                   const double* weight = weights.empty() ? nullptr : weights.data();
                   std::vector<std::vector<double>> scores;
                   std::vector<const double*> from;
                   for (const auto& s : state_.rows.scores) scores.push_back(gathered(s.data()));
                   for (const auto& s : scores) from.push_back(s.data());
                   for (const PlacedComponent& component : state_.components)
                     add_losses(component, gathered(state_.target_of(component, state_.rows)).data(), weight,
                                from.data() + component.first, end - begin, sums[c]);
                   sums[c].count(weight, end - begin);
                 });
  return mean_of(sums);
}

LossSum Gradients::sum_of_losses(const BoostingRows& rows, std::size_t begin, std::size_t end) const {
  rows.touch(end - begin);
  const double* weight = rows.weight == nullptr ? nullptr : rows.weight + begin;
  std::vector<const double*> scores;
  for (const auto& s : rows.scores) scores.push_back(s.data() + begin);
  LossSum sum;
  for (const PlacedComponent& component : state_.components)
    add_losses(component, state_.target_of(component, rows) + begin, weight, scores.data() + component.first,
               end - begin, sum);
  sum.count(weight, end - begin);
  return sum;
}

}  // namespace spinney
