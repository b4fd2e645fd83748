#include "learn/linear_leaves.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/pool.h"
#include "data/read.h"

namespace spinney {

namespace {

constexpr double least_pivot = 1e-9;  // for standardised columns: below it, a column is collinear with previous ones

// By leaf: the columns that may have a slope, ascending.
std::vector<std::vector<std::uint32_t>> columns_of_leaves(const BoostedTree& grown, const LinearLeafParams& params) {
  const Tree& tree = grown.tree;
  std::vector<std::vector<std::uint32_t>> of_node(tree.size()), found;
  if (params.in_all) {  // a tree without a split stays constant, as it does otherwise
    std::vector<std::uint32_t> all;
    for (std::size_t f = 0; f < params.columns.size() && tree.size() > 1; ++f)
      if (params.columns[f]) all.push_back(static_cast<std::uint32_t>(f));
    found.assign(grown.leaves.size(), all);
    return found;
  }
  for (std::size_t at = 0; at < tree.size(); ++at) {
    if (tree.is_leaf(at)) continue;
    const auto f = static_cast<std::uint32_t>(tree.feature[at]);
    std::vector<std::uint32_t> below = std::move(of_node[at]);
    const auto place = std::lower_bound(below.begin(), below.end(), f);
    if (params.columns[f] && (place == below.end() || *place != f)) below.insert(place, f);
    of_node[tree.right[at]] = below;
    of_node[at + 1] = std::move(below);
  }
  for (const GrownLeaf& leaf : grown.leaves) found.push_back(std::move(of_node[leaf.node]));
  return found;
}

struct Term {
  std::uint32_t column;
  std::vector<double> values;  // by row; centred and scaled later
  double middle = 0, scale = 1, low = 0, high = 0, slope = 0;
};

// The rows of a leaf without missing values in its columns.
class LeafRegression {
 public:
  LeafRegression(const Table& table, std::span<const Row> rows, const Pair* pairs,
                 const std::vector<std::uint32_t>& columns) {
    std::vector<std::uint8_t> is_whole(rows.size(), 1);
    for (const std::uint32_t f : columns) {
      Term& term = terms.emplace_back();
      term.column = f;
      term.values.resize(rows.size());
      read_values(table.columns[f], rows.data(), rows.size(), term.values.data());
      for (std::size_t i = 0; i < rows.size(); ++i) is_whole[i] &= std::isfinite(term.values[i]) ? 1 : 0;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!is_whole[i]) continue;
      for (Term& term : terms) term.values[gradient_.size()] = term.values[i];
      gradient_.push_back(static_cast<double>(pairs[rows[i]].gradient));
      hessian_.push_back(static_cast<double>(pairs[rows[i]].hessian));
      total_gradient += gradient_.back();
      total_hessian += hessian_.back();
    }
    for (Term& term : terms) term.values.resize(gradient_.size());
  }

  // False if these rows do not determine a linear model.
  bool solve(double l2, double step) {
    if (!(total_hessian > 0)) return false;
    for (Term& term : terms) standardise(term);
    std::erase_if(terms, [](const Term& term) { return !(term.scale > 0) || !std::isfinite(term.scale); });
    if (terms.empty() || gradient_.size() < terms.size() + 2) return false;
    base = step;
    sum_products();
    factorise(l2);
    substitute();
    return std::all_of(terms.begin(), terms.end(), [](const Term& t) { return std::isfinite(t.slope); });
  }

  double longest_step() const {
    double longest = 0;
    for (std::size_t i = 0; i < gradient_.size(); ++i) {
      double step = base;
      for (const Term& term : terms) step += term.slope * term.values[i];
      longest = std::max(longest, std::abs(step));
    }
    return longest;
  }

  std::vector<Term> terms;
  double base = 0, total_gradient = 0, total_hessian = 0;

