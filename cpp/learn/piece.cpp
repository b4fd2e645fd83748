#include "learn/piece.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <span>
#include <stdexcept>

#include "base/pool.h"
#include "boost/columns.h"
#include "boost/part.h"
#include "learn/chunks.h"
#include "learn/scales.h"

namespace spinney {

namespace {

[[noreturn]] void refuse() { throw std::invalid_argument("a piece is asked for what it does not have"); }

}  // namespace

// What the trees of a score have in turn.
struct Piece::Room {
  Room(const CodedTable& table, int n_threads)
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

struct Piece::TreeRows {
  TreeRows(Room& r, const CodedTable& table, const BoostParams& given, const PackedScales& s, std::uint64_t key)
      : room(r),
        params(given),
        coded(table),
        search(table.coding, params, s.units()),
        drawn(table.coding, params, key),
        cells(table.coding, drawn.of_tree()),
        nodes{{0, room.rows.size()}} {}

  struct Range {
    std::size_t begin, end;
    std::uint32_t left = 0;  // name of the left child; 0: its rows are in ascending order
  };
  struct Ascending {
    std::size_t begin, end, of;
  };
  const Range& at(std::uint32_t name) const {
    if (name >= nodes.size()) refuse();
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
    return {coded.tiles, search, drawn.of_tree(), room.packed.data(), room.scratch, interrupt};
  }
  int threads_for(double ns) const { return ns < worth_a_wake_up_ns ? 1 : params.n_threads; }

