#include "margin/perceptron.h"

#include <algorithm>
#include <limits>
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

// Weights and their mean over all rows seen. The L1 penalty is subtracted cumulatively, and at most up to 0, where an
// update may have crossed it (Tsuruoka, Tsujii and Ananiadou 2009).
class Weights {
 public:
  Weights(std::size_t n_terms, const PerceptronOptions& options)
      : values_(options.start), sums_(options.averaged ? n_terms + 1 : 0, 0.0), paid_(options.l1 > 0 ? n_terms : 0) {
    values_.resize(n_terms + 1, 0.0);
    shrink_ = std::max(0.0, 1.0 - options.rate * options.l2);
    owed_by_row_ = options.rate * options.l1;
    is_penalised_ = options.l1 > 0 || options.l2 > 0;
  }

  const std::vector<double>& values() const { return values_; }

  void shrink() {
    if (shrink_ == 1.0) return;
    for (std::size_t t = 0; t + 1 < values_.size(); ++t) values_[t] *= shrink_;
  }

  void add(const double* x, double step, double shift) {
    for (std::size_t t = 0; t + 1 < values_.size(); ++t) change(t, step * x[t]);
    change(values_.size() - 1, shift);
  }

  void end_row() {
    ++n_seen_;
    if (!is_penalised_) return;
    owed_ += owed_by_row_;
    for (std::size_t t = 0; t < paid_.size(); ++t) {
      const double before = values_[t];
      if (before > 0) values_[t] = std::max(0.0, before - (owed_ + paid_[t]));
      if (before < 0) values_[t] = std::min(0.0, before + (owed_ - paid_[t]));
      paid_[t] += values_[t] - before;
    }
    for (std::size_t t = 0; t < sums_.size(); ++t) sums_[t] += values_[t];
  }

  std::vector<double> mean() const {
    std::vector<double> found = values_;
    for (std::size_t t = 0; t < sums_.size() && n_seen_ > 0; ++t)
      found[t] = is_penalised_ ? sums_[t] / n_seen_ : values_[t] - sums_[t] / n_seen_;
    return found;
  }

 private:
  void change(std::size_t t, double by) {
    values_[t] += by;
    if (!is_penalised_ && !sums_.empty()) sums_[t] += n_seen_ * by;
  }

  // sums_: of the weights after each row; without penalties, of updates times the number of rows seen before them
  std::vector<double> values_, sums_, paid_;
  double shrink_ = 1.0, owed_by_row_ = 0.0, owed_ = 0.0, n_seen_ = 0.0;
  bool is_penalised_ = false;
};

// Whether the loss of an epoch is the last of so many that are no less than the least by the tolerance.
class Patience {
 public:
  explicit Patience(const PerceptronOptions& options) : tolerance_(options.tolerance), most_(options.patience) {}

  bool ends_at(double mean_loss) {
    if (tolerance_ < 0) return false;
    n_waited_ = mean_loss > least_ - tolerance_ ? n_waited_ + 1 : 0;
    least_ = std::min(least_, mean_loss);
    return n_waited_ >= most_;
  }

 private:
  double tolerance_, least_ = std::numeric_limits<double>::infinity();
  std::size_t most_, n_waited_ = 0;
};

}  // namespace

PerceptronEnd fit_perceptron(const double* rows, std::size_t n_rows, std::size_t n_terms, std::span<const double> sides,
                             std::span<const double> steps, const PerceptronOptions& options, Interrupt& interrupt) {
  const auto dot = margin_kernels().dot;
  PerceptronEnd end;
  end.squared_radius = options.squared_radius;
  Weights weights(n_terms, options);
  Patience patience(options);
  std::vector<std::uint32_t> order(n_rows);
  std::iota(order.begin(), order.end(), 0u);
  const double total = std::accumulate(steps.begin(), steps.end(), 0.0);
  while (!end.is_clean && !end.is_settled && end.n_epochs < options.max_epochs) {
    if (options.shuffles) shuffle(order, derive(options.seed, end.n_epochs));
    end.is_clean = true;
    double loss = 0;
    for (std::size_t k = 0; k < n_rows; ++k) {
      if (k % rows_between_checks == 0) interrupt.check();
      const std::uint32_t i = order[k];
      const double* x = rows + i * n_terms;
      if (options.grows_radius) end.squared_radius = std::max(end.squared_radius, dot(x, x, n_terms));
      const double score = dot(weights.values().data(), x, n_terms) + weights.values()[n_terms];
      const bool is_wrong = !(sides[i] * score > 0);
      weights.shrink();
      if (is_wrong) {
        const double step = options.rate * steps[i] * sides[i];
        weights.add(x, step, step * end.squared_radius);
        loss -= steps[i] * sides[i] * score;
        ++end.n_updates;
        end.is_clean = false;
      }
      weights.end_row();
    }
    ++end.n_epochs;
    end.is_settled = patience.ends_at(loss / total);
  }
  end.last = weights.values();
  end.weights = options.averaged ? weights.mean() : end.last;
  return end;
}

}  // namespace spinney
