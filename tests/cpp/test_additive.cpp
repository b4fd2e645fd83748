// Sums of trees: masks, walks and the definition are bit-identical.
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "base/interrupt.h"
#include "check.h"
#include "predict/additive.h"
#include "predict/link.h"

using namespace spinney;

namespace {

constexpr std::uint32_t n_categories = 700;

// Columns 0 and 1 hold numbers with any number of cuts, column 2 categories. One in `stops` nodes is an early leaf.
void grow(Tree& t, std::mt19937& g, std::uint32_t n_cuts, int depth, std::uint32_t stops) {
  const std::size_t node = t.add_leaf();
  t.value[node] = static_cast<double>(g() % 1000) / 7;
  if (depth == 0 || g() % stops == 0) return;
  t.feature[node] = static_cast<std::int32_t>(g() % 3);
  std::uint8_t flags = g() % 2 ? Tree::missing_left : 0;
  if (t.feature[node] == 2) {
    std::vector<std::uint32_t> left, right;
    for (std::uint32_t c = 0; c < n_categories; ++c) (g() % 3 == 0 ? left : right).push_back(c);
    const bool otherwise_left = g() % 2;
    t.set[node] = add_set(t.sets, left, right, otherwise_left);
    flags |= Tree::category | (otherwise_left ? Tree::default_left : 0);
  } else {
    t.threshold[node] = static_cast<double>(g() % n_cuts);
  }
  t.flags[node] = flags;
  grow(t, g, n_cuts, depth - 1, stops);
  t.right[node] = static_cast<std::uint32_t>(t.size());
  grow(t, g, n_cuts, depth - 1, stops);
}

struct Data {
  std::vector<double> a, b, c;
  Table table;
};

Column column_of(const std::vector<double>& values, std::uint32_t n = 0) {
  Column c;
  c.dtype = DType::f64;
  c.data = reinterpret_cast<const std::byte*>(values.data());
  c.stride = sizeof(double);
  c.n_categories = n;
  return c;
}

void fill(Data& d, std::mt19937& g, std::size_t n_rows, std::uint32_t n_cuts) {
  const auto missing = [&](double v) { return g() % 9 == 0 ? std::nan("") : v; };
  const auto number = [&] {
    if (g() % 20 == 0) return g() % 2 ? HUGE_VAL : -HUGE_VAL;
    return missing(static_cast<double>(g() % (2 * n_cuts)) / 2 - 0.5);
  };
  for (std::size_t r = 0; r < n_rows; ++r) {
    d.a.push_back(number());
    d.b.push_back(number());
    d.c.push_back(missing(static_cast<double>(g() % (n_categories + 1))));
  }
  d.table.n_rows = n_rows;
  d.table.columns = {column_of(d.a), column_of(d.b), column_of(d.c, n_categories)};
}

void compare(std::uint32_t n_cuts, int depth, std::size_t n_outputs, std::size_t n_rows) {
  std::mt19937 g(static_cast<unsigned>(n_cuts + n_rows) + static_cast<unsigned>(depth));
  std::vector<Tree> trees;
  for (std::size_t t = 0; t < 6 * n_outputs; ++t) {
    trees.emplace_back();
    grow(trees.back(), g, n_cuts, depth, depth > 20 ? 2 : t % 2 ? 4 : UINT32_MAX);
  }
  Data d;
  fill(d, g, n_rows, n_cuts);
  Forest forest;
  for (const Tree& t : trees) forest.add(t);
  const Additive additive(forest, n_outputs), quick(std::move(forest), n_outputs);
  Interrupt interrupt;
  quick.prepare_one(interrupt);
  std::vector<double> sums(n_rows * n_outputs, 0.0), walked(n_rows * n_outputs, 0.0);
  additive.add(d.table, 0, trees.size(), 2, interrupt, sums.data());
  quick.add(d.table, 0, trees.size(), 2, interrupt, walked.data());  // up to three rows
  for (std::size_t r = 0; r < n_rows; ++r) {
    const double row[] = {d.a[r], d.b[r], d.c[r]};
    std::vector<double> one(n_outputs, 0.0), prepared(n_outputs, 0.0), expected(n_outputs, 0.0);
    additive.add_one(row, one.data());
    quick.add_one(row, prepared.data());
    for (std::size_t t = 0; t < trees.size(); ++t)
      expected[t % n_outputs] += trees[t].value[resting_node(trees[t], [&](std::uint32_t f) { return row[f]; })];
    for (std::size_t k = 0; k < n_outputs; ++k) {
      CHECK_EQ(one[k], expected[k]);
      CHECK_EQ(prepared[k], expected[k]);
      CHECK_EQ(sums[r * n_outputs + k], expected[k]);
      CHECK_EQ(walked[r * n_outputs + k], expected[k]);
    }
  }
}

}  // namespace

TEST(all_code_paths_are_bit_identical) {
  for (const std::uint32_t n_cuts : {5u, 254u, 255u, 1000u})
    for (const std::size_t n_rows : {1u, 3u, 63u, 300u}) compare(n_cuts, 5, 1, n_rows);
  compare(2000, 5, 3, 2);
  compare(2000, 8, 3, 300);
  compare(2000, 30, 1, 300);  // few leaves, at large depth
  compare(2000, 9, 1, 100);   // more leaves than a byte can number
}

TEST(probabilities_sum_to_one_and_rows_are_independent) {
  const double scores[] = {-800.0, 0.0, 3.0, 1000.0, 1000.0, -1000.0};
  double proba[6], one[3];
  apply_link({LinkKind::softmax}, scores, 2, 3, proba);
  CHECK_NEAR(proba[0] + proba[1] + proba[2], 1.0, 1e-15);
  CHECK_NEAR(proba[3], 0.5, 1e-15);
  apply_link({LinkKind::softmax}, scores + 3, 1, 3, one);
  CHECK_EQ(one[2], proba[5]);
  double two[4];
  const double odds[] = {0.0, 40.0};
  apply_link({LinkKind::logit}, odds, 2, 1, two);
  CHECK_EQ(two[0], 0.5);
  CHECK_EQ(two[2] + two[3], 1.0);
}

TEST(probabilities_of_ordered_classes_sum_to_one_and_are_positive_in_the_tails) {
  const Link link{LinkKind::ordinal, 0, {-1.0, 0.5, 4.0}};
  const double scores[] = {0.0, -50.0, 300.0};
  double proba[12];
  apply_link(link, scores, 3, 1, proba);
  for (std::size_t r = 0; r < 3; ++r) {
    CHECK_NEAR(proba[4 * r] + proba[4 * r + 1] + proba[4 * r + 2] + proba[4 * r + 3], 1.0, 1e-14);
    for (std::size_t k = 0; k < 4; ++k) CHECK(proba[4 * r + k] > 0);
  }
  CHECK_NEAR(proba[0], 1 / (1 + std::exp(1.0)), 1e-15);
  CHECK_NEAR(proba[0] + proba[1], 1 / (1 + std::exp(-0.5)), 1e-15);
}
