// Growth: the same tree by every code path, and every criterion on awkward tables (mainly for the sanitizers).
#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.h"
#include "data/ranks.h"
#include "data/read.h"
#include "learn/cart.h"
#include "learn/forest.h"
#include "predict/forest_walk.h"
#include "predict/walk.h"
#include "tree/validate.h"

using namespace spinney;

struct Sample {
  std::vector<float> numbers;  // 3 columns, row-major, with ties and missing values
  std::vector<double> more;    // 1 column
  std::vector<std::int32_t> categories;
  std::vector<double> y, weight;
  std::vector<std::int32_t> codes;
  Table table;

  explicit Sample(std::size_t n, unsigned seed, int n_classes = 3) {
    std::mt19937 g(seed);
    const auto unit = [&] { return static_cast<double>(g()) * 0x1p-32; };
    for (std::size_t i = 0; i < n; ++i) {
      for (int j = 0; j < 3; ++j)
        numbers.push_back(g() % 9 == 0 ? NAN : static_cast<float>(j == 1 ? static_cast<double>(g() % 5) : unit()));
      more.push_back(g() % 50 == 0 ? INFINITY : unit() - 0.5);
      categories.push_back(static_cast<std::int32_t>(g() % 16) - 1);
      const double signal = (std::isnan(numbers[3 * i]) ? 1.0 : numbers[3 * i]) + (categories[i] % 3 == 0 ? 1.0 : 0.0);
      y.push_back(signal + unit());
      codes.push_back(std::min(n_classes - 1, static_cast<int>(y.back())));
      weight.push_back(g() % 10 == 0 ? 0.0 : unit() + 0.1);
    }
    table.n_rows = n;
    for (int j = 0; j < 3; ++j) table.columns.push_back(view(numbers.data() + j, 12, DType::f32));
    table.columns.push_back(view(more.data(), 8, DType::f64));
    table.columns.push_back(view(categories.data(), 4, DType::i32));
    table.columns.back().n_categories = 15;
  }
  static Column view(const void* data, std::ptrdiff_t stride, DType type) {
    Column c;
    c.data = static_cast<const std::byte*>(data);
    c.stride = stride;
    c.dtype = type;
    return c;
  }
  TargetInput target(Rule rule, bool weighted, int n_classes = 3) const {
    TargetInput in;
    in.n_rows = table.n_rows;
    if (is_class_rule(rule)) {
      in.codes = codes.data();
      in.n_classes = {static_cast<std::uint32_t>(n_classes)};
      static const double two[] = {0, 3, 1, 0}, three[] = {0, 3, 1, 2, 0, 1, 5, 1, 0};
      if (rule == Rule::generalised_gini) in.cost = n_classes == 2 ? two : three;
    } else {
      in.y = y.data();
    }
    if (weighted) in.weight = weight.data();
    return in;
  }
  std::vector<std::uint32_t> kinds() const { return {0, 0, 0, 0, 15}; }
};

static bool equal(const Tree& a, const Tree& b) {
  return a.feature == b.feature && a.threshold == b.threshold && a.right == b.right && a.flags == b.flags &&
         a.set == b.set && a.sets == b.sets && a.impurity == b.impurity && a.weight == b.weight &&
         a.n_rows == b.n_rows && a.value == b.value;
}

static const Rule all_rules[] = {
    Rule::gini,          Rule::entropy,      Rule::misclassification, Rule::chi2,           Rule::gain_ratio,
    Rule::squared_error, Rule::friedman_mse, Rule::poisson,           Rule::absolute_error, Rule::generalised_gini,
    Rule::rate};

static std::vector<double> gains_of_splits(const Tree& t) {
  std::vector<double> gains;
  for (std::size_t i = 0; i < t.size(); ++i)
    if (!t.is_leaf(i))
      gains.push_back(t.weight[i] * t.impurity[i] - t.weight[i + 1] * t.impurity[i + 1] -
                      t.weight[t.right[i]] * t.impurity[t.right[i]]);
  return gains;
}

