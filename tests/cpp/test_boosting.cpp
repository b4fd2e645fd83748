// Boosting with any number of threads: the trees are bit-identical, however the threads divide the work.
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "check.h"
#include "learn/boosting.h"

using namespace spinney;

namespace {

struct Data {
  std::vector<float> values;
  std::vector<double> target, weight;
  Table table;
};

// Columns of normal numbers, some with few values, some with missing values; the first few determine the target.
Data make_data(std::size_t n_rows, std::size_t n_columns, std::uint32_t n_classes, std::uint64_t seed) {
  std::mt19937_64 g(seed);
  std::normal_distribution<float> normal;
  Data d;
  d.values.resize(n_rows * n_columns);
  d.table.n_rows = n_rows;
  d.table.columns.resize(n_columns);
  for (std::size_t f = 0; f < n_columns; ++f) {
    float* column = d.values.data() + f * n_rows;
    for (std::size_t r = 0; r < n_rows; ++r) {
      column[r] = normal(g);
      if (f % 5 == 3) column[r] = std::round(column[r]);
      if (f % 7 == 4 && g() % 10 == 0) column[r] = NAN;
    }
    d.table.columns[f].data = reinterpret_cast<const std::byte*>(column);
    d.table.columns[f].stride = sizeof(float);
    d.table.columns[f].dtype = DType::f32;
  }
  for (std::size_t r = 0; r < n_rows; ++r) {
    const float score = d.values[r] + d.values[n_rows + r] * d.values[2 * n_rows + r] + normal(g);
    const double rank = 1 / (1 + std::exp(-static_cast<double>(score)));
    d.target.push_back(n_classes == 0 ? static_cast<double>(score) : std::floor(rank * n_classes * 0.999));
    d.weight.push_back(static_cast<double>(g() % 3));
  }
  return d;
}

std::vector<Tree> boost(const Data& d, BoostingParams params, int n_threads, bool weighted = false) {
  params.tree.n_threads = n_threads;
  BoostingRows rows;
  rows.table = &d.table;
  rows.target = d.target.data();
  rows.weight = weighted ? d.weight.data() : nullptr;
  rows.scores.assign(params.n_scores(), RowVector<double>(d.table.n_rows, 0.0));
  Interrupt interrupt;
  Boosting boosting(rows, {}, params, 0, interrupt);
  for (int i = 0; i < 3; ++i) boosting.advance(interrupt);
  return boosting.trees();
}

template <class T>
bool bit_identical(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

void check_same(const std::vector<Tree>& got, const std::vector<Tree>& expected) {
  CHECK_EQ(got.size(), expected.size());
  for (std::size_t t = 0; t < got.size(); ++t) {
    CHECK(bit_identical(got[t].feature, expected[t].feature));
    CHECK(bit_identical(got[t].threshold, expected[t].threshold));
    CHECK(bit_identical(got[t].value, expected[t].value));
    CHECK(bit_identical(got[t].impurity, expected[t].impurity));
    CHECK(bit_identical(got[t].n_rows, expected[t].n_rows));
  }
}

void check_same(const Data& d, const BoostingParams& params, bool weighted = false) {
  const std::vector<Tree> expected = boost(d, params, 1, weighted);
  for (const int n_threads : {2, 3, 8}) check_same(boost(d, params, n_threads, weighted), expected);
}

// Codes in files; those of 200 columns are read 4,096 rows at a time.
void check_same_in_files(Data& d, const BoostingParams& params, bool weighted = false) {
  const std::vector<Tree> expected = boost(d, params, 1, weighted);
  d.table.spill = std::make_shared<Spill>("/tmp", 1 << 20);
  for (const int n_threads : {1, 3}) check_same(boost(d, params, n_threads, weighted), expected);
  d.table.spill = nullptr;
}

// Trees of typical size.
BoostingParams usual_params() {
  BoostingParams params;
  params.losses = {{.loss = Loss::squared}};
  params.max_bins = 255;
  params.tree.learning_rate = 0.1;
  params.tree.max_leaf_nodes = 31;
  params.tree.min_samples_leaf = 20;
  params.tree.min_hessian_leaf = 1e-3;
  params.tree.max_one_hot = 4;
  params.tree.category_smoothing = params.tree.category_l2 = 10;
  return params;
}

BoostingParams classes(std::uint32_t n) {
  BoostingParams params = usual_params();
  params.losses = {{.loss = n > 2 ? Loss::multinomial : Loss::logistic, .n_scores = n > 2 ? n : 1}};
  return params;
}

}  // namespace

TEST(leaves_split_ahead_change_nothing) {
  const Data d = make_data(20'000, 9, 2, 1);
  BoostingParams params = classes(2);
  params.tree.max_leaf_nodes = 60;
  check_same(d, params);
  params.tree.depth_wise = true;
  params.tree.max_depth = 5;
  check_same(d, params, true);
}

TEST(cuts_between_ordered_classes_do_not_depend_on_the_threads) {
  const Data d = make_data(11'000, 5, 6, 3);
  BoostingParams params = usual_params();
  params.losses = {{.loss = Loss::ordinal, .parameter = 6}};
  check_same(d, params);
  check_same(d, params, true);
}

TEST(splits_counted_again_change_nothing) {
  const Data d = make_data(9'000, 6, 2, 2);
  BoostingParams params = classes(2);
  params.tree.max_leaf_nodes = 200;
  params.tree.min_samples_leaf = 30;
  params.tree.learning_rate = 1.5;  // hessians soon differ from row to row
  check_same(d, params);
}

TEST(codes_in_files_grow_the_same_trees) {
  Data d = make_data(17'000, 200, 2, 6);
  BoostingParams params = classes(2);
  check_same_in_files(d, params);
  params.subsample = 0.3;
  params.tree.depth_wise = true;
  params.tree.max_depth = 4;
  params.tree.max_features_per_tree = 0.2;
  check_same_in_files(d, params, true);
  d = make_data(9'000, 6, 2, 2);
  params = classes(2);
  params.tree.max_leaf_nodes =
      200;  // splits with fewer rows on a side than estimated, and some speculative splits that are not used
  params.tree.min_samples_leaf = 30;
  params.tree.learning_rate = 1.5;
  check_same_in_files(d, params);
  d = make_data(9'000, 12, 3, 5);
  check_same_in_files(d, classes(3));
}

TEST(rows_and_columns_drawn_do_not_depend_on_threads) {
  const Data d = make_data(20'000, 12, 0, 3);
  BoostingParams params = usual_params();
  params.subsample = 0.6;
  params.tree.max_features_per_tree = 0.8;
  params.tree.max_features_per_level = 0.8;
  params.tree.max_features = 0.5;
  params.tree.seed = 5;
  check_same(d, params, true);
}

TEST(threads_may_share_the_columns_of_a_node) {
  const Data d = make_data(3'000, 600, 0, 4);
  check_same(d, usual_params());
}

TEST(threads_may_grow_the_trees_of_classes) {
  const Data d = make_data(6'000, 6, 7, 5);
  check_same(d, classes(7));
  check_same(d, classes(7), true);
}

TEST(leaves_of_several_values_do_not_depend_on_threads) {
  const Data d = make_data(9'000, 6, 4, 9);
  BoostingParams params = classes(4);
  params.vector_leaves = true;
  params.tree.max_leaf_nodes = 60;
  check_same(d, params);
  check_same(d, params, true);
}

TEST(splits_of_a_level_do_not_depend_on_threads) {
  const Data d = make_data(20'000, 9, 0, 10);
  BoostingParams params = usual_params();
  params.tree.symmetric = true;
  params.tree.max_leaf_nodes = 64;
  check_same(d, params, true);
}

TEST(leaves_refitted_do_not_depend_on_threads) {
  const Data d = make_data(9'000, 5, 0, 6);
  for (const Loss loss : {Loss::huber, Loss::absolute}) {
    BoostingParams params = usual_params();
    params.losses = {{.loss = loss, .parameter = 0.9}};
    check_same(d, params, true);
  }
}

TEST(a_row_of_huge_weight_leaves_the_others_their_splits) {
  Data d = make_data(3000, 6, 0, 8);
  d.weight.assign(3000, 1.0);
  d.weight[1500] = 1e9;
  BoostingParams params = usual_params();
  for (const Tree& tree : boost(d, params, 1, true)) {
    CHECK_EQ(tree.size(), std::size_t{61});
    for (const Row n : tree.n_rows) CHECK(n >= 20);
  }
  check_same(d, params, true);
}

TEST(an_interruption_reaches_every_thread) {
  const Data d = make_data(20'000, 9, 2, 7);
  BoostingRows rows;
  rows.table = &d.table;
  rows.target = d.target.data();
  rows.scores.assign(1, RowVector<double>(d.table.n_rows, 0.0));
  BoostingParams params = classes(2);
  params.tree.n_threads = 4;
  Interrupt interrupt;
  Boosting boosting(rows, {}, params, 0, interrupt);
  interrupt.request();
  bool was_interrupted = false;
  try {
    boosting.advance(interrupt);
  } catch (const Interrupted&) {
    was_interrupted = true;
  }
  CHECK(was_interrupted);
  CHECK(boosting.trees().empty());
}
