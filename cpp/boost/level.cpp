#include "boost/level.h"

#include <algorithm>

#include "base/pool.h"

namespace spinney {

// Twice the second-order gain of a cut of one node, in units of the packed sums.
double LevelSearch::gain(const NodeTerms& terms, double g_left, double h_left, double extra_l2) const {
  const double g = static_cast<double>(terms.total.gradient), h = static_cast<double>(terms.total.hessian);
  if (search_.is_plain()) {
    const double lambda = (params_.l2_regularization + extra_l2) / units_.hessian;
    const double right = g - g_left, a = h_left + lambda, b = h - h_left + lambda;
    return (g_left * g_left * b + right * right * a) / (a * b) -
           g * g / (h + params_.l2_regularization / units_.hessian);
  }
  const auto score_of_node = [&](double gradient, double hessian) {
    return search_.score_of_node(gradient * units_.gradient, hessian * units_.hessian, terms.bounds, extra_l2);
  };
  return (score_of_node(g_left, h_left) + score_of_node(g - g_left, h - h_left) - terms.parent) * units_.hessian /
         (units_.gradient * units_.gradient);
}

// Adds the gain of each cut in one node to the total. Hessians never decrease along ordered cuts, so those with enough
// hessian on both sides are contiguous; other cuts gain nothing.
void LevelSearch::add_gains(const NodeTerms& terms, double extra_l2, bool in_order, Scratch& scratch) const {
  const std::size_t n = scratch.left_gradient.size();
  const double *const g_left = scratch.left_gradient.data(), *const h_left = scratch.left_hessian.data();
  const double h = static_cast<double>(terms.total.hessian);
  const auto is_enough = [&](std::size_t i) { return h_left[i] >= terms.least && h - h_left[i] >= terms.least; };
  std::size_t begin = 0, end = n;
  if (in_order) {
    while (begin < n && !(h_left[begin] >= terms.least)) ++begin;
    while (end > begin && !(h - h_left[end - 1] >= terms.least)) --end;
  }
  for (std::size_t i = begin; i < end; ++i)
    if (in_order || is_enough(i)) scratch.gains[i] += gain(terms, g_left[i], h_left[i], extra_l2);
}

bool LevelSearch::offer(double gain, BoostSplit& best) {
  gain = without_rounding(gain);
  if (!(gain > best.gain)) return false;
  best.gain = gain;
  return true;
}

void LevelSearch::try_cuts(std::span<const LevelNode> nodes, std::uint32_t f, bool missing_left, Scratch& scratch,
                           BoostSplit& best) const {
  const CodedColumn& column = coding_.columns[f];
  const std::uint32_t n_cuts = column.n_present() - (missing_left || !column.has_missing);
  scratch.start(n_cuts);
  for (const LevelNode& node : nodes) {
    const Packed* cells = tiles_.cells(f, node.histogram, packed(node.terms.total), scratch.cells);
    Packed left = missing_left ? cells[column.n_codes - 1] : 0;
    for (std::uint32_t cut = 0; cut < n_cuts; ++cut) scratch.set(cut, left += cells[cut]);
    add_gains(node.terms, 0, true, scratch);
  }
  for (std::uint32_t cut = 0; cut < n_cuts; ++cut)
    if (offer(scratch.gains[cut], best)) {
      best.cut = cut;
      best.missing_left = missing_left;
    }
}

// The categories with enough rows in some node, ordered by the optimal step of all their rows.
void LevelSearch::sort_categories(std::span<const LevelNode> nodes, std::uint32_t f, Scratch& scratch) const {
  const std::uint32_t n_codes = coding_.columns[f].n_codes;
  scratch.total.assign(n_codes, 0);
  double n_rows = 0, hessian = 0;
  for (const LevelNode& node : nodes) {
    const Packed* cells = tiles_.cells(f, node.histogram, packed(node.terms.total), scratch.cells);
    for (std::uint32_t code = 0; code < n_codes; ++code) scratch.total[code] += cells[code];
    n_rows += static_cast<double>(node.terms.n_rows);
    hessian += static_cast<double>(node.terms.total.hessian);
  }
  scratch.order.clear();
  scratch.steps.assign(n_codes, 0.0);
  std::size_t n_there = 0;
  for (const Packed cell : scratch.total) n_there += hessian_of(cell) != 0;
  const double fewest = n_there <= params_.max_one_hot ? 0.0 : params_.category_smoothing;
  for (std::uint32_t code = 0; code < n_codes; ++code) {
    const double g = static_cast<double>(gradient_of(scratch.total[code])),
                 h = static_cast<double>(hessian_of(scratch.total[code]));
    if (h == 0 || h * n_rows / hessian < fewest) continue;
    scratch.steps[code] = -g * units_.gradient / (h * units_.hessian + params_.category_smoothing);
    scratch.order.push_back(code);
  }
  std::stable_sort(scratch.order.begin(), scratch.order.end(),
                   [&](auto a, auto b) { return scratch.steps[a] < scratch.steps[b]; });
}

// Few categories are split one against the rest, more in their order.
void LevelSearch::try_categories(std::span<const LevelNode> nodes, std::uint32_t f, Scratch& scratch,
                                 BoostSplit& best) const {
  sort_categories(nodes, f, scratch);
  const std::vector<std::uint32_t>& order = scratch.order;
  if (order.size() < 2) return;
  const bool one_by_one = order.size() <= params_.max_one_hot;
  const double extra_l2 = one_by_one ? 0.0 : params_.category_l2;
  scratch.start(order.size());
  for (const LevelNode& node : nodes) {
    const Packed* cells = tiles_.cells(f, node.histogram, packed(node.terms.total), scratch.cells);
    Packed left = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      left = one_by_one ? cells[order[i]] : left + cells[order[i]];
      scratch.set(i, left);
    }
    add_gains(node.terms, extra_l2, !one_by_one, scratch);
  }
  for (std::size_t i = 0; i < order.size(); ++i)
    if (offer(scratch.gains[i], best)) {
      const auto end = order.begin() + static_cast<std::ptrdiff_t>(i + 1);
      best.left_codes.assign(one_by_one ? end - 1 : order.begin(), end);
    }
  if (best.left_codes.empty()) return;
  std::sort(best.left_codes.begin(), best.left_codes.end());
  best.missing_left = best.left_codes.back() == coding_.columns[f].n_codes - 1;
  if (best.missing_left) best.left_codes.pop_back();
}