TEST(an_expensive_column_is_avoided_and_equal_costs_change_nothing) {
  Interrupt interrupt;
  const Sample s(40000, 3, 2);  // large enough for the search by bounds
  for (const Rule rule : {Rule::gini, Rule::entropy, Rule::gain_ratio, Rule::squared_error}) {
    GrowParams p;
    p.max_leaf_nodes = 12;  // best-first: no blocks, so large nodes are searched by bounds
    const Tree free = grow_cart(s.table, s.target(rule, false, 2), rule, p, 0, interrupt).tree;
    p.feature_costs.assign(5, 2.0);
    CHECK(equal(free, grow_cart(s.table, s.target(rule, false, 2), rule, p, 0, interrupt).tree));
    p.feature_costs[0] = 1e9;
    const Tree expensive = grow_cart(s.table, s.target(rule, false, 2), rule, p, 0, interrupt).tree;
    for (std::size_t i = 0; i < expensive.size(); ++i) CHECK(expensive.feature[i] != 0);
    if (rule == Rule::gain_ratio) continue;  // a skipped column would change the average gain
    GrowParams without = p;
    without.feature_costs.clear();
    without.interaction_cst = {{1, 2, 3, 4}};
    CHECK(equal(expensive, grow_cart(s.table, s.target(rule, false, 2), rule, without, 0, interrupt).tree));
  }
}

TEST(competitors_and_surrogates_do_not_depend_on_threads) {
  using Fallback = SurrogateParams::Fallback;
  Interrupt interrupt;
  const Sample s(900, 6);
  for (const Rule rule : {Rule::gini, Rule::entropy, Rule::squared_error, Rule::absolute_error})
    for (const Fallback fallback : {Fallback::majority, Fallback::stop, Fallback::ignore})
      for (const bool rpart : {false, true}) {
        GrowParams p;
        p.max_depth = 5;
        p.surrogate_params.on = p.surrogate_params.present_only = true;
        p.surrogate_params.max_competitors = p.surrogate_params.max_surrogates = 3;
        p.surrogate_params.missing_fallback = fallback;
        p.surrogate_params.rpart = p.surrogate_params.quirks = rpart;
        p.surrogate_params.closed_cuts.assign(5, 0);
        p.surrogate_params.case_weight = s.weight.data();
        const Cart one = grow_cart(s.table, s.target(rule, true), rule, p, 0, interrupt);
        CHECK(find_fault(one.tree, s.kinds()).empty());
        CHECK(one.tree.splits.size() > one.tree.size() / 2);
        p.n_threads = 2;
        const Cart two = grow_cart(s.table, s.target(rule, true), rule, p, 0, interrupt);
        CHECK(equal(one.tree, two.tree));
        CHECK(one.resting_node == two.resting_node);
        CHECK(one.tree.splits.threshold == two.tree.splits.threshold && one.tree.splits.sets == two.tree.splits.sets);
        std::vector<std::uint32_t> leaf(s.table.n_rows);
        Walker(one.tree).apply(s.table, 2, interrupt, leaf.data());
        for (const std::uint32_t node : leaf) CHECK(node < one.tree.size());
      }
}

TEST(a_forest_is_the_same_for_any_number_of_threads) {
  Interrupt interrupt;
  const Sample s(700, 8);
  for (const Rule rule : {Rule::gini, Rule::squared_error})
    for (const std::uint32_t bins : {0u, 20u})
      for (const bool random_cuts : {false, true}) {
        ForestParams p;
        p.tree.max_features = 2;
        p.tree.seed = 5;
        p.tree.random_cuts = random_cuts;
        p.max_bins = bins;
        p.n_trees = 6;
        p.sampling.seed = 9;
        p.sampling.n_units = 700;
        p.sampling.strata.resize(1);
        for (std::uint32_t r = 0; r < 700; ++r) {
          p.sampling.unit_of_row.push_back(r);
          p.sampling.strata[0].push_back(r);
        }
        p.sampling.n_drawn = {700};
        const Forest forest = grow_forest(s.table, s.target(rule, false), rule, p, interrupt);
        p.tree.n_threads = 2;
        const Forest two = grow_forest(s.table, s.target(rule, false), rule, p, interrupt);
        for (std::size_t t = 0; t < 6; ++t) {
          CHECK(equal(forest.tree(t), two.tree(t)));
          CHECK(find_fault(forest.tree(t), s.kinds()).empty());
        }
        const ForestWalker walker(forest);
        const std::size_t width = forest.nodes.value_width;
        std::vector<double> sums(700 * width, 0.0), first(width, 0.0), row(5);
        walker.sum(s.table, 0, 6, {}, 2, interrupt, sums.data(), nullptr);
        for (std::uint32_t f = 0; f < 5; ++f) row[f] = value_at(s.table.columns[f], 0);
        walker.sum_one(row.data(), first.data());
        for (std::size_t k = 0; k < width; ++k) CHECK(sums[k] == first[k]);
      }
}

