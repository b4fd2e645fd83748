#include "learn/partitioned_boosting.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <stdexcept>

#include "learn/chunks.h"
#include "learn/leaf_values.h"
#include "learn/scales.h"

namespace spinney {

namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint32_t most_beside =
    8;  // trees of a round that are grown at the same time: partitions store rows of each

template <class T>
std::vector<T> joined(std::vector<MessageReader>& partitions) {
  std::vector<T> all;
  for (MessageReader& partition : partitions) {
    const std::vector<T> some = partition.get_run<T>();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace

std::size_t PartitionedBoosting::Drawn::n_rows() const {
  std::uint64_t n = 0;
  for (const DrawnRows& drawn : of_partition) n += drawn.n_in_bag;
  return static_cast<std::size_t>(n);
}

PartitionedBoosting::PartitionedBoosting(Coding coding, BoostingParams params, std::size_t n_rows, const double* weight,
                                         std::uint32_t n_done, double work_of_message)
    : coding_(std::move(coding)),
      params_(std::move(params)),
      is_weighted_(weight != nullptr),
      work_of_message_(work_of_message),
      parts_(placed(params_.losses)),
      training_loss_(unknown),
      held_out_loss_(unknown),
      before_(unknown),
      after_(unknown),
      round_(n_done) {
  if (n_rows >= std::size_t{1} << 30) throw std::invalid_argument("Boosting supports at most 2^30 rows.");
  whole_.n_all_rows = n_rows;
  if (weight != nullptr) {
    const std::vector<Row> rows = rows_of_weight(n_rows, weight);
    if (rows.empty()) throw std::invalid_argument("No row has a positive weight.");
    const WeightScale found = weight_scale(rows, weight, n_rows, 61);
    whole_.weight_scale = found.scale;
    if (found.count_by_weight > 0) whole_.count_by_weight = found.count_by_weight;
  }
  params_.tree.count_by_weight = whole_.count_by_weight;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const LossTraits& traits = traits_of(parts_[p].loss);
    if (!traits.is_additive())
      throw std::invalid_argument("Distributed boosting does not support losses that refit leaves.");
    component_of_.insert(component_of_.end(), parts_[p].n_scores, p);
  }
  least_gains_.assign(n_scores(), std::numeric_limits<double>::infinity());
  if (params_.draws_by_gradient || params_.vector_leaves || params_.tree.symmetric || params_.n_parallel_trees > 1)
    throw std::invalid_argument("Distributed boosting does not support these tree options.");
  of_score_ = params_.constrain();
}

std::string PartitionedBoosting::first_request() { return message_of(Request::gradients).take(); }

double PartitionedBoosting::held_out_loss(std::span<const std::string_view> answers) {
  std::vector<MessageReader> partitions(answers.begin(), answers.end());
  joined<GradientSums>(partitions);
  joined<LossSum>(partitions);
  return mean_of(joined<LossSum>(partitions));
}

std::vector<MessageReader> PartitionedBoosting::readers(Channel& channel, std::string request, Interrupt& interrupt) {
  interrupt.check();
  channel.send(request);
  const std::vector<std::string_view> answers = channel.receive();
  return {answers.begin(), answers.end()};
}

void PartitionedBoosting::read_state(std::vector<MessageReader> partitions) {
  const auto sums = joined<GradientSums>(partitions);
  const auto losses = joined<LossSum>(partitions), held_out = joined<LossSum>(partitions);
  totals_.assign(n_scores(), {});
  for (std::size_t i = 0; i < sums.size(); ++i) totals_[i % n_scores()] += sums[i];
  training_loss_ = mean_of(losses);
  held_out_loss_ = held_out.empty() ? unknown : mean_of(held_out);
}

// Two messages are in flight while there is much to request: partitions answer one while the other waits. If there is
// little, one message requests all of it, because two would not be answered sooner.
class PartitionedBoosting::Growth {
 public:
  Growth(Channel& channel, Trees& trees, std::uint32_t first, double work_of_message, Interrupt& interrupt)
      : channel_(channel), trees_(trees), first_(first), work_of_message_(work_of_message), interrupt_(interrupt) {}

  // Grows all trees and requests the sums of their leaves.
  void run() {
    do {
      while (sent_.size() < 2 && (send_splits() || send_early_sums())) {
      }
      if (!sent_.empty()) receive();
    } while (!sent_.empty() || !is_grown());
  }

  std::vector<BoostedTree> finished() {
    std::vector<BoostedTree> grown;
    for (auto& tree : trees_) grown.push_back(tree->finished());
    if (send_sums([&](std::size_t i) { return leaves_without_sums(*trees_[i], grown[i]); })) receive();
    return grown;
  }

 private:
  struct SumsOf {
    PartitionedTree* tree;
    std::vector<std::uint32_t> names;  // node numbers
  };
  struct Sent {
    std::vector<PartitionedTree*> split;  // one batch for each tree
    std::vector<SumsOf> summed;
  };

  bool is_grown() const {
    return std::all_of(trees_.begin(), trees_.end(), [](const auto& tree) { return tree->is_grown(); });
  }

  bool send_splits() {
    double work = 0;
    for (const auto& tree : trees_) work += tree->is_grown() ? 0 : tree->work_to_request();
    if (!sent_.empty() && work < work_of_message_) return false;
    const bool some = sent_.empty() && work >= 2 * work_of_message_;
    MessageWriter batches;
    Sent sent;
    for (std::uint32_t i = 0; i < trees_.size(); ++i) {
      if (trees_[i]->is_grown()) continue;
      const RowBatch batch = trees_[i]->request(first_ + i, some);
      if (batch.empty()) continue;
      put_batch(batches, batch);
      sent.split.push_back(trees_[i].get());
    }
    if (sent.split.empty()) return false;
    MessageWriter to = message_of(Request::split);
    to.put<std::uint32_t>(static_cast<std::uint32_t>(sent.split.size()));
    to.append(batches);
    std::string message = to.take();
    are_sums_requested_ = is_end_in_sight();
    message += sums_of([&](std::size_t i) { return leaves_in_sight(i); }, sent.summed);
    send(message, std::move(sent));
    return true;
  }

  bool is_end_in_sight() const {
    return std::all_of(trees_.begin(), trees_.end(), [](const auto& tree) { return tree->is_end_in_sight(); });
  }

  // The expected leaves of a tree once all requested splits are made.
  std::vector<std::uint32_t> leaves_in_sight(std::size_t i) const {
    return are_sums_requested_ ? trees_[i]->rows().without_sums() : std::vector<std::uint32_t>{};
  }

  // Requests their sums if they are known only now.
  bool send_early_sums() {
    if (sent_.empty() || are_sums_requested_ || !is_end_in_sight()) return false;
    are_sums_requested_ = true;
    return send_sums([&](std::size_t i) { return leaves_in_sight(i); });
  }

  template <class NamesOf>
  bool send_sums(NamesOf&& names_of) {
    Sent sent;
    const std::string requested = sums_of(names_of, sent.summed);
    if (sent.summed.empty()) return false;
    send(message_of(Request::leaf_sums).take() + requested, std::move(sent));
    return true;
  }

  // The part of a message that requests sums, possibly of no nodes.
  template <class NamesOf>
  std::string sums_of(NamesOf&& names_of, std::vector<SumsOf>& summed) {
    MessageWriter requested;
    for (std::uint32_t i = 0; i < trees_.size(); ++i) {
      std::vector<std::uint32_t> names = names_of(i);
      if (names.empty()) continue;
      requested.put<std::uint32_t>(first_ + i);
      requested.put_run(names);
      summed.push_back({trees_[i].get(), std::move(names)});
    }
    MessageWriter to;
    to.put<std::uint32_t>(static_cast<std::uint32_t>(summed.size()));
    return to.take() + requested.take();
  }

  static std::vector<std::uint32_t> leaves_without_sums(const PartitionedTree& tree, const BoostedTree& grown) {
    std::vector<std::uint32_t> names;
    for (const GrownLeaf& leaf : grown.leaves)
      if (!tree.rows().sums_of(leaf.name)) names.push_back(leaf.name);
    return names;
  }

  void send(const std::string& message, Sent sent) {
    interrupt_.check();
    channel_.send(message);
    sent_.push_back(std::move(sent));
  }

  void receive() {
    const std::vector<std::string_view> answers = channel_.receive();
    std::vector<MessageReader> partitions(answers.begin(), answers.end());
    for (PartitionedTree* tree : sent_.front().split) tree->read(partitions);
    for (const SumsOf& sums : sent_.front().summed) {
      sums.tree->rows().read_from(partitions);
      sums.tree->rows().read_sums(sums.names);
    }
    sent_.pop_front();
  }

  Channel& channel_;
  Trees& trees_;
  const std::uint32_t first_;
  const double work_of_message_;
  Interrupt& interrupt_;
  std::deque<Sent> sent_;
  bool are_sums_requested_ = false;
};

void PartitionedBoosting::advance(Channel& channel, Interrupt& interrupt) {
  if (totals_.empty()) read_state(readers(channel, first_request(), interrupt));
  Drawn drawn;
  std::vector<std::string> added_now;
  std::vector<Tree> trees;
  const std::uint32_t n = n_scores();
  double before = unknown;
  for (std::uint32_t first = 0; first < n; first += most_beside) {
    const std::uint32_t beside = std::min(most_beside, n - first);
    Trees growing = init_root(channel, first, beside, false, drawn, interrupt);
    Growth growth(channel, growing, first, work_of_message_, interrupt);
    growth.run();
    if (first == 0) before = mean_out_of_bag(channel, drawn, interrupt);
    std::vector<BoostedTree> grown = growth.finished();
    for (std::uint32_t i = 0; i < beside; ++i) least_gains_[first + i] = growing[i]->least_gain();
    set_values(first, growing, grown);
    added_now.push_back(added(first, grown, false, false));
    const bool is_last = first + beside == n;
    std::vector<MessageReader> partitions = readers(channel, added(first, grown, true, is_last), interrupt);
    if (is_last) read_state(std::move(partitions));
    for (BoostedTree& g : grown) trees.push_back(std::move(g.tree));
  }
  before_ = before;
  after_ = mean_out_of_bag(channel, drawn, interrupt);
  history_.insert(history_.end(), added_now.begin(), added_now.end());
  for (Tree& tree : trees) trees_.push_back(std::move(tree));
  ++round_;
}

PartitionedBoosting::Trees PartitionedBoosting::init_root(Channel& channel, std::uint32_t first, std::uint32_t n,
                                                          bool takes_all, Drawn& drawn, Interrupt& interrupt) {
  MessageWriter to = message_of(Request::init_root);
  put_roots(to, {round_, totals_, first, n, takes_all});
  std::vector<MessageReader> partitions = readers(channel, to.take(), interrupt);
  drawn = {};
  for (MessageReader& partition : partitions) drawn.of_partition.push_back(partition.get<DrawnRows>());
  if (drawn.n_rows() == 0 && !takes_all) return init_root(channel, first, n, true, drawn, interrupt);
  Trees trees;
  for (std::uint32_t k = first; k < first + n; ++k) {
    trees.push_back(std::make_unique<PartitionedTree>(
        coding_, tree_params(k), PackedScales(totals_[k], whole_.n_all_rows).units(),
        key_of_boosted_tree(params_.tree.seed, round_, k), least_gains_[k], params_.tree.n_threads, interrupt));
    trees.back()->init_root(drawn.n_rows(), partitions);
  }
  return trees;
}

void PartitionedBoosting::set_values(std::uint32_t first, const Trees& trees, std::vector<BoostedTree>& grown) const {
  for (std::uint32_t i = 0; i < grown.size(); ++i) {
    const std::uint32_t k = first + i;
    std::vector<WholeSums> sums;
    std::vector<std::int64_t> weights;
    for (const GrownLeaf& leaf : grown[i].leaves) {
      const LeafSums found = trees[i]->rows().sums_of(leaf.name).value();
      sums.push_back({found.gradient, found.hessian});
      weights.push_back(found.weight);
    }
    const SplitSearch search(coding_, tree_params(k), {});
    set_steps(grown[i], sums, LeafScales(totals_[k]), search, tree_params(k), params_.step_growth(round_),
              is_damped(params_, parts_[component_of_[k]], k), false);
    if (is_weighted_) set_weights(grown[i], weights, whole_.weight_scale);
    average_below(grown[i].tree);
  }
}

std::string PartitionedBoosting::added(std::uint32_t first, const std::vector<BoostedTree>& grown, bool is_new,
                                       bool wants_state) const {
  MessageWriter to = message_of(Request::add);
  to.put<std::uint8_t>(wants_state);
  to.put<std::uint32_t>(static_cast<std::uint32_t>(grown.size()));
  for (std::uint32_t i = 0; i < grown.size(); ++i) {
    const Tree& tree = grown[i].tree;
    to.put<std::uint32_t>(first + i);
    to.put_run(tree.feature);
    to.put_run(tree.right);
    to.put_run(tree.flags);
    to.put_run(tree.set);
    to.put_run(tree.sets);
    to.put_run(tree.value);
    to.put_run(grown[i].cut);
    std::vector<std::uint32_t> nodes, names;
    for (std::size_t l = 0; is_new && l < grown[i].leaves.size(); ++l) {
      nodes.push_back(grown[i].leaves[l].node);
      names.push_back(grown[i].leaves[l].name);
    }
    to.put_run(nodes);
    to.put_run(names);
  }
  return to.take();
}

// Of the out-of-bag rows of the round, in table order.
double PartitionedBoosting::mean_out_of_bag(Channel& channel, const Drawn& drawn, Interrupt& interrupt) {
  if (params_.subsample >= 1 || drawn.n_rows() == 0) return unknown;
  std::uint64_t n_weighted = 0, n = 0;
  std::vector<std::uint64_t> places;
  for (const DrawnRows& of : drawn.of_partition) {
    places.insert(places.end(), {of.first_row, n_weighted, n - n_weighted});
    n_weighted += of.n_weighted;
    n += of.n_out_of_bag;
  }
  if (n_weighted == 0) return unknown;
  const std::size_t step = step_out_of_bag(n), n_evaluated = (n + step - 1) / step;
  MessageWriter to = message_of(Request::out_of_bag);
  to.put<std::uint64_t>(step);
  to.put<std::uint64_t>(n_weighted);
  to.put_run(places);
  const std::size_t n_parts = parts_.size(), width = n_parts + 1 + n_scores();
  std::vector<std::vector<double>> columns(width, std::vector<double>(n_evaluated));
  for (MessageReader& partition : readers(channel, to.take(), interrupt))
    while (partition.left() > 0) {
      const auto at = partition.get<std::uint64_t>();
      if (at >= n_evaluated) throw std::invalid_argument("The partitions report inconsistent numbers of rows.");
      for (std::vector<double>& column : columns) column[at] = partition.get<double>();
    }
  std::vector<LossSum> sums((n_evaluated + chunk_rows - 1) / chunk_rows);
  for (std::size_t c = 0; c < sums.size(); ++c) {
    const std::size_t begin = c * chunk_rows, size = std::min(chunk_rows, n_evaluated - begin);
    const double* weight = is_weighted_ ? columns[n_parts].data() + begin : nullptr;
    std::vector<const double*> scores;
    for (std::uint32_t k = 0; k < n_scores(); ++k) scores.push_back(columns[n_parts + 1 + k].data() + begin);
    for (std::size_t p = 0; p < n_parts; ++p)
      add_losses(parts_[p], columns[p].data() + begin, weight, scores.data() + parts_[p].first, size, sums[c]);
    sums[c].count(weight, size);
  }
  return mean_of(sums);
}

}  // namespace spinney
