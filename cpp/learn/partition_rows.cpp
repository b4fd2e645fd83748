#include "learn/partition_rows.h"

#include <algorithm>
#include <stdexcept>

#include "base/pool.h"
#include "boost/columns.h"
#include "boost/local_rows.h"
#include "learn/scales.h"

namespace spinney {

void refuse_request() { throw std::invalid_argument("a request is for rows, nodes or columns that do not exist"); }

struct PartitionRows::Memory {
  Memory(const CodedTable& table, int n_threads) : packed(table.codes.n_rows), local(table, n_threads) {}
  std::vector<Row> rows;  // node by node
  LargeArray<Packed> packed;
  LocalMemory local;
  std::vector<Packed> cells;
};

struct PartitionRows::TreeRows {
  TreeRows(Memory& of_score, const CodedTable& table, const BoostParams& of_tree, const PackedScales& s,
           std::uint64_t key)
      : memory(of_score),
        params(of_tree),
        coded(table),
        search(table.coding, params, s.units()),
        drawn(table.coding, params, key),
        cells(table.coding, drawn.of_tree()),
        nodes{{0, memory.rows.size()}} {}

  struct Range {
    std::size_t begin, end;
    std::uint32_t left = 0;  // name of the left child; 0: its rows are in ascending order
  };
  const Range& at(std::uint32_t name) const {
    if (name >= nodes.size()) refuse_request();
    return nodes[name];
  }
  // Runs of rows in ascending order that nodes consist of; the `node` of each is a place among these names.
  std::vector<GrownLeaf> runs_of(std::span<const std::uint32_t> names) const {
    std::vector<GrownLeaf> found;
    std::vector<std::uint32_t> below;
    for (std::uint32_t i = 0; i < names.size(); ++i)
      for (below.assign(1, names[i]); !below.empty();) {
        const Range& node = at(below.back());
        below.pop_back();
        if (node.left == 0)
          found.push_back({i, node.begin, node.end, {}});
        else
          below.insert(below.end(), {node.left, node.left + 1});
      }
    return found;
  }
  int threads_for(double ns) const { return ns < worth_a_wake_up_ns ? 1 : params.n_threads; }
  void put_cells(const Range& node, bool is_root, MessageWriter& to, Interrupt& interrupt) const;