// Columns of two values: the first few have no missing values, the others do.
static std::vector<float> two_values(std::size_t n, std::size_t n_flags, std::size_t n_gappy) {
  std::mt19937 g(13);
  std::vector<float> values;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t f = 0; f < n_flags + n_gappy; ++f)
      values.push_back(f >= n_flags && g() % 30 == 0 ? NAN : g() % (2 + f % 5 * 9) == 0 ? 3.0f : -1.0f);
  return values;
}

// Forests count ranks if values repeat, single trees sort columns.
static void check_counted_ranks(Rule rule, std::size_t n, std::uint32_t bins, bool limited, std::size_t n_flags = 0,
                                std::size_t n_gappy = 0) {
  Interrupt interrupt;
  Sample s(n, 12);
  s.table.columns.pop_back();
  const std::vector<float> twos = two_values(n, n_flags, n_gappy);
  const std::size_t width = n_flags + n_gappy;
  for (std::size_t f = 0; f < width; ++f)
    s.table.columns.push_back(Sample::view(twos.data() + f, static_cast<std::ptrdiff_t>(4 * width), DType::f32));
  const double many = static_cast<double>(n) / 4, few = static_cast<double>(n) / 40;
  for (std::size_t i = 0; i < 3 * n; ++i)
    s.numbers[i] = static_cast<float>(std::round(s.numbers[i] * (i % 3 == 0 ? many : few)));
  for (double& x : s.more) x = std::round(x * few);
  for (double& w : s.weight) w = std::floor(w * 4);
  const TargetInput target = s.target(rule, limited);
  const std::vector<BinnedColumn> none;
  const RowRanks ranks = make_row_ranks(s.table, none, 0xfffe, 1, interrupt);
  CHECK(ranks.row_bytes > 0);
  CHECK_EQ(ranks.n_flags, std::min<std::size_t>(n_flags, RowRanks::most_flags));
  ForestParams forest;
  forest.tree.max_features = width == 0 ? 2 : 5;
  for (const std::size_t row : {std::size_t{0}, n / 2, n - 1})
    for (std::size_t f = 0; f < std::min<std::size_t>(n_flags, 64); ++f)
      CHECK_EQ(ranks.flags.data()[row] >> ranks.places[4 + f].flag & 1, twos[row * width + f] > 0 ? 1u : 0u);
  forest.tree.min_samples_leaf = limited ? 3 : 1;
  forest.tree.min_weight_leaf = limited ? 4 : 0;
  forest.tree.seed = 5;
  forest.max_bins = bins;
  forest.samples = false;
  forest.n_trees = 2;
  const Forest trees = grow_forest(s.table, target, rule, forest, interrupt);
  GrowParams alone = forest.tree;
  for (std::uint32_t t = 0; t < 2; ++t) {
    alone.seed = tree_key(forest.tree.seed, t);
    CHECK(trees.tree(t).size() > 20);
    CHECK(equal(trees.tree(t), grow_cart(s.table, target, rule, alone, bins, interrupt).tree));
  }
}

