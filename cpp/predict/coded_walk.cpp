#include "predict/coded_walk.h"

#include <algorithm>
#include <array>

#include "base/cpu.h"
#include "tree/tree.h"

namespace spinney {

bool category_goes_left(const CodedTree& tree, CodedNode node, std::uint32_t code) {
  if (code == missing_category) return node.next & tree.missing_left;
  return category_goes_left(tree.sets + (node.code >> 1), node.code & 1, code);
}

// One step down; false in a leaf. By masks: a branch is wrong half the time.
template <bool categories>
static bool advance(const CodedTree& tree, const std::uint32_t* row, std::uint32_t& at, std::uint32_t& leaf) {
  const CodedNode node = tree.nodes[at];
  const std::uint32_t code = row[node.next >> tree.shift];
  bool left = code < node.code;
  if constexpr (categories)
    if (node.next >= tree.category_begins) left = category_goes_left(tree, node, code);
  const std::uint32_t right = std::uint32_t{left} - 1, step = (node.next & tree.step_mask) >> 1;
  at += 1 + ((step - 1) & right);
  leaf += step & right;
  return !((std::uint32_t{step == 1} & ~right) | (node.next & right & 1));
}

// Several rows at a time: while one waits for memory, the others go on. Who arrives makes room for the next.
template <bool categories>
static void walk_rows(const CodedTree& tree, const std::uint32_t* members, std::size_t n, bool in_preorder,
                      std::uint32_t* row, std::uint32_t* leaf) {
  struct Lane {
    const std::uint32_t* codes;
    std::uint32_t member, at, leaf;
  };
  const auto seated = [&](std::uint32_t m) { return Lane{tree.codes + std::size_t{m} * tree.width, m, 0, 0}; };
  std::array<Lane, 16> lanes;
  std::size_t next = 0, n_lanes = std::min(lanes.size(), n), n_done = 0;
  for (; next < n_lanes; ++next) lanes[next] = seated(members[next]);
  while (n_lanes > 0)
    for (std::size_t k = 0; k < n_lanes; ++k) {
      Lane& lane = lanes[k];
      if (advance<categories>(tree, lane.codes, lane.at, lane.leaf)) continue;
      row[n_done] = lane.member;
      leaf[n_done++] = lane.leaf + (in_preorder ? lane.at : 0);
      lane = next < n ? seated(members[next++]) : lanes[--n_lanes];
    }
}

static void walk(const CodedTree& tree, const std::uint32_t* members, std::size_t n, bool in_preorder,
                 std::uint32_t* row, std::uint32_t* leaf) {
  (tree.has_categories ? walk_rows<true> : walk_rows<false>)(tree, members, n, in_preorder, row, leaf);
}

template <bool categories>
static void walk_all(const CodedTree& tree, std::size_t n_trees, std::uint32_t* node, std::uint32_t* leaf) {
  constexpr std::size_t most = 128;
  std::array<std::uint8_t, most> moving;
  for (std::size_t begin = 0; begin < n_trees; begin += most) {
    std::size_t n = std::min(most, n_trees - begin);
    for (std::size_t k = 0; k < n; ++k) moving[k] = static_cast<std::uint8_t>(k);
    while (n > 0) {
      std::size_t n_left = 0;
      for (std::size_t j = 0; j < n; ++j) {
        const std::size_t k = moving[j];
        moving[n_left] = static_cast<std::uint8_t>(k);
        n_left += advance<categories>(tree, tree.codes, node[begin + k], leaf[begin + k]);
      }
      n = n_left;
    }
  }
}

static void walk_trees(const CodedTree& tree, std::size_t n_trees, std::uint32_t* node, std::uint32_t* leaf) {
  (tree.has_categories ? walk_all<true> : walk_all<false>)(tree, n_trees, node, leaf);
}

static std::uint32_t count_below(const Sixteen& sixteen, double x) {
  std::uint32_t count = 0;
  for (const double threshold : sixteen.threshold) count += threshold < x;
  return count;
}

#include "predict/rank_body.h"

const CodedKernels base::coded_kernels{walk, walk_trees, rank, rank_row};

const CodedKernels& coded_kernels() {
#if defined(__x86_64__)
  if (isa() == Isa::avx512) return avx512::coded_kernels;
#endif
  return base::coded_kernels;
}

}  // namespace spinney
