#include "predict/additive.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>

#include "base/pool.h"
#include "data/read.h"

namespace spinney {

namespace {

constexpr std::uint32_t most_leaves = 256, cuts_per_slot = 254, most_kinds = 255, missing_kind = 255;
constexpr std::int32_t lowest_code = -128, highest_code = 127;  // the latter only for missing values
constexpr std::size_t most_to_prepare = std::size_t{1} << 25;   // categories times nodes

// Categories from here on are not distinguished by any set.
std::uint32_t end_of_set(const std::uint32_t* set) {
  const std::uint32_t n = *set & ~Tree::list_mark;
  if (*set & Tree::list_mark) return n == 0 ? 0 : set[n] + 1;
  return 32 * n;
}

bool sends_left(const Tree& nodes, std::uint32_t node, std::uint32_t code) {
  return category_goes_left(nodes.sets.data() + nodes.set[node], nodes.flags[node] & Tree::default_left, code);
}

struct alignas(64) CacheLine {
  std::byte bytes[64];
};

// Groups of categories that all nodes so far send to the same side.
class Kinds {
 public:
  explicit Kinds(std::size_t n_categories) : of(n_categories, 0) {}

  // Returns false and changes nothing if a byte can no longer hold the group numbers.
  bool refine(const std::vector<std::uint8_t>& left) {
    std::vector<std::int32_t> renumbered(2 * n, -1);
    std::vector<std::uint8_t> next(of.size());
    std::int32_t n_next = 0;
    for (std::size_t c = 0; c < of.size(); ++c) {
      std::int32_t& id = renumbered[2 * std::size_t{of[c]} + left[c]];
      if (id < 0) {
        if (n_next == static_cast<std::int32_t>(most_kinds)) return false;
        id = n_next++;
      }
      next[c] = static_cast<std::uint8_t>(id);
    }
    of.swap(next);
    n = static_cast<std::size_t>(n_next);
    return true;
  }

  std::vector<std::uint8_t> of;  // by category
  std::size_t n = 1;
};

}  // namespace

Additive::Additive(Forest forest, std::size_t n_outputs)
    : forest_(std::move(forest)), n_outputs_(n_outputs), walker_(forest_) {
  if (n_outputs == 0 || forest_.n_trees() % n_outputs != 0)
    throw std::invalid_argument("The number of trees must be a multiple of the number of outputs.");
  if (forest_.n_trees() > 0 && forest_.nodes.value_width != 1)
    throw std::invalid_argument("The leaves must have one value.");
  is_masked_ = prepare();
}

bool Additive::prepare() {
  for (std::size_t t = 0; t < forest_.n_trees(); ++t)
    if ((forest_.root[t + 1] - forest_.root[t] + 1) / 2 > most_leaves) return false;
  if (!forest_.nodes.splits.empty() || has_linear_leaves() || !prepare_slots()) return false;
  node_at_.push_back(0);
  for (std::size_t t = 0; t < forest_.n_trees(); ++t) prepare_tree(t);
  values_.resize(values_.size() + 32, 0.0);
  return true;
}

bool Additive::prepare_slots() {
  const Tree& nodes = forest_.nodes;
  std::vector<std::vector<double>> cuts;
  std::vector<std::vector<std::uint32_t>> category_nodes;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (nodes.is_leaf(i)) continue;
    const auto f = static_cast<std::size_t>(nodes.feature[i]);
    if (f >= cuts.size()) {
      cuts.resize(f + 1);
      category_nodes.resize(f + 1);
    }
    if (nodes.flags[i] & Tree::category)
      category_nodes[f].push_back(i);
    else
      cuts[f].push_back(nodes.threshold[i]);
  }
  slot_of_.assign(cuts.size(), 0);
  slot_of_node_.assign(nodes.size(), 0);
  for (std::uint32_t f = 0; f < cuts.size(); ++f) {
    slot_of_[f] = static_cast<std::uint16_t>(slots_.size());
    if (!category_nodes[f].empty() && !prepare_categories(f, category_nodes[f])) return false;
    std::sort(cuts[f].begin(), cuts[f].end());
    cuts[f].erase(std::unique(cuts[f].begin(), cuts[f].end()), cuts[f].end());
    for (std::uint32_t first = 0; first < cuts[f].size(); first += cuts_per_slot) {
      for (const bool missing_left : {true, false}) {
        Slot& slot = slots_.emplace_back();
        slot.column = f;
        slot.first_cut = first;
        slot.missing_left = missing_left;
        if (first == 0 && missing_left) slot.cuts = Thresholds(cuts[f]);
      }
    }
    if (slots_.size() > UINT16_MAX) return false;
  }
  return true;
}

