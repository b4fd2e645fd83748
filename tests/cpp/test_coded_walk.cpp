// Ranks of values and walks of coded rows: every instruction set agrees with one row at a time.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "check.h"
#include "every_isa.h"
#include "predict/coded.h"
#include "tree/tree.h"

using namespace spinney;

static std::vector<const CodedKernels*> kernels_of_this_machine() {
  return of_every_isa([](auto isa) { return &coded_kernels_of(isa); });
}

static constexpr std::uint32_t n_rows = 1000;

static std::uint32_t below(std::mt19937& g, std::uint32_t n) { return static_cast<std::uint32_t>(g() % n); }

TEST(ranks_are_numbers_of_thresholds_below) {
  std::mt19937 g(3);
  const double infinity = std::numeric_limits<double>::infinity();
  for (const CodedKernels* kernels : kernels_of_this_machine())
    for (const std::size_t n : {0u, 1u, 15u, 16u, 17u, 255u, 256u, 257u, 5000u}) {
      std::vector<double> sorted(n), x(77);
      for (double& t : sorted) t = below(g, 9000);
      std::sort(sorted.begin(), sorted.end());
      for (double& v : x) v = below(g, 9) == 0 ? NAN : below(g, 9000);
      x[0] = infinity;
      x[1] = -infinity;
      const Thresholds thresholds(sorted);
      const std::vector<RankLevels> levels(x.size(), thresholds.levels());
      std::vector<std::uint32_t> together(x.size()), one_each(x.size());
      kernels->rank(levels[0], x.data(), x.size(), together.data());
      kernels->rank_row(levels.data(), x.data(), x.size(), one_each.data());
      CHECK(together == one_each);
      for (std::size_t i = 0; i < x.size(); ++i)
        CHECK_EQ(together[i], std::count_if(sorted.begin(), sorted.end(), [&](double t) { return t < x[i]; }));
    }
}

// Splits in preorder over three columns, the last with categories; leaves have different depths.
struct RandomCodedTree {
  static constexpr std::uint32_t shift = 20;
  std::vector<CodedNode> nodes;
  std::vector<std::uint32_t> sets;
  std::uint32_t n_leaves = 0;

  RandomCodedTree(std::mt19937& g, int depth) { grow(g, depth); }

  bool grow(std::mt19937& g, int depth) {  // true: a leaf
    if (depth == 0 || (!nodes.empty() && below(g, 6) == 0)) {
      ++n_leaves;
      return true;
    }
    const std::size_t at = nodes.size();
    const std::uint32_t column = below(g, 3), leaves_before = n_leaves;
    std::uint32_t code = below(g, 100);
    if (column == 2) {
      code = static_cast<std::uint32_t>(sets.size()) << 1 | below(g, 2);
      sets.insert(sets.end(), {2, static_cast<std::uint32_t>(g()), static_cast<std::uint32_t>(g())});
    }
    nodes.push_back({code, (2 * column + below(g, 2)) << shift});
    if (grow(g, depth - 1)) nodes[at].next |= 2;
    nodes[at].next |= (n_leaves - leaves_before) << 2;
    if (grow(g, depth - 1)) nodes[at].next |= 1;
    return false;
  }

  // The number of a row's leaf, and its position in preorder.
  std::pair<std::uint32_t, std::uint32_t> rest(const std::uint32_t* row) const {
    for (std::uint32_t at = 0, leaf = 0;;) {
      const CodedNode node = nodes[at];
      const std::uint32_t slot = node.next >> shift, step = (node.next & ((1u << shift) - 1)) >> 2, code = row[slot];
      bool left = code < node.code;
      if (slot >= 4) {
        left = slot & 1;
        if (code != missing_category) left = category_goes_left(sets.data() + (node.code >> 1), node.code & 1, code);
      }
      at += left ? 1 : step;
      leaf += left ? 0 : step;
      if (node.next & (left ? 2 : 1)) return {leaf, at + leaf};
    }
  }
};

// The codes of `rows` (row-major) in the layout of the kernels.
static std::vector<std::uint32_t> laid_out(const CodedKernels& kernels, const CodedTree& rows, std::uint32_t n,
                                           CodedTree& tree) {
  std::vector<std::uint32_t> codes(std::size_t{n} * rows.width);
  tree = rows;
  if (kernels.codes_by_column) std::tie(tree.width, tree.stride) = std::pair(1u, n);
  for (std::uint32_t r = 0; r < n; ++r)
    for (std::uint32_t s = 0; s < rows.width; ++s)
      codes[r * tree.width + s * tree.stride] = rows.codes[r * rows.width + s];
  tree.codes = codes.data();
  return codes;
}

static void check_walks(const CodedKernels& kernels, const CodedTree& tree, const RandomCodedTree& grown,
                        std::uint32_t n) {
  CodedTree many;
  const std::vector<std::uint32_t> codes = laid_out(kernels, tree, n_rows, many);
  std::vector<std::uint32_t> members;
  for (std::uint32_t i = 0; i < n; ++i) members.push_back(n_rows - 1 - i);
  for (const bool in_preorder : {false, true}) {
    std::vector<std::uint32_t> row(n + walk_slack), leaf(n + walk_slack);
    kernels.walk(many, members.data(), n, in_preorder, row.data(), leaf.data());
    std::vector<std::uint32_t> seen(row.begin(), row.begin() + n);
    std::sort(seen.rbegin(), seen.rend());
    CHECK(seen == members);
    for (std::uint32_t i = 0; i < n; ++i) {
      const auto [number, place] = grown.rest(tree.codes + 6 * row[i]);
      CHECK_EQ(leaf[i], in_preorder ? place : number);
    }
  }
  const std::vector<std::uint32_t> first(n, 0);
  std::vector<std::uint32_t> leaf(n);
  for (std::uint32_t t = 0; t < n; ++t) leaf[t] = 1000 * t;
  kernels.walk_trees(tree, n, first.data(), leaf.data());
  for (std::uint32_t t = 0; t < n; ++t) CHECK_EQ(leaf[t], 1000 * t + grown.rest(tree.codes).first);
}

TEST(walks_end_in_the_same_leaves_by_every_instruction_set) {
  std::mt19937 g(5);
  constexpr std::uint32_t bit = 1u << RandomCodedTree::shift;
  for (const int depth : {1, 2, 5, 9}) {
    const RandomCodedTree grown(g, depth);
    std::vector<std::uint32_t> codes(6 * n_rows);
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = below(g, i % 6 < 4 ? 100 : 80);
    for (std::size_t r = 0; r < n_rows; r += 7) codes[6 * r + 4] = codes[6 * r + 5] = missing_category;
    CodedTree tree{};
    tree.nodes = grown.nodes.data();
    tree.codes = codes.data();
    tree.sets = grown.sets.data();
    tree.width = 6;
    tree.stride = 1;
    tree.shift = RandomCodedTree::shift;
    tree.step_mask = bit - 1;
    tree.missing_left = bit;
    tree.category_begins = 4 * bit;
    tree.has_categories = true;
    for (const CodedKernels* kernels : kernels_of_this_machine())
      for (std::uint32_t n = 0; n <= n_rows; n += 1 + n / 4) check_walks(*kernels, tree, grown, n);
  }
}
