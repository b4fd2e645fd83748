#include "boost/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace spinney {

SplitSearch::SplitSearch(const Coding& coding, const BoostParams& params, Units units)
    : coding_(coding), params_(params), units_(units), plain_(params.l1_regularization == 0 && params.max_step == 0) {}

struct SplitSearch::Query : NodeTerms {
  std::uint32_t feature;
  std::int8_t monotone;
  double floor;
  const Row* counts;  // rows by code, or null

  Row count(std::uint32_t code) const { return counts == nullptr ? 0 : counts[code]; }
};

double SplitSearch::step(double gradient, double hessian, Bounds bounds, double extra_l2) const {
  double thresholded = gradient;
  if (params_.l1_regularization > 0)
    thresholded = thresholded > params_.l1_regularization
                      ? thresholded - params_.l1_regularization
                      : (thresholded < -params_.l1_regularization ? thresholded + params_.l1_regularization : 0.0);
  const double resistance = hessian + params_.l2_regularization + extra_l2;
  double step = resistance > 0 ? -thresholded / resistance : 0.0;
  if (params_.max_step > 0) step = std::clamp(step, -params_.max_step, params_.max_step);
  return std::clamp(step, bounds.low, bounds.high);
}

double SplitSearch::score_of_node(double gradient, double hessian, Bounds bounds, double extra_l2) const {
  const double s = step(gradient, hessian, bounds, extra_l2);
  return -(2 * gradient * s + (hessian + params_.l2_regularization + extra_l2) * s * s +
           2 * params_.l1_regularization * std::abs(s));
}

// Replaces the best cut by the one with these sums on the left if that is better.
bool SplitSearch::offer(const Query& q, Packed left, Row n_left, BoostSplit& best, double extra_l2) const {
  const Sums l{gradient_of(left), hessian_of(left)};
  const Sums r{q.total.gradient - l.gradient, q.total.hessian - l.hessian};
  if (static_cast<double>(std::min(l.hessian, r.hessian)) < q.least) return false;
  if (q.counts != nullptr && std::min(n_left, q.n_rows - n_left) < params_.min_samples_leaf) return false;
  const double gl = static_cast<double>(l.gradient) * units_.gradient,
               hl = static_cast<double>(l.hessian) * units_.hessian;
  const double gr = static_cast<double>(r.gradient) * units_.gradient,
               hr = static_cast<double>(r.hessian) * units_.hessian;
  if (q.monotone != 0) {
    const double rise = step(gr, hr, q.bounds, extra_l2) - step(gl, hl, q.bounds, extra_l2);
    if (rise * q.monotone < 0) return false;
  }
  const double gain = without_rounding(score_of_node(gl, hl, q.bounds, extra_l2) +
                                       score_of_node(gr, hr, q.bounds, extra_l2) - q.parent);
  if (!(gain > best.gain) || gain <= params_.min_gain) return false;
  best.gain = gain;
  best.left = l;
  return true;
}

// The cuts with enough rows on both sides.
void SplitSearch::count_cuts(const Query& q, std::uint32_t n_cuts, bool missing_left, CutQuery& query) const {
  Row n_left = missing_left ? q.count(coding_.columns[q.feature].n_codes - 1) : 0;
  std::uint32_t first = 0, end = 0;
  for (std::uint32_t cut = 0; cut < n_cuts; ++cut) {
    n_left += q.count(cut);
    first += n_left < params_.min_samples_leaf;
    end += n_left + params_.min_samples_leaf <= q.n_rows;
  }
  query.first_cut = first;
  query.end_cut = end;
}

// Returns whether cuts may be compared by their sums alone.
bool SplitSearch::is_free(const Query& q) const { return plain_ && q.monotone == 0 && !is_bounded(q.bounds); }

std::optional<std::uint32_t> SplitSearch::try_free_cuts(const Query& q, const Packed* cells, std::size_t n_cuts,
                                                        Packed before, CutQuery query, SplitScratch& scratch,
                                                        BoostSplit& best, double extra_l2) const {
  query.gradient = static_cast<double>(q.total.gradient);
  query.hessian = static_cast<double>(q.total.hessian);
  query.lambda = (params_.l2_regularization + extra_l2) / units_.hessian;
  query.min_hessian = q.least;
  query.floor = std::max(q.floor, best.score) * (1 - 1e-9);  // margin above rounding
  const CutFound found =
      boost_kernels().best_cut(cells, n_cuts, before, query, scratch.prefix.data(), scratch.scores.data());
  if (found.score < 0 || !offer(q, found.left, params_.min_samples_leaf, best, extra_l2)) return std::nullopt;
  best.score = found.score;
  return found.cut;
}

