#include "predict/additive.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>

#include "base/pool.h"
#include "data/read.h"

namespace spinney {

namespace {

constexpr std::uint8_t missing_byte = 255;
constexpr std::uint32_t unseen_byte = 254, most_leaves = 256, most_cuts = 254;

// Does a set tell categories apart that share the byte of those unseen?
bool names_large_codes(const std::uint32_t* set) {
  const std::uint32_t n = *set & ~Tree::list_mark;
  if (*set & Tree::list_mark) return n > 0 && set[n] >= unseen_byte;
  return n > unseen_byte / 32;
}

}  // namespace

Additive::Additive(Forest forest, std::size_t n_outputs)
    : forest_(std::move(forest)), n_outputs_(n_outputs), compact_(forest_.nodes) {
  if (n_outputs == 0 || forest_.n_trees() % n_outputs != 0)
    throw std::invalid_argument("each output has as many trees");
  if (forest_.n_trees() > 0 && forest_.nodes.value_width != 1) throw std::invalid_argument("a leaf has one value");
  is_masked_ = prepare();
}

bool Additive::prepare() {
  for (std::size_t t = 0; t < forest_.n_trees(); ++t)
    if ((forest_.root[t + 1] - forest_.root[t] + 1) / 2 > most_leaves) return false;
  if (!forest_.nodes.splits.empty() || !prepare_slots()) return false;
  for (std::size_t t = 0; t < forest_.n_trees(); ++t) prepare_tree(t);
  return true;
}

bool Additive::prepare_slots() {
  const Tree& nodes = forest_.nodes;
  std::vector<std::vector<double>> cuts;
  std::vector<std::uint8_t> is_category, in_use;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes.is_leaf(i)) continue;
    const auto f = static_cast<std::size_t>(nodes.feature[i]);
    if (f >= cuts.size()) {
      cuts.resize(f + 1);
      is_category.resize(f + 1, 0);
      in_use.resize(f + 1, 0);
    }
    in_use[f] = 1;
    if (nodes.flags[i] & Tree::category) {
      is_category[f] = 1;
      if (names_large_codes(nodes.sets.data() + nodes.set[i])) return false;
    } else
      cuts[f].push_back(nodes.threshold[i]);
  }
  slot_of_.assign(cuts.size(), 0);
  for (std::size_t f = 0; f < cuts.size(); ++f) {
    if (!in_use[f]) continue;
    std::sort(cuts[f].begin(), cuts[f].end());
    cuts[f].erase(std::unique(cuts[f].begin(), cuts[f].end()), cuts[f].end());
    if (cuts[f].size() > most_cuts || slots_.size() == UINT16_MAX) return false;
    slot_of_[f] = static_cast<std::uint16_t>(slots_.size());
    Slot& slot = slots_.emplace_back();
    slot.column = static_cast<std::uint32_t>(f);
    slot.is_category = is_category[f];
    slot.cuts = EdgeSearch(cuts[f]);
  }
  return true;
}

void Additive::prepare_tree(std::size_t t) {
  const Tree& tree = forest_.nodes;
  value_at_.push_back(values_.size());
  table_at_.push_back(tables_.size());
  for (std::uint32_t i = forest_.root[t]; i < forest_.root[t + 1]; ++i) {
    if (tree.is_leaf(i)) {
      nodes_.push_back({0, 0, MaskNode::leaf});
      values_.push_back(tree.value[i]);
      continue;
    }
    const auto f = static_cast<std::size_t>(tree.feature[i]);
    const std::uint16_t slot = slot_of_[f];
    const bool missing_left = tree.flags[i] & Tree::missing_left;
    if (tree.flags[i] & Tree::category) {
      nodes_.push_back({slot, 0, MaskNode::category});
      for (std::uint32_t code = 0; code < 256; ++code) {
        const bool left = code == missing_byte ? missing_left
                                               : category_goes_left(tree.sets.data() + tree.set[i],
                                                                    tree.flags[i] & Tree::default_left, code);
        tables_.push_back(left ? 0xff : 0);
      }
    } else {
      std::uint32_t cut = 0;
      slots_[slot].cuts.find(&tree.threshold[i], 1, &cut);
      nodes_.push_back({slot, static_cast<std::uint8_t>(cut),
                        static_cast<std::uint8_t>(missing_left ? MaskNode::missing_left : MaskNode::missing_right)});
    }
  }
  std::size_t depth = 0, most = 0;  // splits whose right side is still to come
  for (std::uint32_t i = forest_.root[t]; i < forest_.root[t + 1]; ++i) {
    if (tree.is_leaf(i))
      depth -= depth > 0;
    else
      most = std::max(most, ++depth);
  }
  depth_ = std::max(depth_, most + 1);
}

// Codes of n rows, `width` bytes a slot.
void Additive::code_block(const Table& table, std::size_t begin, std::size_t n, std::size_t width,
                          std::uint8_t* codes) const {
  std::array<Row, many_rows> rows;
  std::array<double, many_rows> values{};
  std::array<std::uint32_t, many_rows> at;
  std::iota(rows.begin(), rows.end(), static_cast<Row>(begin));
  for (const Slot& slot : slots_) {
    read_rows(table.columns[slot.column], rows.data(), n, [&](std::size_t i, double v) { values[i] = v; });
    if (!slot.is_category) slot.cuts.find(values.data(), n, at.data());
    for (std::size_t i = 0; i < n; ++i) {
      const double code = slot.is_category ? std::min(values[i], double{unseen_byte}) : at[i];
      codes[i] = values[i] != values[i] ? missing_byte : static_cast<std::uint8_t>(code);
    }
    codes += width;
  }
}

