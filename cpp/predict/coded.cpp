#include "predict/coded.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <limits>
#include <numeric>

#include "base/pool.h"
#include "data/read.h"
#include "data/sort.h"

namespace spinney {

Thresholds::Thresholds(std::span<const double> ascending) {
  constexpr std::size_t group = 16;
  std::vector<double> last(ascending.size() / group);  // of each full group; the group after it has an infinity
  for (std::size_t g = 0; g < last.size(); ++g) last[g] = ascending[g * group + group - 1];
  std::vector<Sixteen>& level = levels_.emplace_back(last.size() + 1);
  std::fill_n(&level.back().threshold[0], group, std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < ascending.size(); ++i) level[i / group].threshold[i % group] = ascending[i];
  if (last.empty()) return;
  Thresholds above(last);
  std::move(above.levels_.begin(), above.levels_.end(), std::back_inserter(levels_));
}

RankLevels Thresholds::levels() const {
  RankLevels levels{};
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) levels.level[levels.n++] = level->data();
  return levels;
}

CodedForest::CodedForest(const Forest& forest, int n_threads, Interrupt& interrupt) : forest_(forest) {
  number_slots();
  std::size_t largest = 0;
  for (std::size_t t = 0; t < forest.n_trees(); ++t)
    largest = std::max<std::size_t>(largest, forest.root[t + 1] - forest.root[t]);
  const auto slot_bits = static_cast<std::uint32_t>(std::bit_width(std::max(1u, n_slots()) - 1));
  shift_ = 32 - std::max(2u, slot_bits);  // keeps shift + 1 below 32
  constexpr std::size_t most_words = std::size_t{1} << 31;
  if (columns_.size() > most_columns || largest / 2 >= std::size_t{1} << (shift_ - 2) || !forest.nodes.splits.empty() ||
      forest.nodes.sets.size() >= most_words)
    return;
  std::vector<double> threshold;
  std::vector<std::vector<Row>> splits(columns_.size());
  code_splits(threshold, splits);
  rank_thresholds(threshold, splits, n_threads, interrupt);
  code_leaves();
  is_usable_ = true;
}

void CodedForest::number_slots() {
  const Tree& tree = forest_.nodes;
  constexpr std::uint8_t number = 1, category = 2;
  std::vector<std::uint8_t> seen;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    if (tree.is_leaf(i)) continue;
    const auto f = static_cast<std::size_t>(tree.feature[i]);
    if (f >= seen.size()) seen.resize(f + 1, 0);
    seen[f] = tree.flags[i] & Tree::category ? category : number;
  }
  slot_of_.assign(seen.size(), 0);
  for (const std::uint8_t kind : {number, category}) {
    if (kind == category) first_category_ = n_slots();
    for (std::uint32_t f = 0; f < seen.size(); ++f) {
      if (seen[f] != kind) continue;
      slot_of_[f] = n_slots();
      columns_.push_back(f);
    }
  }
}

// Writes the splits, except for the codes of numbers: stores their thresholds and the column of each split.
void CodedForest::code_splits(std::vector<double>& threshold, std::vector<std::vector<Row>>& splits) {
  const Tree& tree = forest_.nodes;
  const std::size_t n_splits = tree.size() / 2 + 1;
  nodes_.reserve(n_splits);
  threshold.reserve(n_splits);
  std::vector<std::size_t> open;  // splits whose right child is still to come
  std::uint32_t n_leaves = 0;
  for (std::size_t t = 0; t < forest_.n_trees(); ++t) {
    first_split_.push_back(static_cast<std::uint32_t>(nodes_.size()));
    first_leaf_.push_back(n_leaves);
    for (std::uint32_t i = forest_.root[t]; i < forest_.root[t + 1]; ++i) {
      if (!tree.is_leaf(i)) {
        open.push_back(nodes_.size());
        code_split(i, threshold, splits);
        continue;
      }
      ++n_leaves;
      if (open.empty()) continue;
      const auto step = static_cast<std::uint32_t>(nodes_.size() - open.back());
      nodes_[open.back()].next |= step << 2 | std::uint32_t{step == 1} << 1 | std::uint32_t{tree.is_leaf(i + 1)};
      open.pop_back();
    }
  }
  first_split_.push_back(static_cast<std::uint32_t>(nodes_.size()));
  first_leaf_.push_back(n_leaves);
}

void CodedForest::code_split(std::size_t node, std::vector<double>& threshold, std::vector<std::vector<Row>>& splits) {
  const Tree& tree = forest_.nodes;
  const std::uint32_t slot = slot_of_[static_cast<std::size_t>(tree.feature[node])];
  const std::uint32_t missing_left = tree.flags[node] & Tree::missing_left ? 1 : 0;
  const std::uint32_t others_left = tree.flags[node] & Tree::default_left ? 1 : 0;
  const bool is_category = slot >= first_category_;
  if (!is_category) splits[slot / 2].push_back(static_cast<Row>(nodes_.size()));
  threshold.push_back(tree.threshold[node]);
  nodes_.push_back({is_category ? tree.set[node] << 1 | others_left : 0, (slot + missing_left) << shift_});
}

