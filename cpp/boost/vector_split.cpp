#include "boost/vector_split.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace spinney {

// Ordered cells by score; there is a cut after each cell that leaves something on the right.
struct VectorSearch::Cuts {
  std::vector<const Packed*> cells = {};  // by score
  std::size_t n = 0;
  const Packed* const* before = nullptr;  // by score: a cell to the left of all others; null: none
  const Row* counts = nullptr;            // by cell
  Row n_before = 0;
  double extra_l2 = 0;
  std::uint32_t feature = 0;
};

VectorSearch::VectorSearch(const Coding& coding, const BoostParams& params, std::span<const ScoreTerms> scores)
    : coding_(coding), params_(params), scores_(scores), plain_(params.l1_regularization == 0 && params.max_step == 0) {
  for (const ScoreTerms& score : scores) steps_.emplace_back(coding, params, score.units);
}

double VectorSearch::step(std::size_t k, Sums sums, double extra_l2) const {
  const Units& units = scores_[k].units;
  return steps_[k].step(static_cast<double>(sums.gradient) * units.gradient,
                        static_cast<double>(sums.hessian) * units.hessian, {}, extra_l2);
}

double VectorSearch::score_of_node(std::size_t k, Sums sums, double extra_l2) const {
  const Units& units = scores_[k].units;
  const double g = static_cast<double>(sums.gradient) * units.gradient,
               h = static_cast<double>(sums.hessian) * units.hessian,
               resistance = h + params_.l2_regularization + extra_l2;
  if (plain_) return resistance > 0 ? scores_[k].weight * (g * g / resistance) : 0.0;
  const double s = step(k, sums, extra_l2);
  return scores_[k].weight * -(2 * g * s + resistance * s * s + 2 * params_.l1_regularization * std::abs(s));
}

VectorTerms VectorSearch::terms(std::vector<Sums> total, Row n_rows) const {
  VectorTerms terms{std::move(total), n_rows, 0, 0};
  double hessian = 0, rounding = 0;
  for (std::size_t k = 0; k < scores_.size(); ++k) {
    hessian += static_cast<double>(terms.total[k].hessian) * scores_[k].units.hessian;
    rounding += 2.0 * static_cast<double>(params_.min_samples_leaf) * scores_[k].units.hessian;
    terms.parent += score_of_node(k, terms.total[k]);
  }
  terms.parent += 1e-10 * std::abs(terms.parent);  // margin above rounding
  // Rounding changes a row's hessian by less than a unit; the rows are counted once the split is made.
  const double rows = params_.min_samples_leaf <= 1
                          ? 0.0
                          : params_.min_samples_leaf * params_.count_by_weight * hessian / static_cast<double>(n_rows);
  terms.least = std::max({1e-300, params_.min_hessian_leaf, rows * (1 - 1e-9) - rounding});
  return terms;
}

void VectorSearch::add_worths(const Cuts& cuts, std::size_t k, Sums total, Scratch& scratch) const {
  const Units& units = scores_[k].units;
  const double lambda = params_.l2_regularization + cuts.extra_l2, weight = scores_[k].weight;
  const int sign = scores_[k].monotone.empty() ? 0 : scores_[k].monotone[cuts.feature];
  Sums left;
  if (cuts.before != nullptr) left = {gradient_of(*cuts.before[k]), hessian_of(*cuts.before[k])};
  for (std::size_t c = 0; c < cuts.n; ++c) {
    left.gradient += gradient_of(cuts.cells[k][c]);
    left.hessian += hessian_of(cuts.cells[k][c]);
    const Sums right{total.gradient - left.gradient, total.hessian - left.hessian};
    const double hl = static_cast<double>(left.hessian) * units.hessian,
                 hr = static_cast<double>(right.hessian) * units.hessian;
    scratch.hessian[c] += hl;
    if (plain_) {
      const double gl = static_cast<double>(left.gradient) * units.gradient,
                   gr = static_cast<double>(right.gradient) * units.gradient, l = hl + lambda, r = hr + lambda;
      const double of_left = l > 0 ? gl * gl / l : 0.0, of_right = r > 0 ? gr * gr / r : 0.0;
      scratch.score_of_node[c] += weight * of_left + weight * of_right;
    } else {
      scratch.score_of_node[c] += score_of_node(k, left, cuts.extra_l2) + score_of_node(k, right, cuts.extra_l2);
    }
    if (sign != 0 && (step(k, right, cuts.extra_l2) - step(k, left, cuts.extra_l2)) * sign < 0) scratch.breaks[c] = 1;
  }
}