  Memory& memory;
  const BoostParams& params;
  const CodedTable& coded;
  const SplitSearch search;
  const DrawnColumns drawn;
  const PlainCells cells;
  std::vector<Range> nodes;  // by name
};

void PartitionRows::TreeRows::put_cells(const Range& node, bool is_root, MessageWriter& to,
                                        Interrupt& interrupt) const {
  const HistogramSearch histograms(coded.tiles, search, drawn.of_tree(), memory.packed.data(), memory.local.scratch,
                                   interrupt);
  Histogram histogram = memory.local.pool.take(0);
  const std::size_t n = node.end - node.begin;
  SearchedNode filled{.histogram = histogram.get(), .rows = memory.rows.data() + node.begin, .terms = {}};
  filled.terms.n_rows = static_cast<Row>(n);
  const double estimated_ns = histograms.estimated_ns(static_cast<double>(n), static_cast<double>(n));
  histograms.plant(filled, nullptr, threads_for(estimated_ns));
  const Packed total = packed(filled.terms.total);
  if (is_root) to.put(total);
  for (const std::uint32_t f : cells.columns())
    to.put_all(std::span(coded.tiles.cells(f, histogram.get(), total, memory.cells), coded.coding.columns[f].n_codes));
  memory.local.pool.give_back(std::move(histogram), 0);
}

PartitionRows::PartitionRows(BoostingState& state, Gradients& gradients, RowSample& sample, const LeafSetting& leaves)
    : state_(state),
      gradients_(gradients),
      sample_(sample),
      leaves_(leaves),
      memory_(state.n_scores()),
      growing_(state.n_scores()) {}

PartitionRows::~PartitionRows() = default;

void PartitionRows::end_round() {
  for (auto& tree : growing_) tree.reset();
}

PartitionRows::TreeRows& PartitionRows::tree_of(std::uint32_t score) {
  if (score >= growing_.size() || !growing_[score]) refuse_request();
  return *growing_[score];
}

void PartitionRows::plant(MessageReader& from, MessageWriter& to, Interrupt& interrupt) {
  const RootsRequest roots = get_roots(from);
  const std::uint32_t first = roots.first_tree, n_scores = state_.n_scores();
  if (roots.totals.size() != n_scores || first > n_scores || roots.n_trees > n_scores - first) refuse_request();
  state_.round = roots.round;
  gradients_.totals() = roots.totals;
  if (first == 0) n_weighted_ = sample_.draw_partition(roots.takes_all);
  end_round();
  const RowVector<Row>& rows = sample_.in_use();
  to.put(DrawnRows{state_.place.first_row, rows.size(), n_weighted_, sample_.out_of_bag().size()});
  for (std::uint32_t k = first; k < first + roots.n_trees; ++k) {
    if (!memory_[k]) memory_[k] = std::make_unique<Memory>(*state_.coded, state_.n_threads());
    Memory& memory = *memory_[k];
    gradients_.quantise(k, memory.packed.data());
    memory.rows.assign(rows.begin(), rows.end());
    const PackedScales scales(roots.totals[k], state_.place.n_all_rows);
    growing_[k] =
        std::make_unique<TreeRows>(memory, *state_.coded, state_.tree_params(k), scales, state_.key_of_tree(k));
    growing_[k]->put_cells(growing_[k]->nodes[0], true, to, interrupt);
  }
}

void PartitionRows::split(MessageReader& from, MessageWriter& to, Interrupt& interrupt) {
  for (auto n = from.get<std::uint32_t>(); n > 0; --n) {
    const RowBatch batch = get_batch(from);
    TreeRows& tree = tree_of(batch.tree);
    for (const NodeSplit& request : batch.splits) to.put<std::uint64_t>(partition(tree, request));
    for (const NodeHistogram& request : batch.histograms)
      if (request.counted_column == NodeHistogram::all_columns)
        tree.put_cells(tree.at(request.node), false, to, interrupt);
      else
        put_counts(tree, request, to);
  }
}

// Returns how many rows go left.
std::size_t PartitionRows::partition(TreeRows& tree, const NodeSplit& request) {
  const TreeRows::Range node = tree.at(request.node);
  Row* rows = tree.memory.rows.data() + node.begin;
  const std::size_t n = node.end - node.begin;
  if (request.split.feature >= state_.coded->coding.columns.size() || request.left != tree.nodes.size())
    refuse_request();
  if (node.left != 0) std::sort(rows, rows + n);  // an earlier split had left too few on a side
  const int n_threads = tree.threads_for(static_cast<double>(n));
  const std::size_t n_left = tree.memory.local.parter.part(request.split, rows, n, n_threads, 0);
  const std::size_t middle = node.begin + n_left;
  tree.nodes[request.node].left = request.left;
  tree.nodes.push_back({node.begin, middle});
  tree.nodes.push_back({middle, node.end});
  return n_left;
}

void PartitionRows::put_counts(const TreeRows& tree, const NodeHistogram& request, MessageWriter& to) const {
  const TreeRows::Range node = tree.at(request.node);
  const Coding& coding = state_.coded->coding;
  if (request.counted_column >= coding.columns.size()) refuse_request();
  std::vector<Packed> counts(coding.columns[request.counted_column].n_codes, 0);
  for (std::size_t i = node.begin; i < node.end; ++i)
    ++counts[state_.coded->codes.code(coding, request.counted_column, tree.memory.rows[i])];
  to.put_all(std::span<const Packed>(counts));
}

void PartitionRows::leaf_sums(MessageReader& from, MessageWriter& to) {
  for (auto n_trees = from.get<std::uint32_t>(); n_trees > 0; --n_trees) {
    const auto k = from.get<std::uint32_t>();
    const TreeRows& tree = tree_of(k);
    const auto names = from.get_run<std::uint32_t>();
    const std::vector<GrownLeaf> runs = tree.runs_of(names);
    const std::vector<WholeSums> sums = leaves_.gradient_sums(runs, k, tree.memory.rows);
    std::vector<std::int64_t> weights(runs.size(), 0);
    if (state_.rows.weight != nullptr) weights = leaves_.weight_sums(runs, tree.memory.rows);
    std::vector<LeafSums> found(names.size());
    for (std::size_t i = 0; i < runs.size(); ++i)
      found[runs[i].node] += {sums[i].gradient, sums[i].hessian, weights[i]};
    for (const LeafSums& of_node : found) to.put(of_node);
  }
}

void PartitionRows::add(BoostedTree& grown, std::uint32_t score, std::span<const std::uint32_t> nodes,
                        std::span<const std::uint32_t> names) {
  const TreeRows& tree = tree_of(score);
  grown.leaves = tree.runs_of(names);
  for (GrownLeaf& run : grown.leaves) {
    run.node = nodes[run.node];
    if (run.node >= grown.tree.value.size()) refuse_request();
  }
  leaves_.add_to_scores(grown, score, tree.memory.rows);
}

}  // namespace spinney