 private:
  // Standardises the columns, weighted by hessians.
  void standardise(Term& term) const {
    const std::size_t n = term.values.size();
    term.low = std::numeric_limits<double>::infinity();
    term.high = -term.low;
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      sum += hessian_[i] * term.values[i];
      term.low = std::min(term.low, term.values[i]);
      term.high = std::max(term.high, term.values[i]);
    }
    term.middle = std::clamp(sum / total_hessian, term.low, std::max(term.low, term.high));
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i) {
      term.values[i] -= term.middle;
      squares += hessian_[i] * (term.values[i] * term.values[i]);
    }
    term.scale = term.low < term.high ? std::sqrt(squares / total_hessian) : 0.0;
    if (!(term.scale > 0)) return;
    for (double& value : term.values) value /= term.scale;
  }

  // The weighted products of all pairs of columns: row by row for each pair, and a few pairs at a time.
  void sum_products() {
    constexpr std::size_t width = 8;
    const std::size_t k = terms.size(), n = gradient_.size(), stride = (k + width - 1) / width * width;
    std::vector<double> rows(n * stride, 0.0);
    for (std::size_t i = 0; i < k; ++i)
      for (std::size_t r = 0; r < n; ++r) rows[r * stride + i] = terms[i].values[r];
    products_.assign(k * k, 0.0);
    for (std::size_t first = 0; first < k; first += width)
      for (std::size_t i = first; i < k; ++i) {
        double sum[width] = {};
        for (std::size_t r = 0; r < n; ++r) {
          const double *row = rows.data() + r * stride, h = hessian_[r], a = row[i];
          for (std::size_t m = 0; m < width; ++m) sum[m] += h * (a * row[first + m]);
        }
        for (std::size_t m = 0; m < width && first + m <= i; ++m) products_[i * k + first + m] = sum[m];
      }
  }

  // The Cholesky factor of the weighted cross products of the columns, row by row. A column that is collinear with
  // previous ones is dropped: its row is 0 except for the diagonal.
  void factorise(double l2) {
    const std::size_t k = terms.size();
    factor_.assign(k * k, 0.0);
    for (std::size_t i = 0; i < k; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        double sum = products_[i * k + j];
        for (std::size_t m = 0; m < j; ++m) sum -= factor_[i * k + m] * factor_[j * k + m];
        factor_[i * k + j] = factor_[j * k + j] > 0 ? sum / factor_[j * k + j] : 0.0;
      }
      const double own = products_[i * k + i] + l2;
      double left = own;
      for (std::size_t m = 0; m < i; ++m) left -= factor_[i * k + m] * factor_[i * k + m];
      factor_[i * k + i] = left > least_pivot * own ? std::sqrt(left) : 0.0;
    }
  }

  void substitute() {
    const std::size_t k = terms.size();
    std::vector<double> solved(k, 0.0);
    for (std::size_t i = 0; i < k; ++i) {
      double sum = 0;
      for (std::size_t r = 0; r < gradient_.size(); ++r) sum -= gradient_[r] * terms[i].values[r];
      for (std::size_t m = 0; m < i; ++m) sum -= factor_[i * k + m] * solved[m];
      solved[i] = factor_[i * k + i] > 0 ? sum / factor_[i * k + i] : 0.0;
    }
    for (std::size_t i = k; i-- > 0;) {
      double sum = solved[i];
      for (std::size_t m = i + 1; m < k; ++m) sum -= factor_[m * k + i] * terms[m].slope;
      terms[i].slope = factor_[i * k + i] > 0 ? sum / factor_[i * k + i] : 0.0;
    }
  }

  std::vector<double> gradient_, hessian_, products_, factor_;
};

// The linear model of a leaf as one node; without terms if it is constant.
LinearLeaves linear_leaf_of(LeafRegression leaf, double l2, const StepRules& rules) {
  LinearLeaves leaf_model;
  double base = 0;
  if (leaf.solve(l2, rules.newton(leaf.total_gradient, leaf.total_hessian))) {
    const double longest = leaf.longest_step();
    const double fraction = longest > 0 ? rules.bounded(longest) / longest * rules.learning_rate : 0.0;
    base = fraction * leaf.base;
    for (const Term& term : leaf.terms) {
      const double slope = fraction * term.slope / term.scale;
      if (slope != 0 && std::isfinite(slope)) leaf_model.add_term(term.column, slope, term.middle, term.low, term.high);
    }
    if (!std::isfinite(base)) leaf_model = {};
  }
  leaf_model.end_node(leaf_model.size() > 0 ? base : 0.0);
  return leaf_model;
}

}  // namespace

void fit_linear_leaves(BoostedTree& grown, const Table& table, std::span<const Row> rows, const Pair* pairs,
                       const LinearLeafParams& params, const StepRules& rules, int n_threads) {
  const std::vector<std::vector<std::uint32_t>> columns = columns_of_leaves(grown, params);
  std::vector<LinearLeaves> found(grown.leaves.size());
  const double estimated_ns = 60.0 * static_cast<double>(rows.size());
  parallel_for_if_worth(estimated_ns, found.size(), n_threads, [&](std::size_t i, int) {
    const GrownLeaf& leaf = grown.leaves[i];
    if (columns[i].empty()) return;
    const std::span<const Row> own = rows.subspan(leaf.begin, leaf.end - leaf.begin);
    found[i] = linear_leaf_of(LeafRegression(table, own, pairs, columns[i]), params.l2, rules);
  });
  LinearLeaves& linear_leaves = grown.tree.linear_leaves;
  for (std::size_t i = 0; i < found.size(); ++i) {  // leaves are in the order of their nodes
    if (found[i].size() == 0) continue;
    linear_leaves.pad(grown.leaves[i].node);
    linear_leaves.append(found[i]);
  }
  if (!linear_leaves.empty()) linear_leaves.pad(grown.tree.size());
}

}  // namespace spinney
