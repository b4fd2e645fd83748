// Shapley values: the quadrature is exact, and all walks are bit-identical.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "base/interrupt.h"
#include "check.h"
#include "every_isa.h"
#include "predict/quadrature.h"
#include "predict/shap.h"
#include "predict/shap_prepare.h"
#include "predict/shap_tree.h"

using namespace spinney;

static std::vector<const ShapKernels*> available() {
  return of_every_isa([](auto isa) { return &shap_kernels_of(isa); });
}

// Grows a random subtree and returns its weight. Few columns, so that they repeat on a path.
static double grow(Tree& t, std::mt19937& g, int depth, bool stops) {
  const std::size_t node = t.add_leaf();
  for (double& v : t.value_of(node)) v = static_cast<double>(g() % 1000) / 100;
  if (depth == 0 || g() % 8 == 0) return t.weight[node] = 1 + g() % 20;
  t.feature[node] = static_cast<std::int32_t>(g() % 5);
  t.threshold[node] = static_cast<double>(g() % 10);
  t.flags[node] = (g() % 2 ? Tree::missing_left : 0) | (g() % 6 == 0 && stops ? Tree::stops : 0);
  const double left = grow(t, g, depth - 1, stops);
  t.right[node] = static_cast<std::uint32_t>(t.size());
  return t.weight[node] = left + grow(t, g, depth - 1, stops) + (t.flags[node] & Tree::stops ? 3 : 0);
}

static Tree random_tree(unsigned seed, std::uint32_t width, int depth, bool stops = true) {
  std::mt19937 g(seed);
  Tree t;
  t.value_width = width;
  grow(t, g, depth, stops);
  return t;
}

TEST(quadrature_integrates_polynomials) {
  for (const std::size_t n : {1u, 2u, 3u, 8u, 16u, 40u}) {
    const Quadrature rule = gauss_legendre(n);
    CHECK_EQ(rule.size(), n);
    for (std::size_t power = 0; power < 2 * n; ++power) {
      double sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum += rule.weight[k] * std::pow(rule.t[k], static_cast<double>(power));
      CHECK_NEAR(sum * static_cast<double>(power + 1), 1.0, 1e-12);
    }
  }
}

TEST(all_walks_are_bit_identical) {
  std::mt19937 g(7);
  std::vector<ShapLanes> x(5);
  for (ShapLanes& column : x)
    for (double& v : column.of) v = g() % 9 == 0 ? NAN : static_cast<double>(g() % 10);
  for (const std::uint32_t width : {1u, 3u})
    for (const int depth : {1, 3, 7, -7}) {  // negative: no row stops at a split
      const Tree t = random_tree(static_cast<unsigned>(std::abs(depth)), width, std::abs(depth), depth > 0);
      const std::vector<std::uint32_t> root{0, static_cast<std::uint32_t>(t.size())};
      const SummedTrees trees{t, root};
      const ShapPreparation prepared(trees);
      if (prepared.used.empty()) continue;
      const std::size_t n = prepared.used.size();
      std::vector<ShapLanes> values(width * n), pairs(width * n * n);
      bool first = true;
      for (const ShapKernels* k : available())
        for (const std::size_t most_bytes : {std::size_t{0}, std::size_t{1} << 30})
          for (const bool with_pairs : {true, false}) {
            const ShapTree tree = prepared.tree(0, most_bytes, most_bytes);
            CHECK_EQ(tree.constants.empty(), most_bytes == 0);
            ShapScratch scratch;
            scratch.fit(tree, with_pairs);
            std::vector<ShapLanes> v(values.size(), ShapLanes{}), p(pairs.size(), ShapLanes{});
            k->explain(tree, x.data(), nullptr, n, scratch, v.data(), with_pairs ? p.data() : nullptr);
            if (first) values = v, pairs = p;
            first = false;
            CHECK(std::memcmp(v.data(), values.data(), v.size() * sizeof(ShapLanes)) == 0);
            if (with_pairs) CHECK(std::memcmp(p.data(), pairs.data(), p.size() * sizeof(ShapLanes)) == 0);
          }
    }
}

TEST(trees_may_take_turns) {
  Tree both;
  std::vector<std::uint32_t> root{0};
  for (unsigned i = 0; i < 4; ++i) {
    both.append(random_tree(i + 1, 1, 4));
    root.push_back(static_cast<std::uint32_t>(both.size()));
  }
  std::vector<double> numbers;
  for (int i = 0; i < 30 * 5; ++i) numbers.push_back(i * 7 % 10);
  Table table;
  table.n_rows = 30;
  for (std::size_t j = 0; j < 5; ++j) {
    Column c;
    c.data = reinterpret_cast<const std::byte*>(numbers.data() + j * 30);
    c.stride = sizeof(double);
    table.columns.push_back(c);
  }
  Interrupt interrupt;
  std::vector<double> turns(30 * 5 * 2, 0.0);
  shap_values({both, root, 0.5, 2}, table, nullptr, 2, interrupt, turns.data(), nullptr);
  const std::vector<double> base = shap_base_value({both, root, 0.5, 2}, nullptr);
  for (std::size_t r = 0; r < 30; ++r)
    for (std::size_t output = 0; output < 2; ++output) {
      double expected = 0, found = base[output];
      for (std::size_t t = output; t < 4; t += 2) {
        std::uint32_t at = root[t];
        while (!both.is_leaf(at)) at = next_node(both, at, [&](std::uint32_t f) { return numbers[f * 30 + r]; });
        expected += 0.5 * both.value[at];
      }
      for (std::size_t j = 0; j < 5; ++j) found += turns[(r * 5 + j) * 2 + output];
      CHECK_NEAR(found, expected, 1e-12);
    }
}