void SplitSearch::try_cuts(const Query& q, const Packed* cells, std::uint32_t n_cuts, Packed before, bool missing_left,
                           SplitScratch& scratch, BoostSplit& best) const {
  const auto take = [&](std::uint32_t cut) {
    best.cut = cut;
    best.missing_left = missing_left;
  };
  if (is_free(q)) {
    CutQuery query;
    if (q.counts != nullptr) count_cuts(q, n_cuts, missing_left, query);
    if (const auto cut = try_free_cuts(q, cells, n_cuts, before, query, scratch, best, 0)) take(*cut);
    return;
  }
  Packed sum = before;
  Row n_left = missing_left ? q.count(coding_.columns[q.feature].n_codes - 1) : 0;
  for (std::uint32_t cut = 0; cut < n_cuts; ++cut) {
    sum += cells[cut];
    n_left += q.count(cut);
    if (offer(q, sum, n_left, best, 0)) take(cut);
  }
}

// Categories with too few rows stay with the rest: split off, rare categories such as names identify single rows and
// overfit.
void SplitSearch::drop_rare(const Query& q, const Packed* cells, std::vector<std::uint32_t>& categories) const {
  const double rows_per_hessian = static_cast<double>(q.n_rows) / static_cast<double>(q.total.hessian);
  std::erase_if(categories, [&](std::uint32_t code) {
    return static_cast<double>(hessian_of(cells[code])) * rows_per_hessian < params_.category_smoothing;
  });
}

void SplitSearch::sort_by_step(const Packed* cells, SplitScratch& scratch) const {
  constexpr std::size_t few = 256;
  auto& [categories, places, sorted, steps] = scratch.order;
  const std::size_t n = categories.size();
  steps.resize(n);
  places.resize(n);
  sorted.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double g = static_cast<double>(gradient_of(cells[categories[i]])) * units_.gradient;
    const double h = static_cast<double>(hessian_of(cells[categories[i]])) * units_.hessian;
    steps[i] = -g / (h + params_.category_smoothing);
  }
  if (n <= few) {
    boost_kernels().rank(steps.data(), n, places.data());
    for (std::size_t i = 0; i < n; ++i) sorted[places[i]] = categories[i];
  } else {
    std::iota(places.begin(), places.end(), 0u);
    std::stable_sort(places.begin(), places.end(), [&](auto a, auto b) { return steps[a] < steps[b]; });
    for (std::size_t i = 0; i < n; ++i) sorted[i] = categories[places[i]];
  }
  categories.swap(sorted);
}

// The number of ordered categories that go left at the best cut of the first half; 0: none.
std::size_t SplitSearch::try_in_order(const Query& q, const Packed* cells, SplitScratch& scratch,
                                      BoostSplit& best) const {
  const std::vector<std::uint32_t>& categories = scratch.order.categories;
  const std::size_t n_cuts = (categories.size() + 1) / 2;
  if (is_free(q) && q.counts == nullptr) {
    scratch.ordered.resize(n_cuts);
    for (std::size_t i = 0; i < n_cuts; ++i) scratch.ordered[i] = cells[categories[i]];
    const auto cut = try_free_cuts(q, scratch.ordered.data(), n_cuts, 0, {}, scratch, best, params_.category_l2);
    return cut ? *cut + std::size_t{1} : 0;
  }
  Packed sum = 0;
  Row n_rows = 0;
  std::size_t n_left = 0;
  for (std::size_t i = 0; i < n_cuts; ++i) {
    sum += cells[categories[i]];
    n_rows += q.count(categories[i]);
    if (offer(q, sum, n_rows, best, params_.category_l2)) n_left = i + 1;
  }
  return n_left;
}

// Searches the cuts of the categories in the order of their steps from both ends; returns the number that go left, or
// 0.
std::size_t SplitSearch::try_sorted(const Query& q, const Packed* cells, SplitScratch& scratch,
                                    BoostSplit& best) const {
  std::vector<std::uint32_t>& categories = scratch.order.categories;
  drop_rare(q, cells, categories);
  sort_by_step(cells, scratch);
  const std::size_t from_start = try_in_order(q, cells, scratch, best);
  std::reverse(categories.begin(), categories.end());
  const std::size_t from_end = try_in_order(q, cells, scratch, best);
  if (from_end > 0) return from_end;
  std::reverse(categories.begin(), categories.end());
  return from_start;
}

