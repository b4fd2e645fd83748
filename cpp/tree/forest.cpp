#include "tree/forest.h"

#include <algorithm>
#include <functional>
#include <span>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "base/large_array.h"
#include "base/pool.h"

namespace spinney {

void Forest::add(const Tree& tree) {
  if (nodes.size() + tree.size() >= UINT32_MAX || nodes.sets.size() + tree.sets.size() >= UINT32_MAX ||
      nodes.splits.size() + tree.splits.size() >= UINT32_MAX ||
      nodes.splits.sets.size() + tree.splits.sets.size() >= UINT32_MAX ||
      nodes.linear_leaves.size() + tree.linear_leaves.size() >= UINT32_MAX)
    throw std::length_error("The forest has more than 4 billion nodes. Grow fewer or smaller trees.");
  if (n_trees() > 0 && tree.value_width != nodes.value_width)
    throw std::invalid_argument("The trees have different numbers of values.");
  nodes.value_width = tree.value_width;
  // A file does not store the strength of trees without counts; that of the others does no harm there.
  nodes.shrinkage = std::max(nodes.shrinkage, tree.shrinkage);
  nodes.append(tree);
  root.push_back(static_cast<std::uint32_t>(nodes.size()));
}

void Forest::reserve(std::size_t n_nodes, std::size_t n_set_words, std::size_t n_trees) {
  nodes.reserve(n_nodes, n_set_words);
  root.reserve(n_trees + 1);
}

template <class One, class Other>
static bool is_same(One one, Other other) {
  if constexpr (std::is_same_v<One, Other>) return one == other;
  return false;
}

// Appends the arrays of all trees, one array per task, and frees their memory after every few trees.
static void append(std::vector<BufferedTree>& trees, Tree& to, int n_threads) {
  constexpr std::size_t n_steps = 16;
  std::vector<std::function<void(const BufferedTree&)>> appends;  // by array
  const auto add = [&](BufferedArrays BufferedTree::* part, auto arrays) {
    const auto add_one = [&](auto wanted) {
      appends.emplace_back([&to, arrays, part, wanted](const BufferedTree& t) {
        t.for_each_run(t.*part, arrays, [&](auto array, auto* first, std::size_t n) {
          if (is_same(array, wanted)) (to.*array).insert((to.*array).end(), first, first + n);
        });
      });
    };
    std::apply([&](auto... array) { (add_one(array), ...); }, arrays);
  };
  add(&BufferedTree::values, BufferedTree::value_arrays);
  add(&BufferedTree::others, BufferedTree::other_arrays);
  for (std::size_t step = 0; step < n_steps; ++step) {
    const std::size_t begin = step * trees.size() / n_steps, end = (step + 1) * trees.size() / n_steps;
    const auto some = std::span(trees).subspan(begin, end - begin);
    double n_nodes = 0;
    for (const BufferedTree& t : some) n_nodes += static_cast<double>(t.n_nodes);
    parallel_for_if_worth(10 * n_nodes, appends.size(), n_threads, [&](std::size_t i, int) {
      for (const BufferedTree& t : some) appends[i](t);
    });
    for (BufferedTree& t : some) t.values = t.others = {};
  }
}

Forest Forest::join(std::vector<BufferedTree> trees, int n_threads) {
  Forest forest;
  Tree& nodes = forest.nodes;
  std::vector<std::uint32_t> first_set{0};
  for (const BufferedTree& t : trees) {
    if (forest.root.back() + t.n_nodes >= UINT32_MAX)
      throw std::length_error("The forest has more than 4 billion nodes. Grow fewer or smaller trees.");
    nodes.value_width = t.value_width;
    nodes.shrinkage = t.shrinkage;
    forest.root.push_back(forest.root.back() + static_cast<std::uint32_t>(t.n_nodes));
    first_set.push_back(first_set.back() + static_cast<std::uint32_t>(t.n_set_words));
  }
#if defined(__GLIBC__)
  malloc_trim(0);  // otherwise the allocator retains the memory used for growing
#endif
  nodes.reserve(forest.root.back(), first_set.back());
  const auto reserve_pages = [&](auto... array) {
    (request_large_pages((nodes.*array).data(), (nodes.*array).capacity() * sizeof((nodes.*array)[0])), ...);
  };
  std::apply(reserve_pages, BufferedTree::value_arrays);
  std::apply(reserve_pages, BufferedTree::other_arrays);
  append(trees, nodes, n_threads);
  parallel_for_if_worth(1.0 * forest.root.back(), forest.n_trees(), n_threads, [&](std::size_t t, int) {
    for (std::size_t i = forest.root[t]; i < forest.root[t + 1]; ++i) {
      if (nodes.is_leaf(i)) continue;
      nodes.right[i] += forest.root[t];
      if (nodes.flags[i] & Tree::category) nodes.set[i] += first_set[t];
    }
  });
  return forest;
}

template <class T>
static std::vector<T> cut(const std::vector<T>& from, std::size_t begin, std::size_t end) {
  return {from.begin() + static_cast<std::ptrdiff_t>(begin), from.begin() + static_cast<std::ptrdiff_t>(end)};
}

Tree Forest::tree(std::size_t t) const {
  const std::size_t begin = root[t], end = root[t + 1];
  Tree out;
  out.value_width = nodes.value_width;
  out.shrinkage = nodes.shrinkage;
  out.feature = cut(nodes.feature, begin, end);
  out.threshold = cut(nodes.threshold, begin, end);
  out.right = cut(nodes.right, begin, end);
  out.flags = cut(nodes.flags, begin, end);
  out.set = cut(nodes.set, begin, end);
  out.impurity = cut(nodes.impurity, begin, end);
  out.weight = cut(nodes.weight, begin, end);
  out.n_rows = cut(nodes.n_rows, begin, end);
  out.value = cut(nodes.value, begin * nodes.value_width, end * nodes.value_width);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out.is_leaf(i)) continue;
    out.right[i] -= static_cast<std::uint32_t>(begin);
    if (!(out.flags[i] & Tree::category)) continue;
    const std::uint32_t* set = nodes.sets.data() + out.set[i];
    out.set[i] = static_cast<std::uint32_t>(out.sets.size());
    out.sets.insert(out.sets.end(), set, set + 1 + (*set & ~Tree::list_mark));
  }
  for (std::size_t i = begin; i < end && !nodes.splits.empty(); ++i) out.splits.copy_node(nodes.splits, i);
  if (out.splits.size() == 0) out.splits = {};
  for (std::size_t i = begin; i < end && !nodes.linear_leaves.empty(); ++i)
    out.linear_leaves.copy_node(nodes.linear_leaves, i);
  if (out.linear_leaves.size() == 0) out.linear_leaves = {};
  return out;
}

}  // namespace spinney