void Additive::add_masked(const Table& table, std::size_t first, std::size_t last, int n_threads, Interrupt& interrupt,
                          double* out) const {
  const std::size_t width = table.n_rows < many_rows ? few_rows : many_rows;
  const EvaluateMasks evaluate = width == few_rows ? mask_kernels().few : mask_kernels().many;
  const std::size_t n_blocks = (table.n_rows + width - 1) / width;
  const double estimated_ns = static_cast<double>(table.n_rows) *
                              (3.0 * static_cast<double>(last - first) + 4.0 * static_cast<double>(slots_.size()));
  parallel_for_if_worth(estimated_ns, n_blocks, n_threads, [&](std::size_t block, int) {
    interrupt.check();
    const std::size_t begin = block * width, n = std::min(width, table.n_rows - begin);
    std::vector<std::uint8_t> codes((slots_.size() + depth_) * width);
    std::vector<double> sums(n_outputs_ * width, 0.0);
    code_block(table, begin, n, width, codes.data());
    std::uint8_t* masks = codes.data() + slots_.size() * width;
    for (std::size_t t = first; t < last; ++t) {
      const std::size_t root = forest_.root[t];
      const MaskTree tree{nodes_.data() + root, forest_.root[t + 1] - root, values_.data() + value_at_[t],
                          tables_.data() + table_at_[t]};
      evaluate(tree, codes.data(), masks, sums.data() + t % n_outputs_ * width);
    }
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < n_outputs_; ++k) out[(begin + i) * n_outputs_ + k] += sums[k * width + i];
  });
}

void Additive::add(const Table& table, std::size_t first, std::size_t last, int n_threads, Interrupt& interrupt,
                   double* out) const {
  if (is_masked_) return add_masked(table, first, last, n_threads, interrupt, out);
  constexpr std::size_t chunk = 256;
  const double estimated_ns = 50.0 * static_cast<double>(table.n_rows) * static_cast<double>(last - first);
  parallel_for_if_worth(estimated_ns, (table.n_rows + chunk - 1) / chunk, n_threads, [&](std::size_t c, int) {
    interrupt.check();
    std::vector<double> sums(n_outputs_);
    for (std::size_t r = c * chunk; r < std::min(table.n_rows, (c + 1) * chunk); ++r) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::size_t t = first; t < last; ++t) {
        std::uint32_t at = forest_.root[t];
        while (!forest_.nodes.is_leaf(at))
          at = next_node(forest_.nodes, at,
                         [&](std::uint32_t f) { return value_at(table.columns[f], static_cast<Row>(r)); });
        sums[t % n_outputs_] += forest_.nodes.value[at];
      }
      for (std::size_t k = 0; k < n_outputs_; ++k) out[r * n_outputs_ + k] += sums[k];
    }
  });
}

template <bool categories>
void Additive::walk_abreast(const double* known, double* sums) const {
  constexpr std::size_t abreast = 8;
  const CompactNode* nodes = compact_.nodes.data();
  std::array<std::uint32_t, abreast> at;
  for (std::size_t t = 0, k = 0; t < forest_.n_trees(); t += abreast) {
    const std::size_t n = std::min(abreast, forest_.n_trees() - t);
    for (std::size_t i = 0; i < abreast; ++i) at[i] = forest_.root[t + std::min(i, n - 1)];
    for (std::uint32_t moved = 1; moved != 0;) {
      moved = 0;
      for (std::size_t i = 0; i < abreast; ++i) {
        const CompactNode& node = nodes[at[i]];
        const std::uint32_t next = step<categories>(forest_.nodes, node, at[i], known[node.slot]);
        moved |= next ^ at[i];
        at[i] = next;
      }
    }
    for (std::size_t i = 0; i < n; ++i, k = k + 1 == n_outputs_ ? 0 : k + 1) sums[k] += forest_.nodes.value[at[i]];
  }
}

void Additive::walk_one(const double* row, double* sums) const {
  for (std::size_t t = 0, k = 0; t < forest_.n_trees(); ++t, k = k + 1 == n_outputs_ ? 0 : k + 1) {
    std::uint32_t at = forest_.root[t];
    while (!forest_.nodes.is_leaf(at)) at = next_node(forest_.nodes, at, [&](std::uint32_t f) { return row[f]; });
    sums[k] += forest_.nodes.value[at];
  }
}

void Additive::add_one(const double* row, double* out) const {
  std::array<double, 256> few;
  std::vector<double> many;
  const std::size_t n_known = compact_.used.size(), n = n_known + n_outputs_;
  if (n > few.size()) many.resize(n);
  double *known = n > few.size() ? many.data() : few.data(), *sums = known + n_known;
  std::fill_n(sums, n_outputs_, 0.0);
  if (compact_.nodes.empty() || !forest_.nodes.splits.empty()) {
    walk_one(row, sums);
  } else {
    for (std::size_t slot = 0; slot < n_known; ++slot) known[slot] = row[compact_.used[slot]];
    if (compact_.has_categories)
      walk_abreast<true>(known, sums);
    else
      walk_abreast<false>(known, sums);
  }
  for (std::size_t k = 0; k < n_outputs_; ++k) out[k] += sums[k];
}

}  // namespace spinney