// The number of cells that go left at the best cut if it is better than the best so far; else 0.
std::size_t VectorSearch::best_of(const Cuts& cuts, const VectorTerms& terms, Scratch& scratch,
                                  VectorSplit& best) const {
  scratch.score_of_node.assign(cuts.n, 0.0);
  scratch.hessian.assign(cuts.n, 0.0);
  scratch.breaks.assign(cuts.n, 0);
  double total = 0;
  for (std::size_t k = 0; k < scores_.size(); ++k) {
    add_worths(cuts, k, terms.total[k], scratch);
    total += static_cast<double>(terms.total[k].hessian) * scores_[k].units.hessian;
  }
  std::size_t found = 0;
  Row n_left = cuts.n_before;
  for (std::size_t c = 0; c < cuts.n; ++c) {
    if (cuts.counts != nullptr) n_left += cuts.counts[c];
    const double hessian = scratch.hessian[c];
    if (scratch.breaks[c] || hessian < terms.least || total - hessian < terms.least) continue;
    if (cuts.counts != nullptr && std::min(n_left, terms.n_rows - n_left) < params_.min_samples_leaf) continue;
    const double gain = without_rounding(scratch.score_of_node[c] - terms.parent);
    if (!(gain > best.gain) || gain <= params_.min_gain) continue;
    best.gain = gain;
    found = c + 1;
  }
  if (found == 0) return 0;
  best.left_sums.assign(scores_.size(), {});
  for (std::size_t k = 0; k < scores_.size(); ++k) {
    Sums& left = best.left_sums[k];
    if (cuts.before != nullptr) left = {gradient_of(*cuts.before[k]), hessian_of(*cuts.before[k])};
    for (std::size_t c = 0; c < found; ++c) {
      left.gradient += gradient_of(cuts.cells[k][c]);
      left.hessian += hessian_of(cuts.cells[k][c]);
    }
  }
  return found;
}

void VectorSearch::search_numbers(std::uint32_t feature, std::span<const Packed* const> cells, const VectorTerms& terms,
                                  const Row* counts, Scratch& scratch, VectorSplit& best) const {
  const CodedColumn& column = coding_.columns[feature];
  const std::uint32_t n_present = column.n_present();
  std::vector<const Packed*> missing;
  if (best.saw_missing)
    for (const Packed* of_score : cells) missing.push_back(of_score + column.n_codes - 1);
  const auto take = [&](const Cuts& cuts, bool missing_left) {
    const std::size_t n_left = best_of(cuts, terms, scratch, best);
    if (n_left == 0) return;
    best.cut = static_cast<std::uint32_t>(n_left - 1);
    best.missing_left = missing_left;
  };
  Cuts cuts{.cells = {cells.begin(), cells.end()}, .counts = counts, .feature = feature};
  // The last cut, with only missing values on the right, is one more cut.
  cuts.n = n_present - !best.saw_missing;
  take(cuts, false);
  if (!best.saw_missing) return;
  cuts.n = n_present - 1;
  cuts.before = missing.data();
  if (counts != nullptr) cuts.n_before = counts[column.n_codes - 1];
  take(cuts, true);
}

// Up to eight scores in which the categories differ most.
std::vector<std::size_t> VectorSearch::scores_to_sort_by(std::span<const Packed* const> cells,
                                                         std::span<const std::uint32_t> categories) const {
  constexpr std::size_t most = 8;
  std::vector<double> spread(scores_.size(), 0.0);
  for (std::size_t k = 0; k < scores_.size(); ++k)
    for (const std::uint32_t c : categories)
      spread[k] += score_of_node(k, {gradient_of(cells[k][c]), hessian_of(cells[k][c])}, params_.category_smoothing);
  std::vector<std::size_t> order(scores_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return spread[a] > spread[b]; });
  order.resize(std::min(order.size(), most));
  return order;
}