BoostSplit LevelSearch::best_of_column(std::span<const LevelNode> nodes, std::uint32_t f, Scratch& scratch) const {
  BoostSplit best;
  best.feature = f;
  const CodedColumn& column = coding_.columns[f];
  if (column.n_codes < 2) return best;
  best.is_category = column.is_category;
  if (column.is_category) {
    try_categories(nodes, f, scratch, best);
    return best;
  }
  try_cuts(nodes, f, false, scratch, best);
  if (column.has_missing) try_cuts(nodes, f, true, scratch, best);
  return best;
}

BoostSplit LevelSearch::best(std::span<const LevelNode> nodes, const std::vector<std::uint8_t>& columns,
                             int n_threads) const {
  std::vector<std::uint32_t> tried;
  for (std::uint32_t f = 0; f < columns.size(); ++f)
    if (columns[f]) tried.push_back(f);
  std::vector<BoostSplit> found(tried.size());
  const double n_cells = static_cast<double>(tiles_.n_cells()) * static_cast<double>(nodes.size());
  std::vector<Scratch> scratch(static_cast<std::size_t>(std::max(n_threads, 1)));
  parallel_for_if_worth(3.0 * n_cells, tried.size(), n_threads, [&](std::size_t i, int worker) {
    found[i] = best_of_column(nodes, tried[i], scratch[static_cast<std::size_t>(worker)]);
    if (!params_.feature_costs.empty()) found[i].gain /= params_.feature_costs[tried[i]];
  });
  BoostSplit best;
  for (BoostSplit& split : found)
    if (split.gain > best.gain) best = std::move(split);
  best.gain *= units_.gradient * units_.gradient / units_.hessian;
  if (!(best.gain > params_.min_gain)) best.gain = 0;
  return best;
}

BoostSplit LevelSearch::of_node(const BoostSplit& split, const LevelNode& node) const {
  const CodedColumn& column = coding_.columns[split.feature];
  std::vector<Packed> buffer;
  const Packed* cells = tiles_.cells(split.feature, node.histogram, packed(node.terms.total), buffer);
  const Packed missing = column.has_missing ? cells[column.n_codes - 1] : 0;
  Packed left = split.missing_left ? missing : 0;
  if (split.is_category)
    for (const std::uint32_t code : split.left_codes) left += cells[code];
  else
    for (std::uint32_t code = 0; code <= split.cut; ++code) left += cells[code];
  BoostSplit own = split;
  own.left = {gradient_of(left), hessian_of(left)};
  own.saw_missing = missing != 0;
  const double h_left = static_cast<double>(own.left.hessian),
               h_right = static_cast<double>(node.terms.total.hessian) - h_left;
  if (h_left < node.terms.least || h_right < node.terms.least) own.gain = 0;
  return own;
}

}  // namespace spinney
