#include "boost/partitioned_tree.h"

#include <algorithm>
#include <stdexcept>

#include "base/pool.h"

namespace spinney {

RemoteRows::RemoteRows(const GrowingTree& tree, const Coding& coding, int n_threads, Interrupt&)
    : tree_(tree),
      coding_(coding),
      n_threads_(n_threads),
      cells_(coding, tree.columns().of_tree()),
      scratch_(static_cast<std::size_t>(n_threads)) {}

void RemoteRows::init_root(Leaf& root) {
  const auto sum = read_sum<Packed>();
  root.sums = {gradient_of(sum), hessian_of(sum)};
  root.histogram = read_cells(cells_.n_cells());
  if (tree_.may_split(root)) root.best = best_of(root);
}

Histogram RemoteRows::read_cells(std::size_t n_cells) {
  Histogram found(new Packed[n_cells]());
  for (MessageReader& partition : partitions_) partition.add_to(std::span(found.get(), n_cells));
  return found;
}

void RemoteRows::partition(std::span<LeafSplit<Leaf>> splits, ThreadTeam) {
  for (LeafSplit<Leaf>& split : splits) {
    split.n_left = read_sum<std::uint64_t>();
    if (split.n_left > split.leaf->n())
      throw std::invalid_argument("The partitions report inconsistent numbers of rows.");
  }
}

void RemoteRows::histograms(std::span<LeafSplit<Leaf>> splits, ThreadTeam) {
  for (LeafSplit<Leaf>& split : splits) {
    Leaf& leaf = *split.leaf;
    Histogram cells = split.child == ChildHistogram::none ? nullptr : read_cells(cells_.n_cells());
    if (!split.left) {
      split.is_pending = true;
      counting_.push_back(std::make_unique<Counting>(
          Counting{&leaf, std::vector<std::vector<Row>>(coding_.columns.size()), leaf.best.feature}));
      continue;
    }
    split.left->name = named_[leaf.name].left;
    split.right->name = split.left->name + 1;
    if (cells && split.searches && (tree_.may_split(*split.left) || tree_.may_split(*split.right)))
      search_children(split, std::move(cells));
    leaf.histogram.reset();
  }
}

void RemoteRows::search_children(LeafSplit<Leaf>& split, Histogram cells) {
  Leaf &small = split.small(), &large = split.large();
  small.histogram = std::move(cells);
  large.histogram = std::move(split.leaf->histogram);
  boost_kernels().subtract(large.histogram.get(), small.histogram.get(), cells_.n_cells());
  for (Leaf* child : {&small, &large})
    if (tree_.may_split(*child)) child->best = best_of(*child);
}

// As for rows in one process: columns are counted until the best split is on a counted column.
bool RemoteRows::read_count(Counting& counting, BoostSplit& best) {
  const std::size_t n_codes = coding_.columns[counting.column].n_codes;
  const Histogram counts = read_cells(n_codes);
  counting.counts[counting.column].assign(counts.get(), counts.get() + n_codes);
  best = best_of(*counting.leaf, &counting.counts);
  counting.column = best.feature;
  counting.is_requested = false;
  return !(best.gain > 0) || !counting.counts[best.feature].empty();
}

BoostSplit RemoteRows::best_of(const Leaf& leaf, const std::vector<std::vector<Row>>* counts) {
  const NodeTerms terms = tree_.terms_of(leaf);
  const std::vector<std::uint8_t> may_use = tree_.columns_of(leaf);
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
      mine.consider(tree_.search().search(f, cells, terms, mine.best.score, scratch_[w], known));
    }
  });
  SearchedNode best;
  for (SearchedNode& node : found) best.consider(std::move(node.best));
  return std::move(best.best);
}

std::uint32_t RemoteRows::name_children(const Leaf& leaf) {
  const auto left = static_cast<std::uint32_t>(named_.size());
  named_[leaf.name].left = left;
  named_.resize(named_.size() + 2);
  return left;
}

