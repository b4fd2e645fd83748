#include "boost/row_messages.h"

namespace spinney {

namespace {

void put_split(MessageWriter& to, const NodeSplit& node) {
  to.put<std::uint32_t>(node.node);
  to.put<std::uint32_t>(node.left);
  to.put<std::uint32_t>(node.split.feature);
  to.put<std::uint32_t>(node.split.cut);
  to.put<std::uint8_t>(node.split.missing_left);
  to.put<std::uint8_t>(node.split.is_category);
  to.put_run(node.split.left_codes);
}

NodeSplit get_split(MessageReader& from) {
  NodeSplit node;
  node.node = from.get<std::uint32_t>();
  node.left = from.get<std::uint32_t>();
  node.split.feature = from.get<std::uint32_t>();
  node.split.cut = from.get<std::uint32_t>();
  node.split.missing_left = from.get<std::uint8_t>() != 0;
  node.split.is_category = from.get<std::uint8_t>() != 0;
  node.split.left_codes = from.get_run<std::uint32_t>();
  return node;
}

}  // namespace

void put_batch(MessageWriter& to, const RowBatch& batch) {
  to.put<std::uint32_t>(batch.tree);
  to.put_run(batch.counts);
  to.put<std::uint32_t>(static_cast<std::uint32_t>(batch.splits.size()));
  for (const NodeSplit& split : batch.splits) put_split(to, split);
  to.put_run(batch.histograms);
}

RowBatch get_batch(MessageReader& from) {
  RowBatch batch;
  batch.tree = from.get<std::uint32_t>();
  batch.counts = from.get_run<ColumnCount>();
  for (auto n = from.get<std::uint32_t>(); n > 0; --n) batch.splits.push_back(get_split(from));
  batch.histograms = from.get_run<std::uint32_t>();
  return batch;
}

void put_roots(MessageWriter& to, const RootsRequest& roots) {
  to.put<std::uint32_t>(roots.round);
  to.put_run(roots.totals);
  to.put<std::uint32_t>(roots.first_tree);
  to.put<std::uint32_t>(roots.n_trees);
  to.put<std::uint8_t>(roots.takes_all);
}

RootsRequest get_roots(MessageReader& from) {
  RootsRequest roots;
  roots.round = from.get<std::uint32_t>();
  roots.totals = from.get_run<GradientSums>();
  roots.first_tree = from.get<std::uint32_t>();
  roots.n_trees = from.get<std::uint32_t>();
  roots.takes_all = from.get<std::uint8_t>() != 0;
  return roots;
}

void answer_plant(Rows& rows, MessageReader& from, MessageWriter& to, Interrupt& interrupt) {
  MessageWriter cells;
  const auto sink = [&](std::span<const Packed> some) { cells.put_all(some); };
  to.put(rows.plant(get_roots(from), sink, interrupt));
  to.append(cells);
}

void answer_batches(Rows& rows, MessageReader& from, MessageWriter& to, Interrupt& interrupt) {
  const auto sink = [&](std::span<const Packed> some) { to.put_all(some); };
  for (auto n = from.get<std::uint32_t>(); n > 0; --n) {
    const RowBatch batch = get_batch(from);
    for (const ColumnCount& count : batch.counts) to.put_all(std::span<const Row>(rows.counts(batch.tree, count)));
    for (const std::uint64_t n_left : rows.partition(batch.tree, batch.splits)) to.put(n_left);
    rows.histograms(batch.tree, batch.histograms, sink, interrupt);
  }
}

void answer_leaf_sums(Rows& rows, MessageReader& from, MessageWriter& to) {
  for (auto n_trees = from.get<std::uint32_t>(); n_trees > 0; --n_trees) {
    const auto tree = from.get<std::uint32_t>();
    for (const LeafSums& sums : rows.leaf_sums(tree, from.get_run<std::uint32_t>())) to.put(sums);
  }
}

}  // namespace spinney
