// Out-of-bag sums and permutation, compared with walks of whole rows, on numbers, categories and missing values.
#include <cmath>
#include <random>
#include <vector>

#include "check.h"
#include "data/read.h"
#include "predict/importance.h"

using namespace spinney;

static Tree three_splits() {  // number, category, number again; then a tree with one leaf
  Tree t;
  t.value_width = 1;
  for (int i = 0; i < 7; ++i) {
    t.add_leaf();
    t.value_of(static_cast<std::size_t>(i))[0] = i * i;
  }
  const std::vector<std::uint32_t> left{0, 3}, right{1, 2};
  t.feature = {0, 1, -1, 0, -1, -1, -1};
  t.right = {6, 3, 0, 5, 0, 0, 0};
  t.threshold[0] = 0.5;
  t.threshold[3] = 0.2;
  t.flags[0] = Tree::missing_left;
  t.flags[1] = Tree::category;
  t.set[1] = add_set(t.sets, left, right, false);
  return t;
}

struct Rows {
  std::vector<double> numbers, y, weight;
  std::vector<std::int32_t> categories;
  Table table;
  Sampling sampling;

  explicit Rows(std::uint32_t n) {
    std::mt19937 g(3);
    sampling.strata.resize(1);
    for (std::uint32_t i = 0; i < n; ++i) {
      numbers.push_back(g() % 7 == 0 ? NAN : static_cast<double>(g() % 100) / 100);
      categories.push_back(static_cast<std::int32_t>(g() % 5) - 1);
      y.push_back(static_cast<double>(g() % 9));
      weight.push_back(g() % 5 == 0 ? 0.0 : 1.5);
      sampling.unit_of_row.push_back(i);
      sampling.strata[0].push_back(i);
    }
    sampling.n_units = n;
    sampling.n_drawn = {n};
    table.n_rows = n;
    Column number, category;
    number.data = reinterpret_cast<const std::byte*>(numbers.data());
    number.stride = 8;
    category.data = reinterpret_cast<const std::byte*>(categories.data());
    category.stride = 4;
    category.dtype = DType::i32;
    category.n_categories = 4;
    table.columns = {number, category};
  }
};

static Forest small_forest() {
  Forest forest;
  Tree leaf;
  leaf.value_width = 1;
  leaf.add_leaf();
  for (int i = 0; i < 5; ++i) forest.add(three_splits());
  forest.add(leaf);
  return forest;
}

TEST(sums_are_those_of_the_rows_that_pass) {
  Interrupt interrupt;
  const Rows rows(301);
  const Forest forest = small_forest();
  EvaluationRows evaluated{rows.table, rows.sampling};
  evaluated.numbers = rows.y.data();
  evaluated.weight = rows.weight.data();
  std::vector<double> weight(forest.nodes.size(), 0.0);
  std::vector<std::uint32_t> units, counts(301);
  for (std::uint32_t t = 0; t < forest.n_trees(); ++t) {
    draw_counts(rows.sampling, t, units, counts);
    for (Row r = 0; r < 301; ++r) {
      if (counts[r] > 0) continue;
      std::uint32_t at = forest.root[t];
      weight[at] += rows.weight[r];
      while (!forest.nodes.is_leaf(at)) {
        at = next_node(forest.nodes, at, [&](std::uint32_t f) { return value_at(rows.table.columns[f], r); });
        weight[at] += rows.weight[r];
      }
    }
  }
  for (const int n_threads : {1, 3}) CHECK(out_of_bag_sums(forest, evaluated, n_threads, interrupt).weight == weight);
}

TEST(rises_are_the_same_for_any_number_of_threads) {
  Interrupt interrupt;
  const Rows rows(301);
  const Forest forest = small_forest();
  EvaluationRows evaluated{rows.table, rows.sampling};
  evaluated.numbers = rows.y.data();
  PermutationRequest request;
  request.groups = {{0}, {1}, {0, 1}};
  request.n_repeats = 3;
  request.by_row = true;
  const PermutationRises one = permutation_increases(forest, evaluated, request, 1, interrupt);
  const PermutationRises two = permutation_increases(forest, evaluated, request, 3, interrupt);
  CHECK(one.rise == two.rise && one.loss == two.loss);
  CHECK(one.row_rise == two.row_rise && one.row_trees == two.row_trees);
  for (std::size_t g = 0; g < 3; ++g) {
    CHECK(one.rise[g] != 0);
    CHECK(one.rise[5 * 3 + g] == 0);  // a leaf tests nothing
  }
}