std::vector<std::uint32_t> RemoteRows::without_sums() const {
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

void RemoteRows::read_sums(std::span<const std::uint32_t> names) {
  for (const std::uint32_t name : names) named_[name].sums = read_sum<LeafSums>();
}

std::optional<LeafSums> RemoteRows::sums_of(std::uint32_t name) const {
  if (named_[name].sums || named_[name].left == 0) return named_[name].sums;
  std::optional<LeafSums> left = sums_of(named_[name].left), right = sums_of(named_[name].left + 1);
  if (!left || !right) return std::nullopt;
  *left += *right;
  return left;
}

// ---- the tree --------------------------------------------------------------------------------------------

PartitionedTree::PartitionedTree(const Coding& coding, const BoostParams& params, Units units, std::uint64_t key,
                                 double least_gain, int n_threads, Interrupt& interrupt)
    : TreeGrower(coding, params, key, units, n_threads, interrupt, coding), least_gain_before_(least_gain) {}

void PartitionedTree::init_root(std::size_t n_rows, std::span<MessageReader> partitions) {
  rows_.read_from(partitions);
  push(build_root(n_rows));
}

// The child with the smaller hessian, which usually has fewer rows; none if neither will be split.
ChildHistogram PartitionedTree::child_to_add_up(const Leaf& leaf) const {
  if (n_to_come() == 1 || leaf.depth + 1 >= params_.max_depth) return ChildHistogram::none;
  return 2 * leaf.best.left.hessian <= leaf.sums.hessian ? ChildHistogram::left : ChildHistogram::right;
}

// Requests a third of the expected splits, because new leaves will be among them, and further leaves with gains that
// were large enough for the previous tree: an additional message costs partitions less time than an unused histogram.
std::vector<GrowingLeaf*> PartitionedTree::leaves_to_request() const {
  std::vector<Leaf*> leaves = next_leaves(n_to_come());
  std::size_t n = next_leaves((n_to_come() + 2) / 3).size();
  while (n < leaves.size() && leaves[n]->best.gain >= least_gain_before_) ++n;
  leaves.resize(n);
  return leaves;
}

double PartitionedTree::work_to_request() const {
  double work = 0;
  for (const auto& counting : rows_.counting()) work += counting->is_requested ? 0 : rows_.work_of(*counting->leaf);
  for (const Leaf* leaf : leaves_to_request()) work += rows_.work_of(*leaf);
  return work;
}

RowBatch PartitionedTree::request(std::uint32_t tree, bool some) {
  RowBatch request{.tree = tree};
  Batch batch;
  std::vector<Leaf*> leaves = leaves_to_request();
  if (some) leaves.resize((leaves.size() + 1) / 2);
  for (Leaf* leaf : leaves) {
    leaf->is_taken = true;
    const std::uint32_t left = rows_.name_children(*leaf);
    const ChildHistogram child = child_to_add_up(*leaf);
    request.splits.push_back({leaf->name, leaf->best, left});
    if (child != ChildHistogram::none) request.histograms.push_back({child == ChildHistogram::left ? left : left + 1});
    batch.splits.push_back({.leaf = leaf, .child = child});
  }
  for (auto& counting : rows_.counting()) {
    if (counting->is_requested) continue;
    counting->is_requested = true;
    request.histograms.push_back({counting->leaf->name, counting->column});
    batch.counts.push_back(counting.get());
  }
  if (!request.empty()) batches_.push_back(std::move(batch));
  return request;
}

void PartitionedTree::read(std::span<MessageReader> partitions) {
  rows_.read_from(partitions);
  Batch batch = std::move(batches_.front());
  batches_.pop_front();
  for (LeafSplit<Leaf>& split : batch.splits) split.searches = n_to_come() > 0;
  carry_out(batch.splits, {n_threads_, 0});
  const auto is_done = [&](LeafSplit<Leaf>& split) {
    split.leaf->is_taken = false;
    settle(split);
  };
  for (LeafSplit<Leaf>& split : batch.splits)
    if (!split.is_pending) is_done(split);
  for (RemoteRows::Counting* counting : batch.counts) {
    LeafSplit<Leaf> split{.leaf = counting->leaf};
    if (!rows_.read_count(*counting, split.recounted)) continue;
    std::erase_if(rows_.counting(), [&](const auto& other) { return other.get() == counting; });
    is_done(split);
  }
  commit_splits();
}

bool PartitionedTree::is_end_in_sight() const {
  std::size_t n_turns = 0;
  std::vector<Leaf*> soon;
  for_each_turn(n_to_come(), soon, [&](const Leaf* leaf) {
    const bool is_in_progress = leaf->is_split() || leaf->is_taken;
    n_turns += is_in_progress;
    return is_in_progress;
  });
  return rows_.counting().empty() && n_turns == n_to_come();
}

}  // namespace spinney
