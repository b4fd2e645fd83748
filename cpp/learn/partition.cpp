#include "learn/partition.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>

#include "base/pool.h"
#include "boost/columns.h"
#include "boost/local_rows.h"
#include "learn/chunks.h"
#include "learn/scales.h"
#include "tree/validate.h"

namespace spinney {

[[noreturn]] static void refuse_request() {
  throw std::invalid_argument("The request refers to rows, nodes or columns that do not exist.");
}

// Returns whether the column of a split and its codes exist.
static void check_split(const BoostSplit& split, const Coding& coding) {
  if (split.feature >= coding.columns.size()) refuse_request();
  const CodedColumn& column = coding.columns[split.feature];
  const auto exists = [&](std::uint32_t code) { return code < column.n_codes; };
  if (!column.is_category && !exists(split.cut)) refuse_request();
  if (!std::all_of(split.left_codes.begin(), split.left_codes.end(), exists)) refuse_request();
}

// Returns whether coded rows can be walked down the tree. For a tree in a message the rest is unknown, and values are
// not checked.
static void check_tree(const BoostedTree& grown, const Coding& coding) {
  const std::size_t n = grown.tree.size();
  if (grown.tree.value.size() != n || grown.cut.size() != n) refuse_request();
  Tree tree = grown.tree;
  for (std::vector<double>* unknown : {&tree.threshold, &tree.impurity, &tree.weight, &tree.value})
    unknown->assign(n, 0.0);
  tree.n_rows.assign(n, 0);
  std::vector<std::uint32_t> n_categories;
  for (const CodedColumn& c : coding.columns) n_categories.push_back(c.is_category ? c.n_codes : 0);
  if (!find_fault(tree, n_categories).empty()) refuse_request();
}

struct Partition::Memory {
  Memory(const CodedTable& table, int n_threads) : packed(table.codes.n_rows), local(table, n_threads) {}
  std::vector<Row> rows;  // node by node
  LargeArray<Packed> packed;
  LocalMemory local;
  std::vector<Packed> cells;
};

struct Partition::TreeRows {
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
    std::uint32_t left = 0;  // number of the left child; 0: its rows are ascending
  };
  const Range& at(std::uint32_t name) const {
    if (name >= nodes.size()) refuse_request();
    return nodes[name];
  }
  // Runs of ascending rows that nodes consist of; the `node` of each is an index into these node numbers.
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
  std::vector<Range> nodes;  // by node number
};

void Partition::TreeRows::put_cells(const Range& node, bool is_root, MessageWriter& to, Interrupt& interrupt) const {
  const HistogramSearch histograms(coded.tiles, search, drawn.of_tree(), memory.packed.data(), memory.local.scratch,
                                   interrupt);
  Histogram histogram = memory.local.pool.take(0);
  const std::size_t n = node.end - node.begin;
  SearchedNode filled{.histogram = histogram.get(), .rows = memory.rows.data() + node.begin, .terms = {}};
  filled.terms.n_rows = static_cast<Row>(n);
  const double estimated_ns = histograms.estimated_ns(static_cast<double>(n), static_cast<double>(n));
  histograms.init_root(filled, nullptr, threads_for(estimated_ns));
  const Packed total = packed(filled.terms.total);
  if (is_root) to.put(total);
  for (const std::uint32_t f : cells.columns())
    to.put_all(std::span(coded.tiles.cells(f, histogram.get(), total, memory.cells), coded.coding.columns[f].n_codes));
  memory.local.pool.give_back(std::move(histogram), 0);
}

Partition::Partition(BoostingRows rows, BoostingRows held_out, BoostingParams params,
                     std::shared_ptr<const CodedTable> coded, const TablePlace& place)
    : state_(std::move(rows), std::move(held_out), std::move(params), place),
      gradients_(state_),
      sample_(state_, gradients_),
      leaves_(state_, gradients_, sample_),
      memory_(state_.n_scores()),
      growing_(state_.n_scores()) {
  state_.coded = std::move(coded);
  const std::size_t n = state_.n_rows();
  if (place.first_row % chunk_rows != 0 || place.first_row + n > place.n_all_rows) refuse_request();
  if (place.first_row + n < place.n_all_rows && n % chunk_rows != 0) refuse_request();
}

Partition::~Partition() = default;

std::string Partition::answer(std::string_view request, Interrupt& interrupt) {
  MessageReader from(request);
  MessageWriter to;
  switch (static_cast<Request>(from.get<std::uint8_t>())) {
    case Request::gradients:
      put_state(to);
      break;
    case Request::init_root:
      init_root(from, to, interrupt);
      break;
    case Request::split:
      split(from, to, interrupt);
      leaf_sums(from, to);
      break;
    case Request::leaf_sums:
      leaf_sums(from, to);
      break;
    case Request::add:
      add(from, to);
      break;
    case Request::out_of_bag:
      out_of_bag(from, to);
      break;
    case Request::held_scores:
      put_scores(state_.held_out.scores, to);
      break;
    case Request::save_scores:
      best_scores_ = state_.held_out.scores;
      break;
    case Request::saved_scores:
      put_scores(best_scores_, to);
      break;
    default:
      refuse_request();
  }
  return to.take();
}

void Partition::put_state(MessageWriter& to) {
  std::vector<LossSum> losses;
  to.put_run(gradients_.fill_chunks(&losses));
  to.put_run(losses);
  to.put_run(state_.held_out.table == nullptr ? std::vector<LossSum>{} : gradients_.chunk_losses(state_.held_out));
}

