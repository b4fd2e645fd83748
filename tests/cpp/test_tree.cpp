// Finished trees: sets, validation, pruning, walking.
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "check.h"
#include "predict/walk.h"
#include "tree/forest.h"
#include "tree/prune.h"
#include "tree/tree.h"
#include "tree/validate.h"

using namespace spinney;

//        0: x0 <= 1
//   1: leaf     2: x1 in {3, 40}
//            3: leaf    4: leaf
static Tree small_tree() {
  Tree t;
  for (int i = 0; i < 5; ++i) {
    const std::size_t at = t.add_leaf();
    t.value_of(at)[0] = i;
    t.weight[at] = 1;
  }
  t.feature[0] = 0;
  t.threshold[0] = 1;
  t.right[0] = 2;
  t.feature[2] = 1;
  t.right[2] = 4;
  t.flags[2] = Tree::category | Tree::missing_left;
  const std::vector<std::uint32_t> left{3, 40}, right{0, 7};
  t.set[2] = add_set(t.sets, left, right, false);
  return t;
}

static const std::vector<std::uint32_t> kinds{0, 50};

TEST(sets_agree_as_bits_and_as_lists) {
  for (const bool otherwise_left : {false, true})
    for (const std::uint32_t gap : {1u, 500u}) {  // close codes become bits, distant ones a list
      std::vector<std::uint32_t> left, right, sets;
      for (std::uint32_t i = 0; i < 40; ++i) (i % 3 ? left : right).push_back(i * gap);
      const std::uint32_t begin = add_set(sets, left, right, otherwise_left);
      CHECK_EQ((sets[begin] & Tree::list_mark) != 0, gap > 1);
      for (const std::uint32_t c : left) CHECK(category_goes_left(sets.data() + begin, otherwise_left, c));
      for (const std::uint32_t c : right) CHECK(!category_goes_left(sets.data() + begin, otherwise_left, c));
      CHECK_EQ(category_goes_left(sets.data() + begin, otherwise_left, 1000000), otherwise_left);
    }
}

TEST(walks_follow_the_splits) {
  const Tree t = small_tree();
  const Walker walker(t);
  const double nan = std::nan("");
  const double rows[][2] = {{0.5, 3}, {1.0, 3}, {2, 3}, {2, 40}, {2, 7}, {2, 49}, {2, nan}, {nan, 0}};
  const std::uint32_t leaf[] = {1, 1, 3, 3, 4, 4, 3, 4};
  for (std::size_t i = 0; i < std::size(leaf); ++i) CHECK_EQ(walker.apply_one(rows[i]), leaf[i]);
}

TEST(a_sound_tree_passes) { CHECK_EQ(find_fault(small_tree(), kinds), std::string()); }

TEST(every_fault_is_found) {
  const std::vector<std::function<void(Tree&)>> faults{
      [](Tree& t) { t.right[0] = 1; },
      [](Tree& t) { t.right[0] = 0; },
      [](Tree& t) { t.right[0] = 4; },
      [](Tree& t) { t.right[2] = 5; },
      [](Tree& t) { t.right[2] = 3; },
      [](Tree& t) { t.feature[4] = 0; },
      [](Tree& t) { t.feature[1] = 0; },
      [](Tree& t) { t.feature[2] = -7; },
      [](Tree& t) { t.feature[0] = 2; },
      [](Tree& t) { t.feature[0] = 1; },
      [](Tree& t) { t.threshold[0] = std::nan(""); },
      [](Tree& t) { t.flags[0] = 2; },
      [](Tree& t) { t.flags[2] = 64; },
      [](Tree& t) { t.set[2] = 1000; },
      [](Tree& t) { t.sets[t.set[2]] = 1000; },
      [](Tree& t) { t.sets[t.set[2]] = Tree::list_mark | 1000; },
      [](Tree& t) { t.sets[t.set[2]] = Tree::list_mark | 1, t.sets[t.set[2] + 1] = 50; },  // a category too many
      [](Tree& t) { t.sets = {3, 0, 0, 0}, t.set[2] = 0; },
      [](Tree& t) { t.threshold[2] = std::nan(""); },
      [](Tree& t) { t.sets.clear(); },
      [](Tree& t) { t.value[1] = std::numeric_limits<double>::infinity(); },
      [](Tree& t) { t.weight[3] = -1; },
      [](Tree& t) { t.impurity[3] = std::nan(""); },
      [](Tree& t) { t.value.pop_back(); },
      [](Tree& t) { t.threshold.pop_back(); },
      [](Tree& t) { t.value_width = 0; },
      [](Tree& t) { t = Tree(); },
  };
  for (std::size_t i = 0; i < faults.size(); ++i) {
    Tree t = small_tree();
    faults[i](t);
    if (find_fault(t, kinds).empty()) std::fprintf(stderr, "fault %zu was not found\n", i);
    CHECK(!find_fault(t, kinds).empty());
  }
}