// A slot serves as many consecutive nodes as possible.
bool Additive::prepare_categories(std::uint32_t column, const std::vector<std::uint32_t>& nodes) {
  const Tree& tree = forest_.nodes;
  std::uint32_t end = 0;
  for (const std::uint32_t node : nodes) end = std::max(end, end_of_set(tree.sets.data() + tree.set[node]));
  const std::size_t n_categories = std::size_t{end} + 1;
  if (n_categories * nodes.size() > most_to_prepare) return false;
  Kinds kinds(n_categories);
  std::vector<std::uint8_t> left(n_categories);
  const auto close = [&] {
    Slot& slot = slots_.emplace_back();
    slot.column = column;
    slot.is_category = true;
    slot.kind = std::move(kinds.of);
    kinds = Kinds(n_categories);
  };
  for (const std::uint32_t node : nodes) {
    for (std::uint32_t code = 0; code < n_categories; ++code) left[code] = sends_left(tree, node, code);
    if (!kinds.refine(left)) {
      close();
      if (slots_.size() >= UINT16_MAX) return false;
      kinds.refine(left);
    }
    slot_of_node_[node] = static_cast<std::uint16_t>(slots_.size());
  }
  close();
  return true;
}

void Additive::prepare_tree(std::size_t t) {
  const Tree& tree = forest_.nodes;
  const std::uint32_t root = forest_.root[t], n = forest_.root[t + 1] - root;
  value_at_.push_back(values_.size());
  table_at_.push_back(tables_.size());
  Places places{root, std::vector<std::uint8_t>(n, 0), std::vector<std::uint8_t>(n, 0)};
  std::size_t n_leaves = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    places.n_leaves_before[i] = static_cast<std::uint8_t>(n_leaves);
    if (!tree.is_leaf(root + i)) continue;
    values_.push_back(tree.value[root + i]);
    ++n_leaves;
  }
  n_leaves_ = std::max(n_leaves_, n_leaves);
  for (std::uint32_t i = n; i-- > 0;) {
    if (tree.is_leaf(root + i)) continue;
    const std::uint8_t left = places.n_needed[i + 1], right = places.n_needed[tree.right[root + i] - root];
    places.n_needed[i] = static_cast<std::uint8_t>(std::max<int>(std::max(left, right), std::min(left, right) + 1));
  }
  n_places_ = std::max(n_places_, std::size_t{places.n_needed[0]});
  if (!tree.is_leaf(root)) prepare_node(places, root, 0);
  node_at_.push_back(nodes_.size());
}

// Writes a split after those below it.
void Additive::prepare_node(const Places& places, std::uint32_t i, std::uint8_t place) {
  const Tree& tree = forest_.nodes;
  const std::uint32_t left = i + 1, right = tree.right[i];
  const bool right_first = places.n_needed[right - places.root] > places.n_needed[left - places.root];
  std::uint8_t next = place;
  const auto prepare_child = [&](std::uint32_t child) {
    if (tree.is_leaf(child)) return std::uint16_t{places.n_leaves_before[child - places.root]};
    prepare_node(places, child, next);
    return static_cast<std::uint16_t>(n_leaf_lines + lines_per_place * next++);
  };
  MaskNode node{};
  node.place = place;
  if (right_first) node.right = prepare_child(right);
  node.left = prepare_child(left);
  if (!right_first) node.right = prepare_child(right);
  test_of(i, node);
  nodes_.push_back(node);
}