// Trees come with the leaf numbers if they were grown on these rows; else all rows are walked down the tree.
void Partition::add(MessageReader& from, MessageWriter& to) {
  const bool wants_state = from.get<std::uint8_t>() != 0;
  for (auto n_trees = from.get<std::uint32_t>(); n_trees > 0; --n_trees) {
    const auto k = from.get<std::uint32_t>();
    BoostedTree grown;
    Tree& tree = grown.tree;
    tree.feature = from.get_run<std::int32_t>();
    tree.right = from.get_run<std::uint32_t>();
    tree.flags = from.get_run<std::uint8_t>();
    tree.set = from.get_run<std::uint32_t>();
    tree.sets = from.get_run<std::uint32_t>();
    tree.value = from.get_run<double>();
    grown.cut = from.get_run<std::uint32_t>();
    const std::vector<std::uint32_t> nodes = from.get_run<std::uint32_t>(), names = from.get_run<std::uint32_t>();
    if (k >= state_.n_scores() || nodes.size() != names.size()) refuse_request();
    check_tree(grown, state_.coded->coding);
    if (names.empty()) {
      std::vector<Row> every(state_.n_rows());
      std::iota(every.begin(), every.end(), Row{0});
      leaves_.walk({&grown, 1}, k, state_.coded->codes, every, state_.rows);
    } else {
      add_leaves(grown, k, nodes, names);
      leaves_.walk({&grown, 1}, k, state_.coded->codes, sample_.out_of_bag(), state_.rows);
    }
    if (state_.held_out.table != nullptr)
      leaves_.walk({&grown, 1}, k, state_.coded->codes, state_.validation_rows, state_.held_out);
  }
  if (!wants_state) return;
  end_round();
  put_state(to);
}

// Every step-th row of the table's out-of-bag rows: those with a weight, then those without.
void Partition::out_of_bag(MessageReader& from, MessageWriter& to) {
  const auto step = std::max<std::uint64_t>(1, from.get<std::uint64_t>());
  const auto n_all = from.get<std::uint64_t>();
  const auto places = from.get_run<
      std::uint64_t>();  // by partition: its first row, and the numbers of earlier rows with and without weight
  for (std::size_t p = 0; p + 2 < places.size(); p += 3) {
    if (places[p] != state_.place.first_row) continue;
    for (std::size_t i = 0; i < sample_.out_of_bag().size(); ++i) {
      const std::uint64_t place = i < n_weighted_ ? places[p + 1] + i : n_all + places[p + 2] + (i - n_weighted_);
      if (place % step != 0) continue;
      const Row r = sample_.out_of_bag()[i];
      to.put<std::uint64_t>(place / step);
      for (const PlacedComponent& part : state_.components) to.put<double>(state_.target_of(part, state_.rows)[r]);
      to.put<double>(state_.rows.weight == nullptr ? 1.0 : state_.rows.weight[r]);
      for (const auto& scores : state_.rows.scores) to.put<double>(scores[r]);
    }
  }
}

void Partition::put_scores(const std::vector<RowVector<double>>& scores, MessageWriter& to) const {
  if (scores.size() != state_.n_scores()) refuse_request();
  for (const auto& of_score : scores) to.put_all(std::span<const double>(of_score));
}

// ---- trees of a round ------------------------------------------------------------------------------------

void Partition::end_round() {
  for (auto& tree : growing_) tree.reset();
}

Partition::TreeRows& Partition::tree_of(std::uint32_t score) {
  if (score >= growing_.size() || !growing_[score]) refuse_request();
  return *growing_[score];
}

void Partition::init_root(MessageReader& from, MessageWriter& to, Interrupt& interrupt) {
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

void Partition::split(MessageReader& from, MessageWriter& to, Interrupt& interrupt) {
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

// Returns the number of rows that go left.
std::size_t Partition::partition(TreeRows& tree, const NodeSplit& request) {
  const TreeRows::Range node = tree.at(request.node);
  Row* rows = tree.memory.rows.data() + node.begin;
  const std::size_t n = node.end - node.begin;
  if (request.left != tree.nodes.size()) refuse_request();
  check_split(request.split, state_.coded->coding);
  if (node.left != 0) std::sort(rows, rows + n);  // an earlier split left too few rows on a side
  const int n_threads = tree.threads_for(static_cast<double>(n));
  NodeRows parted{.split = &request.split, .rows = rows, .n = n};
  tree.memory.local.partitioner.part({&parted, 1}, {n_threads, 0});
  const std::size_t middle = node.begin + parted.n_left;
  tree.nodes[request.node].left = request.left;
  tree.nodes.push_back({node.begin, middle});
  tree.nodes.push_back({middle, node.end});
  return parted.n_left;
}

void Partition::put_counts(const TreeRows& tree, const NodeHistogram& request, MessageWriter& to) const {
  const TreeRows::Range node = tree.at(request.node);
  const Coding& coding = state_.coded->coding;
  if (request.counted_column >= coding.columns.size()) refuse_request();
  std::vector<Packed> counts(coding.columns[request.counted_column].n_codes, 0);
  for (std::size_t i = node.begin; i < node.end; ++i)
    ++counts[state_.coded->codes.code(coding, request.counted_column, tree.memory.rows[i])];
  to.put_all(std::span<const Packed>(counts));
}

void Partition::leaf_sums(MessageReader& from, MessageWriter& to) {
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

void Partition::add_leaves(BoostedTree& grown, std::uint32_t score, std::span<const std::uint32_t> nodes,
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
