#include "boost/partitioned_tree.h"

#include <algorithm>
#include <limits>

#include "base/pool.h"

namespace spinney {

namespace {

template <class T>
T sum_of(std::span<MessageReader> partitions) {
  T sum{};
  for (MessageReader& partition : partitions) sum += partition.get<T>();
  return sum;
}

}  // namespace

PartitionedTree::PartitionedTree(const Coding& coding, const BoostParams& params, Units units, std::uint64_t key,
                                 double least_gain, int n_threads)
    : GrowingTree(coding, params, units, key),
      least_gain_before_(least_gain),
      n_threads_(n_threads),
      cells_(coding, columns_.of_tree()),
      scratch_(static_cast<std::size_t>(n_threads)) {}

void PartitionedTree::plant(std::size_t n_rows, std::span<MessageReader> partitions) {
  const auto sum = sum_of<Packed>(partitions);
  n_partitions_ = partitions.size();
  auto root = make_root(n_rows);
  root->sums = {gradient_of(sum), hessian_of(sum)};
  root->histogram = read_cells(partitions);
  if (may_split(*root)) root->best = best_of(*root);
  push(std::move(root));
}

Histogram PartitionedTree::read_cells(std::span<MessageReader> partitions) const {
  Histogram found(new Packed[cells_.n_cells()]());
  for (MessageReader& partition : partitions) partition.add_to(std::span(found.get(), cells_.n_cells()));
  return found;
}

// The one that has the smaller hessian, and so fewer rows as a rule; none if neither will be split.
ChildHistogram PartitionedTree::child_to_add_up(const Leaf& leaf) const {
  if (n_to_come() == 1 || leaf.depth + 1 >= params_.max_depth) return ChildHistogram::none;
  return 2 * leaf.best.left.hessian <= leaf.sums.hessian ? ChildHistogram::left : ChildHistogram::right;
}

// Those of a third of the turns to come, as leaves to come take turns too, and others whose gain was enough for the tree before: a
// message more takes partitions less time than a histogram that is not wanted in the end.
std::vector<GrowingLeaf*> PartitionedTree::leaves_to_ask_for() const {
  std::vector<Leaf*> leaves = next_leaves(n_to_come());
  std::size_t n = next_leaves((n_to_come() + 2) / 3).size();
  while (n < leaves.size() && leaves[n]->best.gain >= least_gain_before_) ++n;
  leaves.resize(n);
  return leaves;
}

double PartitionedTree::work_to_ask_for() const {
  std::size_t n_rows = 0;
  for (const auto& counting : counting_) n_rows += counting->is_asked ? 0 : counting->leaf->n();
  for (const Leaf* leaf : leaves_to_ask_for()) n_rows += leaf->n();
  return static_cast<double>(n_rows) * static_cast<double>(cells_.columns().size()) /
         static_cast<double>(n_partitions_);
}

RowBatch PartitionedTree::ask(std::uint32_t tree, bool some) {
  RowBatch batch;
  batch.tree = tree;
  std::vector<Asked> asked;
  for (auto& counting : counting_) {
    if (counting->is_asked) continue;
    counting->is_asked = true;
    batch.counts.push_back({counting->leaf->name, counting->column});
    asked.push_back({.leaf = counting->leaf, .counting = counting.get()});
  }
  std::vector<Leaf*> leaves = leaves_to_ask_for();
  if (some) leaves.resize((leaves.size() + 1) / 2);
  for (Leaf* leaf : leaves) {
    leaf->is_taken = true;
    const auto left = static_cast<std::uint32_t>(named_.size());
    const ChildHistogram histogram = child_to_add_up(*leaf);
    named_[leaf->name].left = left;
    named_.resize(named_.size() + 2);
    batch.splits.push_back({leaf->name, leaf->best, left});
    if (histogram != ChildHistogram::none)
      batch.histograms.push_back(histogram == ChildHistogram::left ? left : left + 1);
    asked.push_back({.leaf = leaf, .histogram = histogram, .left = left});
  }
  if (!asked.empty()) batches_.push_back(std::move(asked));
  return batch;
}

void PartitionedTree::read(std::span<MessageReader> partitions) {
  const std::vector<Asked> batch = std::move(batches_.front());
  batches_.pop_front();
  std::vector<std::size_t> n_left;
  for (const Asked& asked : batch)
    if (asked.counting != nullptr) read_count(*asked.counting, partitions);
  for (const Asked& asked : batch)
    if (asked.counting == nullptr) n_left.push_back(sum_of<std::uint64_t>(partitions));
  std::size_t next = 0;
  for (const Asked& asked : batch)
    if (asked.counting == nullptr) read_split(asked, n_left[next++], partitions);
  std::erase_if(counting_, [](const auto& c) { return c->leaf == nullptr; });
  commit_splits();
}

bool PartitionedTree::is_end_in_sight() const {
  return counting_.empty() && n_turns_known() >= n_to_come() && next_leaves(n_to_come()).empty();
}

std::vector<std::uint32_t> PartitionedTree::without_sums() const {
  std::vector<std::uint32_t> found, below{0};
  while (!below.empty()) {
    const std::uint32_t name = below.back();
    below.pop_back();
    if (named_[name].sums) continue;
    if (named_[name].left == 0)
      found.push_back(name);
    else
      below.insert(below.end(), {named_[name].left, named_[name].left + 1});
  }
  return found;
}

void PartitionedTree::read_sums(std::span<const std::uint32_t> names, std::span<MessageReader> partitions) {
  for (const std::uint32_t name : names) named_[name].sums = sum_of<LeafSums>(partitions);
}

std::optional<LeafSums> PartitionedTree::sums_of(std::uint32_t name) const {
  if (named_[name].sums || named_[name].left == 0) return named_[name].sums;
  std::optional<LeafSums> left = sums_of(named_[name].left), right = sums_of(named_[name].left + 1);
  if (!left || !right) return std::nullopt;
  *left += *right;
  return left;
}

void PartitionedTree::read_split(const Asked& asked, std::size_t n_left, std::span<MessageReader> partitions) {
  Leaf& leaf = *asked.leaf;
  Histogram cells = asked.histogram == ChildHistogram::none ? nullptr : read_cells(partitions);
  if (has_too_few(leaf, n_left)) {
    counting_.push_back(std::make_unique<Counting>(
        Counting{&leaf, std::vector<std::vector<Row>>(coding_.columns.size()), leaf.best.feature}));
    return;
  }
  leaf.is_taken = false;
  Outcome outcome{make_child(leaf, true, n_left), make_child(leaf, false, n_left), {}};
  outcome.left->name = asked.left;
  outcome.right->name = asked.left + 1;
  bound(leaf, *outcome.left, *outcome.right);
  const bool left_small = asked.histogram == ChildHistogram::left;
  Leaf &small = left_small ? *outcome.left : *outcome.right, &large = left_small ? *outcome.right : *outcome.left;
  if (cells && n_to_come() > 0 && (may_split(small) || may_split(large)))
    search_children(leaf, small, large, std::move(cells));
  leaf.histogram.reset();
  settle(leaf, std::move(outcome));
}

void PartitionedTree::search_children(Leaf& leaf, Leaf& small, Leaf& large, Histogram cells) {
  small.histogram = std::move(cells);
  large.histogram = std::move(leaf.histogram);
  boost_kernels().subtract(large.histogram.get(), small.histogram.get(), cells_.n_cells());
  for (Leaf* child : {&small, &large}) {
    if (may_split(*child)) child->best = best_of(*child);
    if (!(child->best.gain > 0)) child->histogram.reset();
  }
}

// As where rows are in one place: columns are counted until the best split is one of them.
void PartitionedTree::read_count(Counting& counting, std::span<MessageReader> partitions) {
  Leaf& leaf = *counting.leaf;
  std::vector<Row>& counts = counting.counts[counting.column];
  counts.assign(coding_.columns[counting.column].n_codes, 0);
  for (MessageReader& partition : partitions) partition.add_to(std::span(counts));
  BoostSplit best = best_of(leaf, &counting.counts);
  if (best.gain > 0 && counting.counts[best.feature].empty()) {
    counting.column = best.feature;
    counting.is_asked = false;
    return;
  }
  counting.leaf = nullptr;
  leaf.is_taken = false;
  settle(leaf, {nullptr, nullptr, std::move(best)});
}

BoostSplit PartitionedTree::best_of(const Leaf& leaf, const std::vector<std::vector<Row>>* counts) {
  const NodeTerms terms = search_.terms(leaf.sums, leaf.n(), leaf.bounds);
  const std::vector<std::uint8_t> may_use = columns_.of_node(leaf.depth, leaf.path, leaf.groups);
  const std::vector<std::uint32_t>& columns = cells_.columns();
  const std::size_t n_tasks = std::min(columns.size(), 2 * static_cast<std::size_t>(n_threads_));
  std::vector<SearchedNode> found(static_cast<std::size_t>(n_threads_));
  const double estimated_ns = 2.0 * static_cast<double>(cells_.n_cells());
  parallel_for_if_worth(estimated_ns, n_tasks, n_threads_, [&](std::size_t task, int worker) {
    const auto w = static_cast<std::size_t>(worker);
    SearchedNode& mine = found[w];
    for (std::size_t i = task * columns.size() / n_tasks; i < (task + 1) * columns.size() / n_tasks; ++i) {
      const std::uint32_t f = columns[i];
      if (!may_use[f]) continue;
      const Row* known = counts == nullptr || (*counts)[f].empty() ? nullptr : (*counts)[f].data();
      const Packed* cells = leaf.histogram.get() + cells_.first(f);
      mine.consider(search_.search(f, cells, terms, mine.best.score, scratch_[w], known));
    }
  });
  SearchedNode best;
  for (SearchedNode& node : found) best.consider(std::move(node.best));
  return std::move(best.best);
}

double PartitionedTree::least_gain() const {
  if (n_to_come() > 0) return 0;
  double least = std::numeric_limits<double>::infinity();
  for (const NodeRecord& node : nodes_)
    if (node.left != 0) least = std::min(least, node.split.gain);
  return least;
}

BoostedTree PartitionedTree::finished() {
  for (auto& leaf : heap_) finish(*leaf);
  return assemble();
}

}  // namespace spinney