TEST(counted_ranks_give_the_trees_of_sorted_columns) {
  for (const Rule rule : {Rule::gini, Rule::entropy, Rule::misclassification, Rule::chi2, Rule::generalised_gini})
    for (const std::size_t n : {400u, 3000u})
      for (const std::uint32_t bins : {0u, 12u})
        for (const bool limited : {false, true}) check_counted_ranks(rule, n, bins, limited);
  check_counted_ranks(Rule::gini, 20000, 0, false);  // more than 4096 ranks
}

TEST(flags_give_the_trees_of_sorted_columns) {
  for (const Rule rule : {Rule::gini, Rule::entropy})
    for (const std::uint32_t bins : {0u, 12u})
      for (const bool limited : {false, true}) {
        check_counted_ranks(rule, 400, bins, limited, 6);
        check_counted_ranks(rule, 1500, bins, limited, 70, 10);  // more than fit in a word
      }
  check_counted_ranks(Rule::gini, 13000, 0, false, 3, 120);  // too many rows for the cache
  check_counted_ranks(Rule::gini, 13000, 12, false, 3, 120);
  check_counted_ranks(Rule::gini, 1000, 0, false, 3, 300);  // rows too long for copies
}

TEST(a_table_of_flags_alone_gives_the_trees_of_sorted_columns) {
  Interrupt interrupt;
  const std::size_t n = 900, width = 8;
  Sample s(n, 15);
  const std::vector<float> twos = two_values(n, width, 0);
  s.table.columns.clear();
  for (std::size_t f = 0; f < width; ++f)
    s.table.columns.push_back(Sample::view(twos.data() + f, 4 * width, DType::f32));
  ForestParams forest;
  forest.tree.max_features = 3;
  forest.samples = false;
  forest.n_trees = 1;
  const TargetInput target = s.target(Rule::gini, false);
  const Forest trees = grow_forest(s.table, target, Rule::gini, forest, interrupt);
  GrowParams alone = forest.tree;
  alone.seed = tree_key(forest.tree.seed, 0);
  CHECK(trees.tree(0).size() > 20);
  CHECK(equal(trees.tree(0), grow_cart(s.table, target, Rule::gini, alone, 0, interrupt).tree));
}

// A minimum weight that every cut satisfies selects the limited search, which scores column by column.
TEST(cuts_scored_together_are_those_of_column_by_column) {
  Interrupt interrupt;
  const Sample s(3000, 14, 2);
  for (const Rule rule : {Rule::squared_error, Rule::friedman_mse, Rule::gini, Rule::chi2})
    for (const bool weighted : {false, true})
      for (const std::uint32_t max_features : {2u, 5u})
        for (const std::uint32_t bins : {0u, 12u})
          for (const Row min_leaf : {Row{1}, Row{4}}) {
            const TargetInput target = s.target(rule, weighted, 2);
            ForestParams forest;
            forest.tree.max_features = max_features;
            forest.tree.min_samples_leaf = min_leaf;
            forest.tree.seed = 6;
            forest.max_bins = bins;
            forest.samples = false;
            forest.n_trees = 1;
            const Forest together = grow_forest(s.table, target, rule, forest, interrupt);
            forest.tree.min_weight_leaf = 1e-12;
            const Forest apart = grow_forest(s.table, target, rule, forest, interrupt);
            CHECK(together.tree(0).size() > 100);
            CHECK(equal(together.tree(0), apart.tree(0)));
          }
}

TEST(random_cuts_from_keys_are_those_from_values) {
  const Sample s(2000, 11);
  Interrupt interrupt;
  for (const Rule rule : all_rules)
    for (const std::uint32_t max_features : {2u, 5u}) {
      ForestParams forest;
      forest.tree.random_cuts = true;
      forest.tree.max_features = max_features;
      forest.tree.min_samples_leaf = max_features == 5 ? 3 : 1;
      forest.tree.seed = 5;
      forest.samples = false;
      forest.n_trees = 2;
      const TargetInput target = s.target(rule, max_features == 5);
      const Forest trees = grow_forest(s.table, target, rule, forest, interrupt);
      GrowParams alone = forest.tree;
      for (std::uint32_t t = 0; t < 2; ++t) {
        alone.seed = tree_key(forest.tree.seed, t);
        CHECK(trees.tree(t).size() > 100);
        CHECK(equal(trees.tree(t), grow_cart(s.table, target, rule, alone, 0, interrupt).tree));
      }
    }
}

