#include "learn/component_losses.h"

#include <algorithm>
#include <array>

#include "boost/kernels.h"
#include "learn/boosting_options.h"
#include "learn/chunks.h"
#include "loss/distribution_rows.h"
#include "loss/losses.h"

namespace spinney {

std::uint32_t BoostingParams::n_scores() const {
  std::uint32_t n = 0;
  for (const LossComponent& component : losses) n += component.n_scores;
  return n;
}

std::vector<BoostParams> BoostingParams::constrain() {
  std::vector<BoostParams> of_score;
  if (monotonic_cst.size() == 1) {
    tree.monotonic_cst = monotonic_cst[0];
    return of_score;
  }
  for (const auto& monotone : monotonic_cst) {
    of_score.push_back(tree);
    of_score.back().monotonic_cst = monotone;
  }
  return of_score;
}

double BoostingParams::step_growth(std::uint32_t round) const {
  constexpr double most = 3;
  if (learning_rate_growth_start == 0 || round <= learning_rate_growth_start) return 1;
  return std::min(most, static_cast<double>(round) / static_cast<double>(learning_rate_growth_start));
}

std::vector<PlacedComponent> placed(const std::vector<LossComponent>& components) {
  std::vector<PlacedComponent> found;
  std::uint32_t first = 0;
  for (const LossComponent& component : components) {
    found.push_back({component, first, 0, {}});
    first += component.n_scores;
  }
  return found;
}

namespace {

const LossKernels& kernels_of(Loss loss) { return boost_kernels().losses[static_cast<std::size_t>(loss)]; }

void fill_losses(const PlacedComponent& component, const double* target, const double* const* scores, std::size_t n,
                 double* losses) {
  if (component.loss == Loss::multinomial)
    return boost_kernels().softmax_loss(scores, component.n_scores, target, n, losses);
  if (component.loss == Loss::ordinal) {
    for (std::size_t i = 0; i < n; ++i)
      losses[i] = OrdinalLoss::value(static_cast<std::size_t>(target[i]), scores[0][i], component.cuts.data(),
                                     component.cuts.size());
    return;
  }
  if (traits_of(component.loss).is_distribution())
    return fill_distribution_losses(component.loss, component.parameter, {target, scores, n}, losses);
  kernels_of(component.loss).values(target, scores[0], n, {component.known()}, losses);
}

}  // namespace

// If most rows have no weight, as in a validation fold, their losses are not computed; the others keep their positions,
// so that the sum is bit-identical.
void add_losses(const PlacedComponent& component, const double* target, const double* weight,
                const double* const* scores, std::size_t n, LossSum& sum) {
  std::array<double, chunk_rows> losses;
  std::array<std::uint32_t, chunk_rows> used;
  std::size_t m = 0;
  for (std::size_t i = 0; weight != nullptr && i < n; ++i) {
    used[m] = static_cast<std::uint32_t>(i);
    m += weight[i] > 0;
  }
  if (weight == nullptr || 2 * m > n) {
    fill_losses(component, target, scores, n, losses.data());
  } else {
    std::vector<double> gathered(m * (component.n_scores + std::size_t{1}));
    std::vector<const double*> from(component.n_scores);
    const auto gather = [&](const double* numbers, std::size_t k) {
      for (std::size_t j = 0; j < m; ++j) gathered[k * m + j] = numbers[used[j]];
      return gathered.data() + k * m;
    };
    for (std::uint32_t k = 0; k < component.n_scores; ++k) from[k] = gather(scores[k], k);
    std::array<double, chunk_rows> found;
    fill_losses(component, gather(target, component.n_scores), from.data(), m, found.data());
    std::fill_n(losses.begin(), n, 0.0);
    for (std::size_t j = 0; j < m; ++j) losses[used[j]] = found[j];
  }
  sum.add(losses.data(), weight, n, component.weight);
}

void LossSum::add(const double* losses, const double* weights, std::size_t n, double factor) {
  if (weights == nullptr)
    loss += factor * sum_in_lanes(n, [&](std::size_t i) { return losses[i]; });
  else
    loss += factor * sum_in_lanes(n, [&](std::size_t i) {
              const double product = weights[i] * losses[i];  // also for rows of weight 0: no branch
              return weights[i] > 0 ? product : 0.0;
            });
}

void LossSum::count(const double* weights, std::size_t n) {
  weight += weights == nullptr ? static_cast<double>(n) : sum_in_lanes(n, [&](std::size_t i) { return weights[i]; });
}

double mean_of(const std::vector<LossSum>& sums) {
  LossSum total;
  for (const LossSum& s : sums) {
    total.loss += s.loss;
    total.weight += s.weight;
  }
  return total.loss / total.weight;
}

}  // namespace spinney
