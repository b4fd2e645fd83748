#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "check.h"
#include "predict/leaf_rows.h"

using namespace spinney;

namespace {

// Random leaves and weights: rows of weight 0, leaves without rows, queries that skip trees.
struct Case {
  std::size_t n_rows, n_trees, n_nodes, n_queries;
  std::vector<std::uint32_t> leaf;    // by tree and row
  std::vector<double> amount;         // by tree and row
  std::vector<std::uint32_t> query;   // by query and tree
  std::vector<double> target;         // by row
  std::vector<std::uint32_t> place;   // rank of each row's target
  std::vector<double> sorted_target;  // in that order

  Case(std::size_t rows, std::size_t trees, std::size_t nodes, std::size_t queries)
      : n_rows(rows), n_trees(trees), n_nodes(nodes), n_queries(queries) {
    std::mt19937 random(7);
    for (std::size_t i = 0; i < n_trees * n_rows; ++i) {
      leaf.push_back(static_cast<std::uint32_t>(random() % n_nodes));
      amount.push_back(static_cast<double>(random() % 3));
    }
    for (std::size_t i = 0; i < n_queries * n_trees; ++i)
      query.push_back(random() % 5 == 0 ? LeafRows::left_out : static_cast<std::uint32_t>(random() % n_nodes));
    for (std::size_t t = 0; t < n_trees; ++t) query[t] = LeafRows::left_out;  // the first query skips all trees
    for (std::size_t r = 0; r < n_rows; ++r) target.push_back(static_cast<double>(random() % 50));
    std::vector<std::uint32_t> order(n_rows);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return target[a] < target[b]; });
    place.resize(n_rows);
    for (std::size_t i = 0; i < n_rows; ++i) {
      place[order[i]] = static_cast<std::uint32_t>(i);
      sorted_target.push_back(target[order[i]]);
    }
  }

  LeafRows rows() const {
    LeafRows found(n_rows);
    for (std::size_t t = 0; t < n_trees; ++t)
      found.add_tree({leaf.data() + t * n_rows, n_rows}, {amount.data() + t * n_rows, n_rows}, n_nodes);
    return found;
  }

  std::vector<double> slow_weights(std::size_t q) const {
    std::vector<double> weight(n_rows, 0.0);
    double n_used = 0;
    for (std::size_t t = 0; t < n_trees; ++t) {
      double total = 0;
      const auto holds = [&](std::size_t r) { return leaf[t * n_rows + r] == query[q * n_trees + t]; };
      for (std::size_t r = 0; r < n_rows; ++r) total += holds(r) ? amount[t * n_rows + r] : 0.0;
      if (total == 0) continue;
      n_used += 1;
      for (std::size_t r = 0; r < n_rows; ++r) weight[r] += holds(r) ? amount[t * n_rows + r] / total : 0.0;
    }
    for (double& w : weight) w = n_used > 0 ? w / n_used : 0.0;
    return weight;
  }
};

}  // namespace

TEST(weights_are_those_of_the_loops) {
  const Case c(131, 9, 20, 200);
  const LeafRows rows = c.rows();
  Interrupt interrupt;
  const LeafRows::Weights found = rows.weights(c.query, 3, interrupt);
  std::vector<double> effective(c.n_queries);
  rows.effective_rows(c.query, 3, interrupt, effective.data());
  CHECK(found.start.size() == c.n_queries + 1);
  CHECK(found.start[1] == 0 && std::isnan(effective[0]));
  for (std::size_t q = 0; q < c.n_queries; ++q) {
    std::vector<double> dense(c.n_rows, 0.0);
    for (std::uint64_t e = found.start[q]; e < found.start[q + 1]; ++e) dense[found.row[e]] = found.weight[e];
    const std::vector<double> slow = c.slow_weights(q);
    double squares = 0;
    for (std::size_t r = 0; r < c.n_rows; ++r) {
      CHECK(std::abs(dense[r] - slow[r]) < 1e-14);
      squares += slow[r] * slow[r];
    }
    if (squares > 0) CHECK(std::abs(effective[q] * squares - 1) < 1e-12);
  }
}

TEST(quantiles_are_the_same_for_any_number_of_threads) {
  const Case c(300, 7, 12, 150);
  const LeafRows rows = c.rows();
  const std::vector<double> levels{0.0, 0.25, 0.5, 1.0};
  Interrupt interrupt;
  std::vector<double> one(c.n_queries * levels.size()), four(one.size());
  rows.quantiles(c.query, c.place, c.sorted_target, levels, 1, interrupt, one.data());
  rows.quantiles(c.query, c.place, c.sorted_target, levels, 4, interrupt, four.data());
  CHECK(std::isnan(one[0]) && std::isnan(four[0]));
  for (std::size_t q = 1; q < c.n_queries; ++q) {
    const std::vector<double> weight = c.slow_weights(q);
    for (std::size_t k = 0; k < levels.size(); ++k) {
      const double found = one[q * levels.size() + k];
      CHECK(found == four[q * levels.size() + k] || std::isnan(found));
      double below = 0, upto = 0;
      for (std::size_t r = 0; r < c.n_rows; ++r) {
        below += c.target[r] < found ? weight[r] : 0.0;
        upto += c.target[r] <= found ? weight[r] : 0.0;
      }
      if (!std::isnan(found)) CHECK(upto >= levels[k] - 1e-9 && (below < levels[k] || below < 1e-9));
    }
  }
}