// Root 100 A / 100 B; t2 = 90 A 60 B (80 A | t5 = 10 A 60 B: 60 B | 10 A); t3 = 10 A 40 B (10 A | 40 B).
static Tree worked_example() {
  Tree t;
  const double error[] = {.5, .4, 0, 10.0 / 70, 0, 0, .2, 0, 0}, weight[] = {200, 150, 80, 70, 60, 10, 50, 10, 40};
  for (int i = 0; i < 9; ++i) {
    const std::size_t at = t.add_leaf();
    t.impurity[at] = error[i];
    t.weight[at] = weight[i];
  }
  for (const auto& [node, right] : {std::pair{0, 6}, {1, 3}, {3, 5}, {6, 8}}) {
    t.feature[static_cast<std::size_t>(node)] = 0;
    t.right[static_cast<std::size_t>(node)] = static_cast<std::uint32_t>(right);
  }
  return t;
}

// A tree of n_splits splits down one side; every fourth is on categories.
static Tree long_tree(std::uint32_t n_splits, std::uint32_t width) {
  Tree t;
  t.value_width = width;
  for (std::uint32_t i = 0; i <= 2 * n_splits; ++i) {
    const std::size_t at = t.add_leaf();
    for (std::uint32_t k = 0; k < width; ++k) t.value_of(at)[k] = i + 0.25 * k;
    t.weight[at] = i;
    t.impurity[at] = 1.0 / (1 + i);
    t.n_rows[at] = i + 7;
    if (i % 2 == 1 || i == 2 * n_splits) continue;
    t.feature[at] = static_cast<std::int32_t>(i % 5);
    t.threshold[at] = i / 3.0;
    t.right[at] = i + 2;
    if (i % 8 != 0) continue;
    t.flags[at] = Tree::category;
    t.set[at] = add_set(t.sets, std::vector<std::uint32_t>{i}, std::vector<std::uint32_t>{i + 1}, false);
  }
  return t;
}

TEST(buffered_trees_make_up_the_forest) {
  for (const std::uint32_t width : {1u, 3u})
    for (const int n_threads : {1, 2}) {
      Forest expected;
      std::vector<TreeBuffer> buffers(2);
      std::vector<BufferedTree> buffered;
      // the last ones are longer than a memory block
      for (const std::uint32_t n_splits : {0u, 1u, 2u, 100u, 5u, 3000u, 1u, 400u, 90000u, 7u, 70000u}) {
        const Tree t = long_tree(n_splits, width);
        expected.add(t);
        buffered.push_back(buffers[n_splits % 2].add(t));
      }
      const Forest got = Forest::join(std::move(buffered), n_threads);
      CHECK(got.root == expected.root);
      CHECK_EQ(got.nodes.value_width, width);
      CHECK(got.nodes.feature == expected.nodes.feature);
      CHECK(got.nodes.threshold == expected.nodes.threshold);
      CHECK(got.nodes.right == expected.nodes.right);
      CHECK(got.nodes.flags == expected.nodes.flags);
      CHECK(got.nodes.set == expected.nodes.set);
      CHECK(got.nodes.sets == expected.nodes.sets);
      CHECK(got.nodes.impurity == expected.nodes.impurity);
      CHECK(got.nodes.weight == expected.nodes.weight);
      CHECK(got.nodes.n_rows == expected.nodes.n_rows);
      CHECK(got.nodes.value == expected.nodes.value);
    }
}