void CodedForest::rank_thresholds(const std::vector<double>& threshold, std::vector<std::vector<Row>>& splits,
                                  int n_threads, Interrupt& interrupt) {
  const std::size_t n_numbers = first_category_ / 2;
  thresholds_.resize(n_numbers);
  Column column;
  column.data = reinterpret_cast<const std::byte*>(threshold.data());
  column.stride = sizeof(double);
  std::vector<ColumnSorter> sorters(static_cast<std::size_t>(n_threads));
  const double estimated_ns = 30.0 * static_cast<double>(threshold.size());
  parallel_for_if_worth(estimated_ns, n_numbers, n_threads, [&](std::size_t s, int worker) {
    interrupt.check();
    const std::span<const Entry> sorted = sorters[static_cast<std::size_t>(worker)].sort(column, splits[s], false);
    std::vector<double> distinct;
    if (!sorted.empty()) distinct.reserve(std::size_t{1} + spinney::code_of(sorted.back()));
    for (const Entry e : sorted) {
      if (spinney::code_of(e) == distinct.size()) distinct.push_back(threshold[row_of(e)]);
      nodes_[row_of(e)].code = spinney::code_of(e) + 1;
    }
    thresholds_[s] = Thresholds(distinct);
    std::vector<Row>().swap(splits[s]);
  });
  for (const Thresholds& t : thresholds_) levels_.push_back(t.levels());
}

// The class of a pure leaf; `width`: the leaf is not pure.
static std::size_t only_class(std::span<const double> value) {
  const auto n_zeros = static_cast<std::size_t>(std::count(value.begin(), value.end(), 0.0));
  const auto one = std::find(value.begin(), value.end(), 1.0);
  return n_zeros + 1 == value.size() ? static_cast<std::size_t>(one - value.begin()) : value.size();
}

// Pure leaves share their values; they are most leaves of a fully grown forest without shrinkage.
void CodedForest::code_leaves() {
  const Tree& tree = forest_.nodes;
  const std::size_t width = tree.value_width;
  bool are_shared = false;
  if (width > 1) {
    std::size_t n_pure = 0;
    for (std::size_t i = 0; i < tree.size(); ++i) n_pure += tree.is_leaf(i) && only_class(tree.value_of(i)) < width;
    are_shared = n_pure > first_leaf_.back() / 4;
  }
  if (are_shared) {
    values_.assign(width * width, 0.0);
    for (std::size_t k = 0; k < width; ++k) values_[k * width + k] = 1.0;
    places_.reserve(first_leaf_.back());
  } else
    values_.reserve(first_leaf_.back() * width);
  for (std::size_t i = 0; i < tree.size(); ++i) {
    if (!tree.is_leaf(i)) continue;
    const std::span<const double> value = tree.value_of(i);
    const std::size_t only = are_shared ? only_class(value) : width;
    if (are_shared) places_.push_back(static_cast<std::uint32_t>(only < width ? only : values_.size() / width));
    if (only == width) values_.insert(values_.end(), value.begin(), value.end());
  }
  values_.shrink_to_fit();
}

// The codes of a row in as few cache lines as possible.
static std::size_t padded_width(std::size_t width) {
  constexpr std::size_t line = 16;
  return width > line ? (width + line - 1) / line * line : std::bit_ceil(std::max<std::size_t>(1, width));
}

void CodedForest::read(const Table& table, std::size_t begin, std::size_t n, Block& block) const {
  constexpr std::size_t line_bytes = 64;
  constexpr std::size_t apart = 3 * line_bytes / sizeof(std::uint32_t);  // so that columns do not share cache sets
  constexpr std::uint32_t above_all = UINT32_MAX;
  block.rows.resize(n);
  std::iota(block.rows.begin(), block.rows.end(), static_cast<Row>(begin));
  block.values.resize(columns_.size() * n);
  bool missing = false;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    double* x = block.values.data() + c * n;
    read_values(table.columns[columns_[c]], block.rows.data(), n, x);
    for (std::size_t i = 0; i < n; ++i) missing |= x[i] != x[i];
  }
  block.plain = !missing;
  const std::size_t copies = block.plain ? 1 : 2;
  const bool by_column = coded_kernels().codes_by_column;
  block.width = by_column ? 1 : padded_width(copies * columns_.size());
  block.stride = by_column ? n + apart : 1;
  const std::size_t n_words = by_column ? copies * columns_.size() * block.stride : n * block.width;
  block.buffer.resize(n_words + line_bytes / sizeof(std::uint32_t));
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(block.buffer.data()) % line_bytes;
  std::uint32_t* codes = block.buffer.data() + (line_bytes - beyond) % line_bytes / sizeof(std::uint32_t);
  block.codes = codes;
  std::vector<std::uint32_t> code(n);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const double* x = block.values.data() + c * n;
    const bool is_number = c < levels_.size();
    if (is_number)
      coded_kernels().rank(levels_[c], x, n, code.data());
    else
      for (std::size_t i = 0; i < n; ++i) code[i] = x[i] == x[i] ? static_cast<std::uint32_t>(x[i]) : missing_category;
    for (std::size_t i = 0; i < n; ++i) {
      const bool present = x[i] == x[i];
      std::uint32_t* out = codes + i * block.width + copies * c * block.stride;
      out[0] = present ? code[i] : above_all;
      if (copies == 2) out[block.stride] = present || !is_number ? code[i] : 0;
    }
  }
}

