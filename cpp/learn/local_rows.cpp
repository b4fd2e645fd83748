#include "learn/local_rows.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <stdexcept>

#include "base/pool.h"
#include "boost/columns.h"
#include "boost/histograms.h"
#include "boost/part.h"
#include "learn/chunks.h"
#include "learn/scales.h"

namespace spinney {

void refuse_request() { throw std::invalid_argument("rows are asked for what they do not have"); }

// What the trees of a score have in turn.
struct LocalRows::Memory {
  Memory(const CodedTable& table, int n_threads)
      : packed(table.codes.n_rows),
        scratch(table.tiles.n_cells(), n_threads),
        parter(table.coding, table.codes, n_threads),
        histogram(new Packed[table.tiles.n_cells()]) {}
  std::vector<Row> rows;  // node by node
  LargeArray<Packed> packed;
  HistogramScratch scratch;
  RowParter parter;
  Histogram histogram;
  std::vector<Packed> cells;
};

struct LocalRows::TreeRows {
  TreeRows(Memory& r, const CodedTable& table, const BoostParams& given, const PackedScales& s, std::uint64_t key)
      : memory(r),
        params(given),
        coded(table),
        search(table.coding, params, s.units()),
        drawn(table.coding, params, key),
        cells(table.coding, drawn.of_tree()),
        nodes{{0, memory.rows.size()}} {}

  struct Range {
    std::size_t begin, end;
    std::uint32_t left = 0;  // name of the left child; 0: its rows are in ascending order
  };
  struct Ascending {
    std::size_t begin, end, of;
  };
  const Range& at(std::uint32_t name) const {
    if (name >= nodes.size()) refuse_request();
    return nodes[name];
  }
  // Runs of rows in ascending order that nodes are made of; `of` is a place among their names.
  std::vector<Ascending> ascending(std::span<const std::uint32_t> names) const {
    std::vector<Ascending> found;
    std::vector<std::uint32_t> below;
    for (std::size_t i = 0; i < names.size(); ++i)
      for (below.assign(1, names[i]); !below.empty();) {
        const Range& node = at(below.back());
        below.pop_back();
        if (node.left == 0)
          found.push_back({node.begin, node.end, i});
        else
          below.insert(below.end(), {node.left, node.left + 1});
      }
    return found;
  }
  HistogramSearch histograms(Interrupt& interrupt) const {
    return {coded.tiles, search, drawn.of_tree(), memory.packed.data(), memory.scratch, interrupt};
  }
  int threads_for(double ns) const { return ns < worth_a_wake_up_ns ? 1 : params.n_threads; }