// The first half of the ordered categories, one more at each cut.
void VectorSearch::try_order(std::span<const Packed* const> cells, std::span<const std::uint32_t> order,
                             const VectorTerms& terms, const Row* counts, Scratch& scratch, VectorSplit& best) const {
  const std::size_t n = (order.size() + 1) / 2;
  scratch.ordered.resize(n * scores_.size());
  Cuts cuts{.n = n, .extra_l2 = params_.category_l2};
  for (std::size_t k = 0; k < scores_.size(); ++k) {
    Packed* to = scratch.ordered.data() + k * n;
    for (std::size_t i = 0; i < n; ++i) to[i] = cells[k][order[i]];
    cuts.cells.push_back(to);
  }
  if (counts != nullptr) {
    scratch.counts.resize(n);
    for (std::size_t i = 0; i < n; ++i) scratch.counts[i] = counts[order[i]];
    cuts.counts = scratch.counts.data();
  }
  cuts.feature = best.feature;
  const std::size_t n_left = best_of(cuts, terms, scratch, best);
  if (n_left > 0) best.left_codes.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n_left));
}

// One against the rest for few categories; else in the order of the steps of one score after the other, as for numbers.
void VectorSearch::search_categories(std::span<const Packed* const> cells, const VectorTerms& terms, const Row* counts,
                                     Scratch& scratch, VectorSplit& best) const {
  const CodedColumn& column = coding_.columns[best.feature];
  double total = 0;
  for (std::size_t k = 0; k < scores_.size(); ++k)
    total += static_cast<double>(terms.total[k].hessian) * scores_[k].units.hessian;
  auto& categories = scratch.categories;
  categories.clear();
  scratch.frequent.clear();
  for (std::uint32_t code = 0; code < column.n_codes; ++code) {
    double hessian = 0;
    for (std::size_t k = 0; k < scores_.size(); ++k)
      hessian += static_cast<double>(hessian_of(cells[k][code])) * scores_[k].units.hessian;
    if (!(hessian > 0)) continue;
    categories.push_back(code);
    if (hessian * static_cast<double>(terms.n_rows) / total >= params_.category_smoothing)
      scratch.frequent.push_back(code);
  }
  if (categories.size() < 2) return;
  if (categories.size() <= params_.max_one_hot) {
    for (const std::uint32_t code : categories) {
      Cuts cuts{.n = 1, .counts = counts == nullptr ? nullptr : counts + code, .feature = best.feature};
      for (const Packed* of_score : cells) cuts.cells.push_back(of_score + code);
      if (best_of(cuts, terms, scratch, best) > 0) best.left_codes = {code};
    }
  } else {
    std::vector<std::uint32_t> order;
    std::vector<double> steps(column.n_codes);
    for (const std::size_t k : scores_to_sort_by(cells, scratch.frequent)) {
      for (const std::uint32_t c : scratch.frequent)
        steps[c] = step(k, {gradient_of(cells[k][c]), hessian_of(cells[k][c])}, params_.category_smoothing);
      order = scratch.frequent;
      std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return steps[a] < steps[b]; });
      try_order(cells, order, terms, counts, scratch, best);
      std::reverse(order.begin(), order.end());
      try_order(cells, order, terms, counts, scratch, best);
    }
  }
  if (best.left_codes.empty()) return;
  std::sort(best.left_codes.begin(), best.left_codes.end());
  best.missing_left = best.left_codes.back() == column.n_codes - 1;
  if (best.missing_left) best.left_codes.pop_back();
}

VectorSplit VectorSearch::search(std::uint32_t feature, std::span<const Packed* const> cells, const VectorTerms& terms,
                                 const Row* counts, Scratch& scratch) const {
  const CodedColumn& column = coding_.columns[feature];
  VectorSplit best;
  best.feature = feature;
  if (column.n_codes < 2) return best;
  best.is_category = column.is_category;
  if (column.has_missing)
    best.saw_missing =
        std::any_of(cells.begin(), cells.end(), [&](const Packed* c) { return c[column.n_codes - 1] != 0; });
  if (column.is_category)
    search_categories(cells, terms, counts, scratch, best);
  else
    search_numbers(feature, cells, terms, counts, scratch, best);
  return best;
}

}  // namespace spinney