TEST(the_worked_pruning_example) {
  const Tree tree = worked_example();
  const std::vector<double> risk = impurity_risks(tree);
  const PruningPath path = weakest_links(tree, risk);
  CHECK_EQ(path.node.size(), std::size_t{3});  // t5, t3, then the root
  CHECK_NEAR(path.alpha[0], 1.0 / 20, 1e-15);
  CHECK_NEAR(path.alpha[1], 1.0 / 20, 1e-15);
  CHECK_NEAR(path.alpha[2], 4.0 / 20, 1e-15);
  CHECK_EQ(prune(tree, risk, 0.04).size(), std::size_t{9});
  CHECK_EQ(prune(tree, risk, 0.0500001).size(), std::size_t{5});
  CHECK_EQ(prune(tree, risk, 0.21).size(), std::size_t{1});
  CHECK_EQ(find_fault(prune(tree, risk, 0.0500001), {0}), std::string());
}

TEST(a_useless_split_with_a_useful_one_below_stays) {
  Tree t = worked_example();  // the root gains nothing, its left child a little, t5 all the rest
  const std::vector<double> risk{1, .8, .1, .7, 0, 0, .2, .1, .1};
  const PruningPath path = weakest_links(t, risk);
  CHECK_EQ(path.node.size(), std::size_t{2});
  CHECK_EQ(path.node[0], 6u);  // t3 saves nothing
  CHECK_EQ(path.alpha[0], 0.0);
  CHECK_EQ(path.node[1], 0u);
  CHECK_NEAR(path.alpha[1], (1 - .3) / 3, 1e-15);
  CHECK_NEAR(path.complexity[3], path.alpha[1], 0.0);
  CHECK_EQ(path.n_leaves[1], 4u);
}

TEST(turns_cover_all_cuts) {
  const Tree t = worked_example();
  const std::vector<double> risk = impurity_risks(t), limits{0.01, 0.1, 1};
  const std::vector<std::uint32_t> first = first_cuts(t, risk, limits);
  CHECK_EQ(first[0], 2u);
  CHECK_EQ(first[1], 2u);  // t2 is pruned with the root
  CHECK_EQ(first[3], 1u);
  CHECK_EQ(first[6], 1u);
  const std::vector<std::uint32_t> rest{4, 2, 6};  // the last one stops at a split
  const Turns turns = pruning_turns(t, rest, first, 3);
  const std::uint32_t row[] = {0, 0, 0, 1, 1, 2, 2}, node[] = {0, 3, 4, 0, 2, 0, 6}, begin[] = {2, 1, 0, 2, 0, 2, 0};
  CHECK_EQ(turns.row.size(), std::size(row));
  for (std::size_t i = 0; i < std::size(row); ++i) {
    CHECK_EQ(turns.row[i], row[i]);
    CHECK_EQ(turns.node[i], node[i]);
    CHECK_EQ(turns.begin[i], begin[i]);
    CHECK_EQ(turns.until[i], i > 0 && row[i] == row[i - 1] ? begin[i - 1] : 3u);
  }
}

TEST(nan_risks_are_handled) {
  const Tree t = worked_example();
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const std::vector<double> risk{inf, nan, -inf, inf, 1, nan, inf, 0, inf};
  const PruningPath path = weakest_links(t, risk);
  CHECK_EQ(path.n_leaves.back(), 1u);
  for (std::size_t i = 1; i < path.alpha.size(); ++i) CHECK(path.alpha[i] >= path.alpha[i - 1]);
}

TEST(collapsing_keeps_sets) {
  const Tree t = collapse(small_tree(), {0, 0, 0, 0, 0});
  CHECK_EQ(find_fault(t, kinds), std::string());
  CHECK(goes_left(t, 2, 40) && !goes_left(t, 2, 7));
}
