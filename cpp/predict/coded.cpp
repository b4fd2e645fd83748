#include "predict/coded.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/pool.h"
#include "data/read.h"
#include "data/sort.h"

namespace spinney {

CodedForest::CodedForest(const Forest& forest, int n_threads, Interrupt& interrupt) : forest_(forest) {
  constexpr std::size_t most_columns = 512;  // beyond this, coding a row costs more than reading what it needs
  number_slots();
  std::size_t largest = 0;
  for (std::size_t t = 0; t < forest.n_trees(); ++t)
    largest = std::max<std::size_t>(largest, forest.root[t + 1] - forest.root[t]);
  shift_ = 32 - std::max(2u, static_cast<std::uint32_t>(std::bit_width(never())));  // and one more stays below 32
  if (columns_.size() > most_columns || largest > std::size_t{1} << shift_ || !forest.nodes.splits.empty()) return;
  nodes_.resize(forest.nodes.size());
  code_thresholds(n_threads, interrupt);
  code_leaves();
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
    if (kind == category) first_category_ = never();
    for (std::uint32_t f = 0; f < seen.size(); ++f) {
      if (seen[f] != kind) continue;
      slot_of_[f] = never();
      columns_.push_back(f);
    }
  }
}

// Ranks the thresholds of each column, and writes the splits.
void CodedForest::code_thresholds(int n_threads, Interrupt& interrupt) {
  const Tree& tree = forest_.nodes;
  std::vector<std::vector<Row>> splits(columns_.size());
  for (std::size_t t = 0; t < forest_.n_trees(); ++t)
    for (std::uint32_t i = forest_.root[t]; i < forest_.root[t + 1]; ++i) {
      if (tree.is_leaf(i)) continue;
      const std::uint32_t slot = slot_of_[static_cast<std::size_t>(tree.feature[i])];
      const bool missing_left = tree.flags[i] & Tree::missing_left;
      nodes_[i] = {0, (slot + missing_left) << shift_ | (tree.right[i] - forest_.root[t])};
      if (!is_category(slot)) splits[slot / 2].push_back(i);
    }
  const std::size_t n_numbers = first_category_ / 2;
  thresholds_.resize(n_numbers);
  Column column;
  column.data = reinterpret_cast<const std::byte*>(tree.threshold.data());
  column.stride = sizeof(double);
  std::vector<ColumnSorter> sorters(static_cast<std::size_t>(n_threads));
  parallel_for_if_worth(30.0 * static_cast<double>(tree.size()), n_numbers, n_threads, [&](std::size_t s, int worker) {
    interrupt.check();
    const std::span<const Entry> sorted = sorters[static_cast<std::size_t>(worker)].sort(column, splits[s], false);
    for (const Entry e : sorted) {
      if (spinney::code_of(e) == thresholds_[s].size()) thresholds_[s].push_back(tree.threshold[row_of(e)]);
      nodes_[row_of(e)].code = spinney::code_of(e) + 1;
    }
    thresholds_[s].shrink_to_fit();
    std::vector<Row>().swap(splits[s]);
  });
}

// Pure leaves, most of a forest grown to the end, share their values.
void CodedForest::code_leaves() {
  const Tree& tree = forest_.nodes;
  const std::size_t width = tree.value_width;
  values_.assign(width * width, 0.0);
  for (std::size_t k = 0; k < width; ++k) values_[k * width + k] = 1.0;
  for (std::size_t t = 0; t < forest_.n_trees(); ++t)
    for (std::uint32_t i = forest_.root[t]; i < forest_.root[t + 1]; ++i) {
      if (!tree.is_leaf(i)) continue;
      const std::span<const double> value = tree.value_of(i);
      const auto n_zeros = static_cast<std::size_t>(std::count(value.begin(), value.end(), 0.0));
      const auto one = std::find(value.begin(), value.end(), 1.0);
      auto place = static_cast<std::uint32_t>(one - value.begin());
      if (n_zeros + 1 != width || one == value.end()) {
        place = static_cast<std::uint32_t>(values_.size() / width);
        values_.insert(values_.end(), value.begin(), value.end());
      }
      nodes_[i] = {place, never() << shift_ | (i - forest_.root[t])};
    }
  values_.shrink_to_fit();
}