CodedTree CodedForest::tree_of(const std::uint32_t* codes, std::size_t width, std::size_t stride, bool plain) const {
  CodedTree tree{};
  tree.nodes = nodes_.data();
  tree.codes = codes;
  tree.sets = forest_.nodes.sets.data();
  tree.width = static_cast<std::uint32_t>(width);
  tree.stride = static_cast<std::uint32_t>(stride);
  tree.shift = shift_ + plain;
  tree.step_mask = (std::uint32_t{1} << shift_) - 1;
  tree.missing_left = std::uint32_t{1} << shift_;
  tree.category_begins = first_category_ < n_slots() ? first_category_ << shift_ : 0;
  tree.has_categories = first_category_ < n_slots();
  return tree;
}

void CodedForest::walk(const Block& block, std::size_t t, std::span<const std::uint32_t> members, LeavesAre leaves_are,
                       std::uint32_t* row, std::uint32_t* leaf) const {
  if (first_split_[t] == first_split_[t + 1]) {
    std::copy(members.begin(), members.end(), row);
    std::fill_n(leaf, members.size(), 0u);
    return;
  }
  CodedTree tree = tree_of(block.codes, block.width, block.stride, block.plain);
  tree.nodes += first_split_[t];
  coded_kernels().walk(tree, members.data(), members.size(), leaves_are == LeavesAre::nodes, row, leaf);
}

template <std::size_t width, bool shared>
static void add_values(std::span<const std::uint32_t> row, const std::uint32_t* leaf, const std::uint32_t* places,
                       const double* values, double* out) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double* value = values + (shared ? places[leaf[i]] : leaf[i]) * width;
    for (std::size_t j = 0; j < width; ++j) out[row[i] * width + j] += value[j];
  }
}

void CodedForest::add(std::size_t t, std::span<const std::uint32_t> row, const std::uint32_t* leaf, double* out) const {
  const std::size_t width = forest_.nodes.value_width, first = first_leaf_[t];
  const double* own = values_.data() + (places_.empty() ? first * width : 0);
  if (width == 1) return add_values<1, false>(row, leaf, nullptr, own, out);
  if (width == 2 && places_.empty()) return add_values<2, false>(row, leaf, nullptr, own, out);
  if (width == 2) return add_values<2, true>(row, leaf, places_.data() + first, own, out);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double* v = value(first + leaf[i]);
    for (std::size_t j = 0; j < width; ++j) out[row[i] * width + j] += v[j];
  }
}

void CodedForest::code_row(const double* x, std::uint32_t* codes) const {
  std::array<std::uint32_t, most_columns> rank;
  coded_kernels().rank_row(levels_.data(), x, levels_.size(), rank.data());
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const bool present = x[c] == x[c], is_number = c < levels_.size();
    const std::uint32_t code = is_number ? rank[c] : present ? static_cast<std::uint32_t>(x[c]) : missing_category;
    codes[2 * c] = present ? code : UINT32_MAX;
    codes[2 * c + 1] = present || !is_number ? code : 0;
  }
}

// leaf[k] = the number of the row's leaf in tree first + k, among those of all trees.
void CodedForest::walk_row(const std::uint32_t* codes, std::size_t first, std::size_t n_trees,
                           std::uint32_t* leaf) const {
  const CodedTree tree = tree_of(codes, 0, 1, false);
  std::copy_n(first_leaf_.begin() + static_cast<std::ptrdiff_t>(first), n_trees, leaf);
  for (std::size_t k = 0; k < n_trees;) {  // runs of trees with a split
    std::size_t end = k;
    while (end < n_trees && first_split_[first + end] < first_split_[first + end + 1]) ++end;
    coded_kernels().walk_trees(tree, end - k, first_split_.data() + first + k, leaf + k);
    k = end + 1;
  }
}

}  // namespace spinney