// The sums over trees one row at a time, directly from the trees.
static std::vector<double> plain_sums(const Forest& forest, const Table& table) {
  std::vector<double> sums(table.n_rows * forest.nodes.value_width, 0.0);
  for (Row r = 0; r < table.n_rows; ++r)
    for (std::size_t t = 0; t < forest.n_trees(); ++t) {
      std::uint32_t at = forest.root[t];
      const auto value = [&](std::uint32_t f) { return value_at(table.columns[f], r); };
      while (!forest.nodes.is_leaf(at)) at = next_node(forest.nodes, at, value);
      for (std::size_t k = 0; k < forest.nodes.value_width; ++k)
        sums[r * forest.nodes.value_width + k] += forest.nodes.value_of(at)[k];
    }
  return sums;
}

static void check_all_prediction_paths(const Forest& forest, const Table& table) {
  Interrupt interrupt;
  const std::vector<double> expected = plain_sums(forest, table);
  const std::size_t width = forest.nodes.value_width, n_trees = forest.n_trees();
  std::vector<std::vector<std::uint32_t>> leaves;
  for (const bool prepared : {false, true}) {
    const ForestWalker walker(forest);
    if (prepared) walker.prepare(2, interrupt);
    for (const int n_threads : {1, 2}) {
      std::vector<double> sums(expected.size(), 0.0);
      walker.sum(table, 0, n_trees, {}, n_threads, interrupt, sums.data(), nullptr);
      CHECK(sums == expected);
    }
    leaves.emplace_back(table.n_rows * n_trees);
    walker.apply(table, 2, interrupt, leaves.back().data());
    std::vector<double> row(table.n_columns());
    for (Row r = 0; r < std::min<std::size_t>(200, table.n_rows); ++r) {
      for (std::size_t f = 0; f < row.size(); ++f) row[f] = value_at(table.columns[f], r);
      std::vector<double> one(width, 0.0);
      walker.sum_one(row.data(), one.data());
      CHECK(std::equal(one.begin(), one.end(), expected.begin() + static_cast<std::ptrdiff_t>(r * width)));
    }
  }
  CHECK(leaves[0] == leaves[1]);
}

TEST(all_prediction_paths_are_bit_identical) {
  const Sample s(2500, 12);
  Interrupt interrupt;
  for (const Rule rule : {Rule::gini, Rule::squared_error})
    for (const std::size_t n_columns : {4u, 5u}) {  // without and with categories
      Table table = s.table;
      table.columns.resize(n_columns);
      ForestParams params;
      params.tree.max_features = 2;
      params.samples = false;
      params.n_trees = 19;
      const Forest forest = grow_forest(table, s.target(rule, false), rule, params, interrupt);
      check_all_prediction_paths(forest, table);
      for (Column& c : table.columns)  // a few rows without missing values
        c.data += 7 * c.stride;
      table.n_rows = 3;
      check_all_prediction_paths(forest, table);
    }
  Forest stumps;
  Tree leaf;
  leaf.value[leaf.add_leaf()] = 2.5;
  stumps.add(leaf);
  check_all_prediction_paths(stumps, s.table);
}

TEST(generalised_gini_of_equal_costs_is_gini) {
  Interrupt interrupt;
  for (const int n_classes : {2, 3}) {
    const Sample s(700, 4, n_classes);
    const std::vector<double> ones(9, 1.0);
    TargetInput in = s.target(Rule::generalised_gini, true, n_classes);
    in.cost = ones.data();
    GrowParams p;
    p.max_depth = 3;
    const Tree a = grow_cart(s.table, in, Rule::generalised_gini, p, 0, interrupt).tree;
    const Tree b = grow_cart(s.table, s.target(Rule::gini, true, n_classes), Rule::gini, p, 0, interrupt).tree;
    CHECK(a.feature == b.feature && a.threshold == b.threshold && a.value == b.value);
    const std::vector<double> gains = gains_of_splits(a), expected = gains_of_splits(b);
    for (std::size_t i = 0; i < gains.size(); ++i) CHECK(std::abs(gains[i] - expected[i]) < 1e-9);
  }
}