// The test of a node: the slot, the cut and, for categories, the table.
void Additive::test_of(std::uint32_t i, MaskNode& node) {
  const Tree& tree = forest_.nodes;
  const bool missing_left = tree.flags[i] & Tree::missing_left;
  if (tree.flags[i] & Tree::category) {
    node.is_category = true;
    node.slot = slot_of_node_[i];
    std::array<std::int8_t, 256> goes_right{};
    const std::vector<std::uint8_t>& kind = slots_[node.slot].kind;
    for (std::uint32_t code = 0; code < kind.size(); ++code) goes_right[kind[code]] = !sends_left(tree, i, code);
    goes_right[missing_kind] = !missing_left;
    tables_.insert(tables_.end(), goes_right.begin(), goes_right.end());
    return;
  }
  const std::uint32_t first = slot_of_[static_cast<std::size_t>(tree.feature[i])];
  std::uint32_t cut = 0;
  coded_kernels().rank(slots_[first].cuts.levels(), &tree.threshold[i], 1, &cut);
  node.slot = static_cast<std::uint16_t>(first + 2 * (cut / cuts_per_slot) + !missing_left);
  node.cut = static_cast<std::int8_t>(static_cast<std::int32_t>(cut % cuts_per_slot) + lowest_code);
}

// Codes of n rows, `width` bytes per slot.
void Additive::code_block(const Table& table, std::size_t begin, std::size_t n, std::size_t width,
                          std::int8_t* codes) const {
  std::array<Row, many_rows> rows;
  std::array<double, many_rows> values{};
  std::array<std::uint32_t, many_rows> rank;
  std::iota(rows.begin(), rows.end(), static_cast<Row>(begin));
  bool has_missing = false;
  for (std::size_t s = 0; s < slots_.size(); ++s, codes += width) {
    const Slot& slot = slots_[s];
    if (s == 0 || slots_[s - 1].column != slot.column) {
      has_missing = false;
      read_values(table.columns[slot.column], rows.data(), n, values.data());
      for (std::size_t i = 0; i < n; ++i) has_missing |= values[i] != values[i];
      if (!slot.is_category) coded_kernels().rank(slot.cuts.levels(), values.data(), n, rank.data());
    }
    if (slot.is_category) {
      const double beyond = static_cast<double>(slot.kind.size() - 1);
      for (std::size_t i = 0; i < n; ++i) {
        const bool missing = values[i] != values[i];
        codes[i] = static_cast<std::int8_t>(missing ? missing_kind
                                                    : slot.kind[static_cast<std::size_t>(std::min(values[i], beyond))]);
      }
    } else if (slot.missing_left) {  // no cut is below a missing value
      const auto first = static_cast<std::int32_t>(slot.first_cut);
      for (std::size_t i = 0; i < n; ++i)
        codes[i] = static_cast<std::int8_t>(
            std::clamp(static_cast<std::int32_t>(rank[i]) - first, 0, static_cast<std::int32_t>(cuts_per_slot)) +
            lowest_code);
    } else {
      std::copy_n(codes - width, n, codes);
      for (std::size_t i = 0; has_missing && i < n; ++i)
        if (values[i] != values[i]) codes[i] = highest_code;
    }
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
    const std::size_t n_lines = n_leaf_lines + n_places_ * lines_per_place;
    std::vector<CacheLine> buffer(n_lines + (n_outputs_ * sizeof(double) + slots_.size()) * width / sizeof(CacheLine));
    std::uint8_t* lines = reinterpret_cast<std::uint8_t*>(buffer.data());
    double* sums = reinterpret_cast<double*>(lines + n_lines * line_rows);
    std::int8_t* codes = reinterpret_cast<std::int8_t*>(sums + n_outputs_ * width);
    for (std::size_t k = 0; k < n_leaves_; ++k)
      std::fill_n(lines + k * line_rows, line_rows, static_cast<std::uint8_t>(k));
    code_block(table, begin, n, width, codes);
    for (std::size_t t = first; t < last; ++t) {
      evaluate(mask_tree(t), codes, lines, sums + t % n_outputs_ * width);
    }
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < n_outputs_; ++k) out[(begin + i) * n_outputs_ + k] += sums[k * width + i];
  });
}