// One against the rest for few categories; else in the order of their steps, as for numbers.
void SplitSearch::try_categories(const Query& q, const Packed* cells, SplitScratch& scratch, BoostSplit& best) const {
  const CodedColumn& column = coding_.columns[q.feature];
  auto& categories = scratch.order.categories;
  categories.resize(column.n_codes);
  std::size_t n_there = 0;
  for (std::uint32_t code = 0; code < column.n_codes; ++code) {
    categories[n_there] = code;
    n_there += hessian_of(cells[code]) != 0;
  }
  categories.resize(n_there);
  if (n_there < 2) return;
  std::size_t first = 0, n_left = 0;
  if (n_there <= params_.max_one_hot) {
    for (std::size_t i = 0; i < n_there; ++i) {
      if (!offer(q, cells[categories[i]], q.count(categories[i]), best, 0)) continue;
      first = i;
      n_left = 1;
    }
  } else {
    n_left = try_sorted(q, cells, scratch, best);
  }
  if (n_left == 0) return;
  const auto begin = categories.begin() + static_cast<std::ptrdiff_t>(first);
  best.left_codes.assign(begin, begin + static_cast<std::ptrdiff_t>(n_left));
  std::sort(best.left_codes.begin(), best.left_codes.end());
  best.missing_left = best.left_codes.back() == column.n_codes - 1;
  if (best.missing_left) best.left_codes.pop_back();
}

NodeTerms SplitSearch::terms(Sums total, Row n_rows, Bounds bounds) const {
  const double g = static_cast<double>(total.gradient) * units_.gradient;
  const double h = static_cast<double>(total.hessian) * units_.hessian;
  // A single row may have less than the mean hessian: it must not be refused because other rows have larger weights.
  const double rows_as_hessian = params_.min_samples_leaf <= 1
                                     ? 0.0
                                     : static_cast<double>(params_.min_samples_leaf) * params_.count_by_weight *
                                           static_cast<double>(total.hessian) / static_cast<double>(n_rows);
  // Rounding changes a row's hessian by less than a unit; the rows are counted once the split is made.
  const double rounding = 2.0 * static_cast<double>(params_.min_samples_leaf);
  const double least =
      std::max({1.0, params_.min_hessian_leaf / units_.hessian, rows_as_hessian * (1 - 1e-9) - rounding});
  double parent = score_of_node(g, h, bounds, 0);
  parent += 1e-10 * std::abs(parent);  // margin above rounding
  return {total, n_rows, bounds, least, parent};
}

bool SplitSearch::may_split_flags(const Packed* cells, std::size_t n, const NodeTerms& terms, double floor) const {
  if (!plain_ || !params_.monotonic_cst.empty() || is_bounded(terms.bounds)) return true;
  return boost_kernels().may_separate_one(cells, n,
                                          {.gradient = static_cast<double>(terms.total.gradient),
                                           .hessian = static_cast<double>(terms.total.hessian),
                                           .lambda = params_.l2_regularization / units_.hessian,
                                           .min_hessian = terms.least,
                                           .floor = floor});
}

// The value of a split relative to other columns. Scores are not comparable in this case.
void SplitSearch::charge(BoostSplit& split) const {
  if (params_.feature_costs.empty()) return;
  split.gain /= params_.feature_costs[split.feature];
  split.score = 0;
}

BoostSplit SplitSearch::search(std::uint32_t feature, const Packed* cells, const NodeTerms& terms, double floor,
                               SplitScratch& scratch, const Row* counts) const {
  const CodedColumn& column = coding_.columns[feature];
  BoostSplit best;
  best.feature = feature;
  if (column.n_codes < 2) return best;
  const Query q{terms, feature, params_.monotonic_cst.empty() ? std::int8_t{0} : params_.monotonic_cst[feature], floor,
                counts};
  if (scratch.prefix.size() < column.n_codes + std::size_t{16}) {
    scratch.prefix.resize(column.n_codes + 16);
    scratch.scores.resize(column.n_codes + 16);
  }
  best.is_category = column.is_category;
  const Packed missing = column.has_missing ? cells[column.n_codes - 1] : 0;
  best.saw_missing = missing != 0;
  if (column.is_category) {
    try_categories(q, cells, scratch, best);
    charge(best);
    return best;
  }
  const std::uint32_t n_present = column.n_present();
  // The last cut, with only missing values on the right, is one more cut.
  try_cuts(q, cells, n_present - (missing == 0), 0, false, scratch, best);
  if (missing != 0) try_cuts(q, cells, n_present - 1, missing, true, scratch, best);
  charge(best);
  return best;
}

}  // namespace spinney