TEST(every_criterion_grows_a_sound_tree_the_same_on_any_number_of_threads) {
  Interrupt interrupt;
  for (const int n_classes : {2, 3}) {
    const Sample s(500, 1, n_classes);
    for (const Rule rule : all_rules)
      for (const bool weighted : {false, true})
        for (int style = 0; style < 4; ++style) {
          GrowParams p;
          p.random_cuts = style == 1;
          p.max_leaf_nodes = style == 2 ? 20 : 0;
          p.max_features = style == 3 ? 2 : UINT32_MAX;
          p.n_threads = 1;
          const Tree one = grow_cart(s.table, s.target(rule, weighted, n_classes), rule, p, 0, interrupt).tree;
          CHECK_EQ(find_fault(one, s.kinds()), std::string());
          CHECK(one.size() > 10);
          p.n_threads = 3;
          CHECK(equal(one, grow_cart(s.table, s.target(rule, weighted, n_classes), rule, p, 0, interrupt).tree));
        }
  }
}

// Best-first without a limit visits the same nodes by another code path: columns sorted at every node, no block.
TEST(blocks_equal_sorting_at_every_node) {
  Interrupt interrupt;
  for (unsigned seed = 0; seed < 4; ++seed) {
    const Sample s(1000, seed);
    for (const Rule rule : {Rule::gini, Rule::entropy, Rule::squared_error, Rule::poisson})
      for (const bool weighted : {false, true})
        for (const std::uint32_t bins : {0u, 20u}) {
          GrowParams p;
          p.min_samples_leaf = 1 + seed;
          const Tree block = grow_cart(s.table, s.target(rule, weighted), rule, p, bins, interrupt).tree;
          p.max_leaf_nodes = 1000000;
          CHECK(equal(block, grow_cart(s.table, s.target(rule, weighted), rule, p, bins, interrupt).tree));
        }
  }
}

// 60,000 rows fit one block; best-first growth searches its large nodes by bounds instead.
TEST(search_by_bounds_equals_sorting_all_rows) {
  Interrupt interrupt;
  const Sample s(60000, 9, 2);
  for (const Rule rule : {Rule::gini, Rule::entropy, Rule::misclassification, Rule::chi2, Rule::gain_ratio,
                          Rule::squared_error, Rule::friedman_mse})
    for (const bool weighted : {false, true}) {
      GrowParams p;
      p.max_depth = 4;
      p.min_samples_leaf = weighted ? 1 : 100;
      const Tree block = grow_cart(s.table, s.target(rule, weighted, 2), rule, p, 0, interrupt).tree;
      p.max_leaf_nodes = 1000000;
      CHECK(equal(block, grow_cart(s.table, s.target(rule, weighted, 2), rule, p, 0, interrupt).tree));
    }
}

TEST(large_nodes_split_like_blocks) {  // 70,000 rows do not fit a block
  Interrupt interrupt;
  const Sample s(70000, 3);
  GrowParams p;
  p.max_depth = 4;
  for (const std::uint32_t bins : {0u, 50u}) {
    const Tree a = grow_cart(s.table, s.target(Rule::gini, false), Rule::gini, p, bins, interrupt).tree;
    CHECK(a.size() > 8);
    p.n_threads = 2;
    CHECK(equal(a, grow_cart(s.table, s.target(Rule::gini, false), Rule::gini, p, bins, interrupt).tree));
    p.n_threads = 1;
  }
}

static double evaluate_squares(const double* y, const double* w, std::intptr_t n, double* value, void*) {
  double weight = 0, sum = 0, risk = 0;
  for (std::intptr_t i = 0; i < n; ++i) {
    weight += w[i];
    sum += w[i] * y[i];
  }
  value[0] = sum / weight;
  for (std::intptr_t i = 0; i < n; ++i) risk += w[i] * (y[i] - value[0]) * (y[i] - value[0]);
  return risk;
}