  Memory& memory;
  const BoostParams& params;
  const CodedTable& coded;
  const SplitSearch search;
  const DrawnColumns drawn;
  const PlainCells cells;
  std::vector<Range> nodes;  // by name
};

LocalRows::LocalRows(BoostingState& state, Gradients& gradients, RowSample& sample)
    : state_(state), gradients_(gradients), sample_(sample), memory_(state.n_scores()), growing_(state.n_scores()) {}

LocalRows::~LocalRows() = default;

void LocalRows::end_round() {
  for (auto& tree : growing_) tree.reset();
}

LocalRows::TreeRows& LocalRows::tree_of(std::uint32_t score) {
  if (score >= growing_.size() || !growing_[score]) refuse_request();
  return *growing_[score];
}

DrawnRows LocalRows::plant(const RootsRequest& roots, CellSink sink, Interrupt& interrupt) {
  const std::uint32_t first = roots.first_tree, n_scores = state_.n_scores();
  if (roots.totals.size() != n_scores || first > n_scores || roots.n_trees > n_scores - first) refuse_request();
  state_.round = roots.round;
  gradients_.totals() = roots.totals;
  if (first == 0) n_weighted_ = sample_.draw_partition(roots.takes_all);
  end_round();
  const RowVector<Row>& rows = sample_.in_use();
  for (std::uint32_t k = first; k < first + roots.n_trees; ++k) {
    if (!memory_[k]) memory_[k] = std::make_unique<Memory>(*state_.coded, state_.n_threads());
    Memory& memory = *memory_[k];
    gradients_.quantise(k, memory.packed.data());
    memory.rows.assign(rows.begin(), rows.end());
    const PackedScales scales(roots.totals[k], state_.place.n_all_rows);
    growing_[k] =
        std::make_unique<TreeRows>(memory, *state_.coded, state_.tree_params(k), scales, state_.key_of_tree(k));
    put_cells(*growing_[k], 0, memory.rows.size(), true, sink, interrupt);
  }
  return {state_.place.first_row, rows.size(), n_weighted_, sample_.out_of_bag().size()};
}

void LocalRows::put_cells(TreeRows& tree, std::size_t begin, std::size_t end, bool is_root, CellSink sink,
                          Interrupt& interrupt) const {
  const HistogramSearch histograms = tree.histograms(interrupt);
  const std::size_t n = end - begin;
  const int n_threads = tree.threads_for(histograms.estimated_ns(static_cast<double>(n), static_cast<double>(n)));
  Memory& memory = tree.memory;
  const Packed total = histograms.fill(memory.histogram.get(), memory.rows.data() + begin, n, n_threads);
  if (is_root) sink({&total, 1});
  for (const std::uint32_t f : tree.cells.columns()) {
    const Packed* cells = state_.coded->tiles.cells(f, memory.histogram.get(), total, memory.cells);
    sink({cells, state_.coded->coding.columns[f].n_codes});
  }
}

std::vector<std::uint64_t> LocalRows::partition(std::uint32_t score, std::span<const NodeSplit> splits) {
  TreeRows& tree = tree_of(score);
  std::vector<std::uint64_t> found;
  for (const NodeSplit& wanted : splits) {
    const TreeRows::Range node = tree.at(wanted.node);
    Row* rows = tree.memory.rows.data() + node.begin;
    const std::size_t n = node.end - node.begin;
    if (wanted.split.feature >= state_.coded->coding.columns.size() || wanted.left != tree.nodes.size())
      refuse_request();
    if (node.left != 0) std::sort(rows, rows + n);  // it was parted by a split that left too few on a side
    const int n_threads = tree.threads_for(static_cast<double>(n));
    const std::size_t n_left = tree.memory.parter.part(wanted.split, rows, n, n_threads, 0);
    const std::size_t middle = node.begin + n_left;
    tree.nodes[wanted.node].left = wanted.left;
    tree.nodes.push_back({node.begin, middle});
    tree.nodes.push_back({middle, node.end});
    found.push_back(n_left);
  }
  return found;
}

void LocalRows::histograms(std::uint32_t score, std::span<const std::uint32_t> nodes, CellSink sink,
                           Interrupt& interrupt) {
  TreeRows& tree = tree_of(score);
  for (const std::uint32_t name : nodes) {
    const TreeRows::Range node = tree.at(name);
    put_cells(tree, node.begin, node.end, false, sink, interrupt);
  }
}

std::vector<Row> LocalRows::counts(std::uint32_t score, ColumnCount of) {
  const TreeRows& tree = tree_of(score);
  const TreeRows::Range node = tree.at(of.node);
  const Coding& coding = state_.coded->coding;
  if (of.column >= coding.columns.size()) refuse_request();
  std::vector<Row> counts(coding.columns[of.column].n_codes, 0);
  for (std::size_t i = node.begin; i < node.end; ++i)
    ++counts[state_.coded->codes.code(coding, of.column, tree.memory.rows[i])];
  return counts;
}

std::vector<LeafSums> LocalRows::leaf_sums(std::uint32_t k, std::span<const std::uint32_t> nodes) {
  const TreeRows& tree = tree_of(k);
  const std::vector<TreeRows::Ascending> runs = tree.ascending(nodes);
  const LeafScales scales(gradients_.totals()[k]);
  const Row* rows = tree.memory.rows.data();
  std::vector<std::atomic<std::int64_t>> g(nodes.size()), h(nodes.size()), w(nodes.size());
  for_each_piece(runs, std::span(tree.memory.rows), state_.n_rows(), state_.n_threads(), 4.0,
                 [&](std::size_t run, std::size_t begin, std::size_t end) {
                   const WholeSums sums = boost_kernels().sum_pairs(gradients_.of(k), rows + begin, end - begin,
                                                                    scales.gradient, scales.hessian);
                   std::int64_t weight = 0;
                   for (std::size_t i = begin; state_.rows.weight != nullptr && i < end; ++i)
                     weight += static_cast<std::int64_t>(sample_.weight_of(rows[i]) * state_.place.weight_scale);
                   const std::size_t of = runs[run].of;
                   g[of].fetch_add(sums.gradient, std::memory_order_relaxed);
                   h[of].fetch_add(sums.hessian, std::memory_order_relaxed);
                   w[of].fetch_add(weight, std::memory_order_relaxed);
                 });
  std::vector<LeafSums> found;
  for (std::size_t i = 0; i < nodes.size(); ++i) found.push_back({g[i].load(), h[i].load(), w[i].load()});
  return found;
}

void LocalRows::add(std::uint32_t k, std::span<const LeafAdded> leaves) {
  const TreeRows& tree = tree_of(k);
  std::vector<std::uint32_t> nodes;
  for (const LeafAdded& leaf : leaves) nodes.push_back(leaf.node);
  const std::vector<TreeRows::Ascending> runs = tree.ascending(nodes);
  const Row* rows = tree.memory.rows.data();
  double* scores = state_.rows.scores[k].data();
  for_each_piece(runs, std::span(tree.memory.rows), state_.n_rows(), state_.n_threads(), 2.0,
                 [&](std::size_t run, std::size_t begin, std::size_t end) {
                   const double value = leaves[runs[run].of].value;
                   for (std::size_t i = begin; i < end; ++i) scores[rows[i]] += value;
                 });
}

}  // namespace spinney
