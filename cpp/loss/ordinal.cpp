#include "loss/ordinal.h"

#include <algorithm>
#include <cmath>

#include "base/pool.h"
#include "loss/losses.h"

namespace spinney {

namespace {

using Numbers = std::vector<double>;

constexpr std::size_t cut_chunk = 4096, n_first = 4096;  // rows
constexpr int most_cut_steps = 100, most_halvings = 40;
constexpr double least_decrease = 1e-10;  // decrease of the mean loss by the last step
// Each class has a further row of this fraction of the weight at the mean score, so that the cuts around a class
// without rows are finite and distinct.
constexpr double prior_fraction = 1e-6;

// The loss as a function of the cuts, with its gradient and tridiagonal hessian.
struct CutTerms {
  explicit CutTerms(std::size_t n_cuts) : gradient(n_cuts), diagonal(n_cuts), beside(n_cuts) {}
  double loss = 0;
  Numbers gradient, diagonal, beside;  // beside: of cuts k and k + 1

  void add_row(std::size_t k, double score, double weight, const Numbers& cuts) {
    if (k > 0) add(k - 1, OrdinalLoss::side(cuts[k - 1] - score), weight, 1.0);
    if (k < cuts.size()) add(k, OrdinalLoss::side(score - cuts[k]), weight, -1.0);
  }
  void add_distance(std::size_t k, double weight, const Numbers& cuts) {  // of cuts k and k + 1
    const auto found = OrdinalLoss::distance(cuts[k + 1] - cuts[k]);
    add(k, found, weight, -1.0);
    add(k + 1, {0.0, found.slope, found.curvature}, weight, 1.0);
    beside[k] -= weight * found.curvature;
  }
  void add(const CutTerms& other) {
    loss += other.loss;
    for (std::size_t k = 0; k < gradient.size(); ++k) {
      gradient[k] += other.gradient[k];
      diagonal[k] += other.diagonal[k];
    }
  }

 private:
  void add(std::size_t cut, const OrdinalLoss::Side& found, double weight, double sign) {
    loss += weight * found.value;
    gradient[cut] += sign * weight * found.slope;
    diagonal[cut] += weight * found.curvature;
  }
};

// Solves the tridiagonal system for the Newton step.
Numbers newton_step(CutTerms at) {
  const std::size_t n = at.gradient.size();
  for (std::size_t k = 1; k < n; ++k) {
    const double ratio = at.beside[k - 1] / at.diagonal[k - 1];
    at.diagonal[k] -= ratio * at.beside[k - 1];
    at.gradient[k] -= ratio * at.gradient[k - 1];
  }
  Numbers step(n);
  for (std::size_t k = n; k-- > 0;)
    step[k] = (-at.gradient[k] - (k + 1 < n ? at.beside[k] * step[k + 1] : 0.0)) / at.diagonal[k];
  return step;
}

// Newton's method on every `stride`-th row; the loss is convex in the cuts.
class CutSearch {
 public:
  CutSearch(const OrdinalRows& rows, std::size_t stride, int n_threads)
      : rows_(rows), stride_(stride), n_((rows.target.size() + stride - 1) / stride), n_threads_(n_threads) {
    class_weight_.assign(rows.n_classes, 0.0);
    double sum = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      class_weight_[class_of(i)] += weight_of(i);
      sum += weight_of(i) > 0 ? weight_of(i) * rows.scores[i * stride] : 0.0;
    }
    for (const double weight : class_weight_) total_ += weight;
    if (!(total_ > 0)) return;
    mean_ = sum / total_;
    extra_ = prior_fraction * total_;
    for (double& weight : class_weight_) weight += extra_;
  }

  bool is_empty() const { return !(total_ > 0); }

  Numbers first() const {  // of constant scores
    Numbers cuts;
    double below = 0, all = 0;
    for (const double weight : class_weight_) all += weight;
    for (std::size_t k = 0; k + 1 < class_weight_.size(); ++k) {
      below += class_weight_[k];
      cuts.push_back(mean_ + log_ieee(below / (all - below)));
    }
    return cuts;
  }

  Numbers from(Numbers cuts) const {
    CutTerms at = terms(cuts);
    for (int i = 0; i < most_cut_steps; ++i) {
      const Numbers step = newton_step(at);
      double decrease = 0;
      for (std::size_t k = 0; k < cuts.size(); ++k) decrease -= at.gradient[k] * step[k];
      double length = longest(cuts, step);
      const bool is_last = !(decrease > least_decrease * total_);
      for (int halving = 0; halving < most_halvings; ++halving, length /= 2) {
        Numbers next = cuts;
        for (std::size_t k = 0; k < cuts.size(); ++k) next[k] += length * step[k];
        if (is_last) return next;
        CutTerms found = terms(next);
        if (!(found.loss <= at.loss - 1e-4 * length * decrease) && halving + 1 < most_halvings) continue;
        cuts = std::move(next);
        at = std::move(found);
        break;
      }
    }
    return cuts;
  }

 private:
  std::size_t class_of(std::size_t i) const { return static_cast<std::size_t>(rows_.target[i * stride_]); }
  double weight_of(std::size_t i) const { return rows_.weight == nullptr ? 1.0 : rows_.weight[i * stride_]; }

  // The part of a step, at most 1, that leaves a tenth of each distance.
  static double longest(const Numbers& cuts, const Numbers& step) {
    double length = 1;
    for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
      const double distance = cuts[k + 1] - cuts[k], change = step[k + 1] - step[k];
      if (length * change < -0.9 * distance) length = -0.9 * distance / change;
    }
    return length;
  }

  CutTerms terms(const Numbers& cuts) const {
    const std::size_t n_chunks = (n_ + cut_chunk - 1) / cut_chunk;
    std::vector<CutTerms> found(n_chunks, CutTerms(cuts.size()));
    parallel_for_if_worth(20.0 * static_cast<double>(n_), n_chunks, n_threads_, [&](std::size_t c, int) {
      for (std::size_t i = c * cut_chunk; i < std::min(n_, (c + 1) * cut_chunk); ++i)
        if (weight_of(i) > 0) found[c].add_row(class_of(i), rows_.scores[i * stride_], weight_of(i), cuts);
    });
    CutTerms all(cuts.size());
    for (const CutTerms& one : found) all.add(one);
    for (std::size_t k = 0; k < class_weight_.size(); ++k) all.add_row(k, mean_, extra_, cuts);
    for (std::size_t k = 1; k + 1 < class_weight_.size(); ++k) all.add_distance(k - 1, class_weight_[k], cuts);
    return all;
  }

  const OrdinalRows& rows_;
  const std::size_t stride_, n_;
  const int n_threads_;
  Numbers class_weight_;
  double total_ = 0, mean_ = 0, extra_ = 0;
};

}  // namespace

// A search among fewer rows first leaves two or three steps on all rows.
std::vector<double> best_cuts(const OrdinalRows& rows, int n_threads) {
  const std::size_t n = rows.target.size(), stride = (n + n_first - 1) / n_first;
  const CutSearch all(rows, 1, n_threads);
  if (all.is_empty()) return Numbers(rows.n_classes - 1, 0.0);
  if (stride <= 1) return all.from(all.first());
  const CutSearch some(rows, stride, n_threads);
  return all.from(some.is_empty() ? all.first() : some.from(some.first()));
}

}  // namespace spinney
