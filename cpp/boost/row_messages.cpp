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
  to.put<std::uint32_t>(static_cast<std::uint32_t>(batch.splits.size()));
  for (const NodeSplit& split : batch.splits) put_split(to, split);
  to.put_run(batch.histograms);
}

RowBatch get_batch(MessageReader& from) {
  RowBatch batch;
  batch.tree = from.get<std::uint32_t>();
  for (auto n = from.get<std::uint32_t>(); n > 0; --n) batch.splits.push_back(get_split(from));
  batch.histograms = from.get_run<NodeHistogram>();
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

}  // namespace spinney
