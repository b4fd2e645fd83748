#include "margin/perceptron.h"

#include <numeric>
#include <utility>

#include "base/random.h"
#include "margin/kernel.h"

namespace spinney {

namespace {

constexpr std::size_t rows_between_checks = 4096;

void shuffle(std::vector<std::uint32_t>& order, std::uint64_t key) {
  RandomStream random(key);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
}

}  // namespace

PerceptronEnd fit_perceptron(const double* rows, std::size_t n_rows, std::size_t n_terms, std::span<const double> sides,
                             std::span<const double> steps, const PerceptronOptions& options, Interrupt& interrupt) {
  const auto dot = margin_kernels().dot;
  PerceptronEnd end;
  // late: updates times the number of rows seen before them, which gives the mean over all rows seen
  std::vector<double> weights(n_terms + 1, 0.0), late(n_terms + 1, 0.0);
  std::vector<std::uint32_t> order(n_rows);
  std::iota(order.begin(), order.end(), 0u);
  double n_seen = 0;
  while (!end.is_clean && end.n_epochs < options.max_epochs) {
    if (options.shuffles) shuffle(order, derive(options.seed, end.n_epochs));
    end.is_clean = true;
    for (std::size_t k = 0; k < n_rows; ++k) {
      if (k % rows_between_checks == 0) interrupt.check();
      const std::uint32_t i = order[k];
      const double* x = rows + i * n_terms;
      const double score = dot(weights.data(), x, n_terms) + weights[n_terms];
      if (!(sides[i] * score > 0)) {
        const double step = options.rate * steps[i] * sides[i], shift = step * options.squared_radius;
        for (std::size_t t = 0; t < n_terms; ++t) {
          weights[t] += step * x[t];
          late[t] += n_seen * (step * x[t]);
        }
        weights[n_terms] += shift;
        late[n_terms] += n_seen * shift;
        ++end.n_updates;
        end.is_clean = false;
      }
      ++n_seen;
    }
    ++end.n_epochs;
  }
  if (options.averaged && n_seen > 0)
    for (std::size_t t = 0; t <= n_terms; ++t) weights[t] -= late[t] / n_seen;
  end.weights = std::move(weights);
  return end;
}

}  // namespace spinney