static void split_squares(const double* y, const double* w, std::intptr_t n, double* goodness, void* n_calls) {
  double weight = 0, sum = 0, wl = 0, sl = 0;
  for (std::intptr_t i = 0; i < n; ++i) {
    weight += w[i];
    sum += w[i] * y[i];
  }
  for (std::intptr_t i = 0; i + 1 < n; ++i) {
    wl += w[i];
    sl += w[i] * y[i];
    const double d = sl * weight - sum * wl;
    goodness[i] = d * d / (weight * wl * (weight - wl));
  }
  ++*static_cast<std::atomic<int>*>(n_calls);
}

TEST(squared_errors_by_the_users_own_functions_give_the_built_in_tree) {
  Interrupt interrupt;
  std::atomic<int> n_calls = 0;
  const CompiledCriterion user(evaluate_squares, nullptr, split_squares, &n_calls, 1, 1);
  for (int style = 0; style < 5; ++style)
    for (const bool weighted : {false, true}) {
      const Sample s(style == 4 ? 70000 : 900, 11);
      GrowParams p;
      p.min_samples_leaf = 5;
      p.random_cuts = style == 1;
      p.max_leaf_nodes = style == 2 ? 20 : 0;
      p.max_features = style == 3 ? 2 : UINT32_MAX;
      p.max_depth = style == 4 ? 5 : UINT32_MAX;
      TargetInput input = s.target(Rule::squared_error, weighted);
      const Tree built_in = grow_cart(s.table, input, Rule::squared_error, p, 0, interrupt).tree;
      input.user = &user;
      const Tree one = grow_cart(s.table, input, Rule::user, p, 0, interrupt).tree;
      CHECK_EQ(find_fault(one, s.kinds()), std::string());
      CHECK(one.size() > 20);
      CHECK(one.feature == built_in.feature && one.threshold == built_in.threshold && one.n_rows == built_in.n_rows);
      CHECK(one.sets == built_in.sets && one.flags == built_in.flags);
      p.n_threads = 3;
      CHECK(equal(one, grow_cart(s.table, input, Rule::user, p, 0, interrupt).tree));
    }
  CHECK(n_calls > 100);
}

TEST(an_invalid_risk_is_refused_on_any_thread) {
  Interrupt interrupt;
  const Sample s(900, 12);
  const CompiledCriterion user(
      [](const double*, const double*, std::intptr_t n, double* value, void*) {
        value[0] = 1;
        return n < 50 ? std::nan("") : 1.0;
      },
      nullptr,
      [](const double*, const double*, std::intptr_t n, double* goodness, void*) {
        for (std::intptr_t i = 0; i + 1 < n; ++i) goodness[i] = 1;
      },
      nullptr, 1, 1);
  TargetInput input = s.target(Rule::squared_error, false);
  input.user = &user;
  GrowParams p;
  p.n_threads = 3;
  CHECK_THROWS(grow_cart(s.table, input, Rule::user, p, 0, interrupt), std::invalid_argument);
}

TEST(training_rows_reach_leaves_of_the_counted_size) {
  Interrupt interrupt;
  const Sample s(2000, 4);
  for (const std::uint32_t bins : {0u, 7u}) {
    const Tree t = grow_cart(s.table, s.target(Rule::gini, false), Rule::gini, GrowParams{}, bins, interrupt).tree;
    std::vector<std::uint32_t> leaf(s.table.n_rows), count(t.size(), 0);
    Walker(t).apply(s.table, 2, interrupt, leaf.data());
    for (const std::uint32_t l : leaf) ++count[l];
    for (std::size_t i = 0; i < t.size(); ++i)
      if (t.is_leaf(i)) CHECK_EQ(count[i], t.n_rows[i]);
  }
}

TEST(an_interrupt_stops_growth) {
  Interrupt interrupt;
  interrupt.request();
  const Sample s(500, 5);
  CHECK_THROWS(grow_cart(s.table, s.target(Rule::gini, false), Rule::gini, GrowParams{}, 0, interrupt), Interrupted);
}