  Room& room;
  const BoostParams& params;
  const CodedTable& coded;
  const SplitSearch search;
  const DrawnColumns drawn;
  const PlainCells cells;
  std::vector<Range> nodes;  // by name
};

Piece::Piece(BoostingRows rows, BoostingRows held_out, BoostingParams params, std::shared_ptr<const CodedTable> coded,
             const TablePlace& place)
    : state_(std::move(rows), std::move(held_out), std::move(params), place),
      gradients_(state_),
      sample_(state_, gradients_),
      leaves_(state_, gradients_, sample_),
      rooms_(state_.n_scores()),
      growing_(state_.n_scores()) {
  state_.coded = std::move(coded);
  const std::size_t n = state_.n_rows();
  if (place.first_row % chunk_rows != 0 || place.first_row + n > place.n_all_rows) refuse();
  if (place.first_row + n < place.n_all_rows && n % chunk_rows != 0) refuse();
}

Piece::~Piece() = default;

std::string Piece::answer(std::string_view question, Interrupt& interrupt) {
  MessageReader from(question);
  MessageWriter to;
  switch (static_cast<Question>(from.get<std::uint8_t>())) {
    case Question::gradients:
      put_state(to);
      break;
    case Question::plant:
      plant(from, to, interrupt);
      break;
    case Question::divide:
      divide(from, to, interrupt);
      leaf_sums(from, to);
      break;
    case Question::leaf_sums:
      leaf_sums(from, to);
      break;
    case Question::add:
      add(from, to);
      break;
    case Question::out_of_bag:
      out_of_bag(from, to);
      break;
    case Question::held_scores:
      put_scores(state_.held_out.scores, to);
      break;
    case Question::keep_scores:
      kept_ = state_.held_out.scores;
      break;
    case Question::kept_scores:
      put_scores(kept_, to);
      break;
    default:
      refuse();
  }
  return to.take();
}

void Piece::put_state(MessageWriter& to) {
  std::vector<LossSum> losses;
  to.put_run(gradients_.fill_chunks(&losses));
  to.put_run(losses);
  to.put_run(state_.held_out.table == nullptr ? std::vector<LossSum>{} : gradients_.chunk_losses(state_.held_out));
}

void Piece::plant(MessageReader& from, MessageWriter& to, Interrupt& interrupt) {
  state_.round = from.get<std::uint32_t>();
  gradients_.totals() = from.get_run<GradientSums>();
  const auto first = from.get<std::uint32_t>(), n_trees = from.get<std::uint32_t>();
  const bool takes_all = from.get<std::uint8_t>() != 0;
  if (gradients_.totals().size() != state_.n_scores() || first > state_.n_scores() ||
      n_trees > state_.n_scores() - first)
    refuse();
  if (first == 0) n_out_of_bag_ = sample_.draw_partition(takes_all);
  to.put<std::uint64_t>(state_.place.first_row);
  to.put<std::uint64_t>(sample_.in_use().size());
  to.put<std::uint64_t>(n_out_of_bag_);
  to.put<std::uint64_t>(sample_.out_of_bag().size());
  for (auto& tree : growing_) tree.reset();
  for (std::uint32_t k = first; k < first + n_trees; ++k) {
    if (!rooms_[k]) rooms_[k] = std::make_unique<Room>(*state_.coded, state_.n_threads());
    Room& room = *rooms_[k];
    gradients_.quantise(k, room.packed.data());
    room.rows.assign(sample_.in_use().begin(), sample_.in_use().end());
    growing_[k] = std::make_unique<TreeRows>(room, *state_.coded, state_.tree_params(k),
                                             PackedScales(gradients_.totals()[k], state_.place.n_all_rows),
                                             state_.key_of_tree(k));
    put_cells(*growing_[k], 0, room.rows.size(), to, interrupt, true);
  }
}

Piece::TreeRows& Piece::tree_of(std::uint32_t k) {
  if (k >= growing_.size() || !growing_[k]) refuse();
  return *growing_[k];
}

void Piece::put_cells(TreeRows& tree, std::size_t begin, std::size_t end, MessageWriter& to, Interrupt& interrupt,
                      bool is_root) {
  const HistogramSearch histograms = tree.histograms(interrupt);
  const std::size_t n = end - begin;
  const int n_threads = tree.threads_for(histograms.estimated_ns(static_cast<double>(n), static_cast<double>(n)));
  const Packed total = histograms.fill(tree.room.histogram.get(), tree.room.rows.data() + begin, n, n_threads);
  if (is_root) to.put(total);
  for (const std::uint32_t f : tree.cells.columns()) {
    const Packed* cells = state_.coded->tiles.cells(f, tree.room.histogram.get(), total, tree.room.cells);
    to.put_all(std::span(cells, state_.coded->coding.columns[f].n_codes));
  }
}

void Piece::divide(MessageReader& from, MessageWriter& to, Interrupt& interrupt) {
  const Coding& coding = state_.coded->coding;
  for (auto n = from.get<std::uint32_t>(); n > 0; --n) {
    TreeRows& tree = tree_of(from.get<std::uint32_t>());
    const auto name = from.get<std::uint32_t>();
    const TreeRows::Range node = tree.at(name);
    Row* rows = tree.room.rows.data() + node.begin;
    const std::size_t n_rows = node.end - node.begin;
    if (from.get<std::uint8_t>() != 0) {  // to be counted
      const auto f = from.get<std::uint32_t>();
      if (f >= coding.columns.size()) refuse();
      std::vector<Row> counts(coding.columns[f].n_codes, 0);
      for (std::size_t i = 0; i < n_rows; ++i) ++counts[state_.coded->codes.code(coding, f, rows[i])];
      to.put_all(std::span<const Row>(counts));
      continue;
    }
    const BoostSplit split = get_split(from);
    const auto left = from.get<std::uint32_t>();
    const auto child = static_cast<OfChild>(from.get<std::uint8_t>());
    if (split.feature >= coding.columns.size() || left != tree.nodes.size()) refuse();
    if (node.left != 0) std::sort(rows, rows + n_rows);  // it was parted by a split that left too few on a side
    const std::size_t n_left =
        tree.room.parter.part(split, rows, n_rows, tree.threads_for(static_cast<double>(n_rows)), 0);
    const std::size_t middle = node.begin + n_left;
    tree.nodes[name].left = left;
    tree.nodes.push_back({node.begin, middle});
    tree.nodes.push_back({middle, node.end});
    to.put<std::uint64_t>(n_left);
    if (child == OfChild::left) put_cells(tree, node.begin, middle, to, interrupt);
    if (child == OfChild::right) put_cells(tree, middle, node.end, to, interrupt);
  }
}

void Piece::leaf_sums(MessageReader& from, MessageWriter& to) {
  for (auto n_trees = from.get<std::uint32_t>(); n_trees > 0; --n_trees) {
    const auto k = from.get<std::uint32_t>();
    const TreeRows& tree = tree_of(k);
    const auto names = from.get_run<std::uint32_t>();
    const std::vector<TreeRows::Ascending> runs = tree.ascending(names);
    const LeafScales scales(gradients_.totals()[k]);
    const Row* rows = tree.room.rows.data();
    std::vector<std::atomic<std::int64_t>> g(names.size()), h(names.size()), w(names.size());
    for_each_piece(runs, std::span(tree.room.rows), state_.n_rows(), state_.n_threads(), 4.0,
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
    for (std::size_t i = 0; i < names.size(); ++i) to.put(LeafSums{g[i].load(), h[i].load(), w[i].load()});
  }
}

void Piece::add_leaves(const std::vector<std::uint32_t>& names, const std::vector<double>& values, std::uint32_t k) {
  const TreeRows& tree = tree_of(k);
  const std::vector<TreeRows::Ascending> runs = tree.ascending(names);
  const Row* rows = tree.room.rows.data();
  double* scores = state_.rows.scores[k].data();
  for_each_piece(runs, std::span(tree.room.rows), state_.n_rows(), state_.n_threads(), 2.0,
                 [&](std::size_t run, std::size_t begin, std::size_t end) {
                   const double value = values[runs[run].of];
                   for (std::size_t i = begin; i < end; ++i) scores[rows[i]] += value;
                 });
}

// Trees come with the names of their leaves if this piece has helped to grow them, else all rows find their way.
void Piece::add(MessageReader& from, MessageWriter& to) {
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
    if (k >= state_.n_scores() || nodes.size() != names.size()) refuse();
    if (names.empty()) {
      std::vector<Row> every(state_.n_rows());
      std::iota(every.begin(), every.end(), Row{0});
      leaves_.walk({&grown, 1}, k, state_.coded->codes, every, state_.rows);
    } else {
      std::vector<double> values;
      for (const std::uint32_t node : nodes) values.push_back(tree.value.at(node));
      add_leaves(names, values, k);
      leaves_.walk({&grown, 1}, k, state_.coded->codes, sample_.out_of_bag(), state_.rows);
    }
    if (state_.held_out.table != nullptr)
      leaves_.walk({&grown, 1}, k, state_.coded->codes, state_.judged, state_.held_out);
  }
  if (!wants_state) return;
  for (auto& tree : growing_) tree.reset();
  put_state(to);
}

// Every so many-th row of the table's list of rows out of bag: those with a weight, then those without.
void Piece::out_of_bag(MessageReader& from, MessageWriter& to) {
  const auto step = std::max<std::uint64_t>(1, from.get<std::uint64_t>());
  const auto n_all = from.get<std::uint64_t>();
  const auto places =
      from.get_run<std::uint64_t>();  // by piece: its first row, how many before it with and without weight
  for (std::size_t p = 0; p + 2 < places.size(); p += 3) {
    if (places[p] != state_.place.first_row) continue;
    for (std::size_t i = 0; i < sample_.out_of_bag().size(); ++i) {
      const std::uint64_t place = i < n_out_of_bag_ ? places[p + 1] + i : n_all + places[p + 2] + (i - n_out_of_bag_);
      if (place % step != 0) continue;
      const Row r = sample_.out_of_bag()[i];
      to.put<std::uint64_t>(place / step);
      for (const PlacedPart& part : state_.parts) to.put<double>(state_.target_of(part, state_.rows)[r]);
      to.put<double>(state_.rows.weight == nullptr ? 1.0 : state_.rows.weight[r]);
      for (const auto& scores : state_.rows.scores) to.put<double>(scores[r]);
    }
  }
}

void Piece::put_scores(const std::vector<RowVector<double>>& scores, MessageWriter& to) const {
  if (scores.size() != state_.n_scores()) refuse();
  for (const auto& of_score : scores) to.put_all(std::span<const double>(of_score));
}

}  // namespace spinney
