#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "check.h"
#include "predict/jackknife.h"

using namespace spinney;

// The ends by sorting all scores, for any number of rows, trees and threads.
static void compare(std::size_t n_rows, std::size_t n_trees, bool weighted, double needed) {
  std::mt19937 random(5);
  Errors errors;
  errors.n_trees = n_trees;
  std::vector<std::uint8_t> unseen(n_rows * errors.n_bytes(), 0);
  std::vector<double> error(n_rows), weight(n_rows), by_tree(3 * n_trees);
  for (std::size_t i = 0; i < n_rows; ++i) {
    const std::size_t always = random() % n_trees;
    for (std::size_t t = 0; t < n_trees; ++t)
      if (t == always || random() % 3 == 0) unseen[t / 8 * n_rows + i] |= static_cast<std::uint8_t>(1u << (t % 8));
    error[i] = static_cast<double>(random() % 16) / 8;
    weight[i] = weighted ? static_cast<double>(random() % 3) : 1.0;
  }
  for (double& value : by_tree) value = static_cast<double>(random() % 32) / 8 - 2;
  errors.unseen = unseen;
  errors.error = error;
  if (weighted) errors.weight = weight;
  errors.needed = needed;
  Interrupt interrupt;
  std::vector<double> one(6), four(6);
  jackknife_plus(errors, by_tree, 1, interrupt, one.data());
  jackknife_plus(errors, by_tree, 4, interrupt, four.data());
  for (std::size_t q = 0; q < 3; ++q) {
    std::vector<std::pair<double, double>> low, high;
    for (std::size_t i = 0; i < n_rows; ++i) {
      double sum = 0, n = 0;
      for (std::size_t t = 0; t < n_trees; ++t)
        if (unseen[t / 8 * n_rows + i] >> (t % 8) & 1) sum += by_tree[q * n_trees + t], n += 1;
      low.push_back({error[i] - sum / n, weight[i]});
      high.push_back({error[i] + sum / n, weight[i]});
    }
    const auto end = [&](std::vector<std::pair<double, double>>& scores) {
      std::sort(scores.begin(), scores.end());
      double below = 0;
      for (const auto& [score, w] : scores)
        if ((below += w) >= needed) return score;
      return std::numeric_limits<double>::infinity();
    };
    const double expected[] = {-end(low), end(high)};
    for (std::size_t side = 0; side < 2; ++side) {
      const double found = one[q * 2 + side];
      CHECK_EQ(found, four[q * 2 + side]);
      CHECK(found == expected[side] || std::abs(found - expected[side]) < 1e-12);
    }
  }
}

TEST(ends_are_those_of_sorted_scores) {
  for (const std::size_t n_rows : {1u, 2u, 300u, 5000u})
    for (const std::size_t n_trees : {1u, 7u, 8u, 21u, 45u})
      for (const bool weighted : {false, true})
        for (const double fraction : {0.0, 0.1, 0.9, 1.0, 1.2})
          compare(n_rows, n_trees, weighted, std::max(1.0, std::floor(fraction * static_cast<double>(n_rows))));
}