void CodedForest::read(const Table& table, std::size_t begin, std::size_t n, Block& block) const {
  constexpr std::size_t lanes = 8;
  constexpr std::uint32_t above_all = UINT32_MAX;
  const std::size_t padded = (n + lanes - 1) / lanes * lanes;
  block.rows.resize(n);
  std::iota(block.rows.begin(), block.rows.end(), static_cast<Row>(begin));
  block.values.assign(columns_.size() * padded, 0.0);
  block.plain = true;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    double* values = block.values.data() + c * padded;
    bool missing = false;
    read_rows(table.columns[columns_[c]], block.rows.data(), n, [&](std::size_t i, double v) {
      values[i] = v;
      missing |= v != v;
    });
    block.plain = block.plain && !missing;
  }
  const std::size_t copies = block.plain ? 1 : 2;
  block.width = copies * columns_.size() + 1;
  block.codes.resize(n * block.width);
  for (std::size_t i = 0; i < n; ++i) block.codes[(i + 1) * block.width - 1] = above_all;
  std::vector<std::uint32_t> code(padded);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const double* x = block.values.data() + c * padded;
    const bool is_number = c < thresholds_.size();
    if (is_number)
      coded_kernels().count_below(thresholds_[c].data(), thresholds_[c].size(), x, padded, code.data());
    else
      for (std::size_t i = 0; i < n; ++i) code[i] = x[i] == x[i] ? static_cast<std::uint32_t>(x[i]) : above_all;
    std::uint32_t* out = block.codes.data() + copies * c;
    for (std::size_t i = 0; i < n; ++i) {
      const bool present = x[i] == x[i];
      out[i * block.width] = present ? code[i] : above_all;
      if (copies == 2) out[i * block.width + 1] = present || !is_number ? code[i] : 0;
    }
  }
}

std::uint32_t CodedForest::walk_categories(const std::uint32_t* codes, std::uint32_t shift, std::size_t t) const {
  const std::uint32_t root = forest_.root[t], mask = (std::uint32_t{1} << shift_) - 1;
  for (std::uint32_t at = 0;;) {
    const CodedNode node = nodes_[root + at];
    const std::uint32_t code = codes[node.next >> shift];
    bool left = code < node.code;
    if (is_category(node.next >> shift_) && node.next >> shift_ != never())
      left = goes_left(forest_.nodes, root + at, code == UINT32_MAX ? std::nan("") : static_cast<double>(code));
    const std::uint32_t next = left ? at + 1 : node.next & mask;
    if (next == at) return at;
    at = next;
  }
}

void CodedForest::walk(const Block& block, std::size_t t, std::span<const std::uint32_t> members,
                       std::uint32_t* leaf) const {
  const std::uint32_t shift = shift_ + block.plain, mask = (std::uint32_t{1} << shift_) - 1;
  if (first_category_ < never()) {
    for (std::size_t i = 0; i < members.size(); ++i)
      leaf[i] = walk_categories(block.codes.data() + members[i] * block.width, shift, t);
    return;
  }
  coded_kernels().walk(
      {nodes_.data() + forest_.root[t], block.codes.data(), static_cast<std::uint32_t>(block.width), shift, mask},
      members.data(), members.size(), leaf);
}

// Several trees at a time, for the same reason.
void CodedForest::sum_one(const double* row, double* out) const {
  std::vector<std::uint32_t> codes(columns_.size() * 2 + 1, UINT32_MAX);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const double x = row[columns_[c]];
    const bool is_number = c < thresholds_.size();
    if (x == x && is_number) {
      const auto& t = thresholds_[c];
      codes[2 * c] = static_cast<std::uint32_t>(std::lower_bound(t.begin(), t.end(), x) - t.begin());
    }
    if (x == x && !is_number) codes[2 * c] = static_cast<std::uint32_t>(x);
    codes[2 * c + 1] = x == x || !is_number ? codes[2 * c] : 0;
  }
  constexpr std::size_t lanes = 16;
  const std::uint32_t mask = (std::uint32_t{1} << shift_) - 1;
  const std::size_t n_trees = forest_.n_trees(), width = forest_.nodes.value_width;
  for (std::size_t begin = 0; begin < n_trees; begin += lanes) {
    const std::size_t n = std::min(lanes, n_trees - begin);
    std::array<std::uint32_t, lanes> at{};
    if (first_category_ < never()) {
      for (std::size_t k = 0; k < n; ++k) at[k] = walk_categories(codes.data(), shift_, begin + k);
    } else {
      std::array<const CodedNode*, lanes> nodes;
      for (std::size_t k = 0; k < lanes; ++k) nodes[k] = nodes_.data() + forest_.root[begin + std::min(k, n - 1)];
      for (std::uint32_t moved = 1; moved != 0;) {
        moved = 0;
        for (std::size_t k = 0; k < lanes; ++k) {
          const std::uint32_t next = next_of(nodes[k][at[k]], at[k], codes.data(), shift_, mask);
          moved |= next ^ at[k];
          at[k] = next;
        }
      }
    }
    for (std::size_t k = 0; k < n; ++k) {
      const double* v = value(begin + k, at[k]);
      for (std::size_t j = 0; j < width; ++j) out[j] += v[j];
    }
  }
}

}  // namespace spinney