void Additive::add(const Table& table, std::size_t first, std::size_t last, int n_threads, Interrupt& interrupt,
                   double* out) const {
  constexpr std::size_t chunk = 64, most_walked = 3;  // masks take as long for one row as for 64
  const bool walks = !is_masked_ || table.n_rows <= most_walked;
  const CodedForest* coded = nullptr;
  if (walks && !has_linear_leaves()) coded = walker_.coded_for(table.n_rows * (last - first), n_threads, interrupt);
  if (is_masked_ && coded == nullptr) return add_masked(table, first, last, n_threads, interrupt, out);
  const std::size_t n_columns = table.n_columns();
  const double estimated_ns = 30.0 * static_cast<double>(table.n_rows) * static_cast<double>(last - first);
  parallel_for_if_worth(estimated_ns, (table.n_rows + chunk - 1) / chunk, n_threads, [&](std::size_t c, int) {
    interrupt.check();
    const std::size_t begin = c * chunk, n = std::min(chunk, table.n_rows - begin);
    std::vector<double> values(n * n_columns), sums(n_outputs_);
    std::array<Row, chunk> rows;
    std::iota(rows.begin(), rows.end(), static_cast<Row>(begin));
    for (std::size_t f = 0; f < n_columns; ++f)
      read_rows(table.columns[f], rows.data(), n, [&](std::size_t i, double v) { values[i * n_columns + f] = v; });
    for (std::size_t i = 0; i < n; ++i) {
      std::fill(sums.begin(), sums.end(), 0.0);
      walk_row(values.data() + i * n_columns, first, last, sums.data());
      for (std::size_t k = 0; k < n_outputs_; ++k) out[(begin + i) * n_outputs_ + k] += sums[k];
    }
  });
}

// Adds the trees' values for one row, given as the numbers of all columns, to `sums`.
void Additive::walk_row(const double* row, std::size_t first, std::size_t last, double* sums) const {
  if (has_linear_leaves()) return walk_linear_leaves(row, first, last, sums);
  std::size_t k = first % n_outputs_;
  walker_.visit_one(row, first, last, [&](std::size_t, const double* value) {
    sums[k] += *value;
    k = k + 1 == n_outputs_ ? 0 : k + 1;
  });
}

// Evaluates linear leaves with the row.
void Additive::walk_linear_leaves(const double* row, std::size_t first, std::size_t last, double* sums) const {
  const Tree& nodes = forest_.nodes;
  const auto value_of = [&](std::uint32_t f) { return row[f]; };
  for (std::size_t t = first; t < last; ++t) {
    std::uint32_t at = forest_.root[t];
    while (!nodes.is_leaf(at)) at = goes_left(nodes, at, row[nodes.feature[at]]) ? at + 1 : nodes.right[at];
    sums[t % n_outputs_] += leaf_value(nodes, at, value_of);
  }
}

void Additive::add_one(const double* row, double* out) const {
  if (n_outputs_ == 1) {
    double sum = 0;
    walk_row(row, 0, forest_.n_trees(), &sum);
    out[0] += sum;
    return;
  }
  std::array<double, 16> few{};
  std::vector<double> many(n_outputs_ > few.size() ? n_outputs_ : 0, 0.0);
  double* sums = many.empty() ? few.data() : many.data();
  walk_row(row, 0, forest_.n_trees(), sums);
  for (std::size_t k = 0; k < n_outputs_; ++k) out[k] += sums[k];
}

}  // namespace spinney
