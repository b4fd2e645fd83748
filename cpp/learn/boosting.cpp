#include "learn/boosting.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "base/math.h"
#include "base/pool.h"
#include "base/random.h"
#include "data/read.h"
#include "learn/chunks.h"
#include "learn/coded_leaves.h"
#include "learn/leaf_values.h"
#include "learn/scales.h"
#include "learn/vector_space.h"
#include "loss/row_loss.h"
#include "tree/shrink.h"

namespace spinney {

namespace {

// Adds what a leaf's line says to the scores of its rows, by the same operations in the same order as `leaf_value`.
void add_line(const Tree& tree, std::size_t node, const Table& table, std::span<const Row> rows, double* scores) {
  constexpr std::size_t block = 256;
  const LeafLines& lines = tree.lines;
  std::vector<double> values((lines.begin[node + 1] - lines.begin[node]) * block);
  for (std::size_t begin = 0; begin < rows.size(); begin += block) {
    const std::size_t n = std::min(block, rows.size() - begin);
    for (std::uint32_t t = lines.begin[node]; t < lines.begin[node + 1]; ++t)
      read_values(table.columns[lines.feature[t]], rows.data() + begin, n,
                  values.data() + (t - lines.begin[node]) * block);
    for (std::size_t i = 0; i < n; ++i) {
      std::size_t next = 0;  // terms are asked for in order
      scores[rows[begin + i]] +=
          lines.at(node, tree.value[node], [&](std::uint32_t) { return values[next++ * block + i]; });
    }
  }
}

}  // namespace

struct Boosting::Workspace {
  Workspace(const Boosting& home, int n_threads)
      : packed(home.roots_ ? 0 : home.n_rows()),
        grower(home.coded_->coding, home.coded_->codes, home.coded_->tiles, n_threads) {}
  std::vector<Row> rows;      // of the tree, leaf by leaf
  LargeArray<Packed> packed;  // unless the trees are planted together
  BoostGrower grower;
};

Boosting::Boosting(BoostingRows rows, BoostingRows held_out, BoostingParams params, std::uint32_t first_round,
                   Interrupt& interrupt, std::shared_ptr<const CodedTable> coded)
    : rows_(std::move(rows)),
      held_out_(std::move(held_out)),
      params_(std::move(params)),
      coded_(std::move(coded)),
      all_(rows_.table->spill),
      in_bag_(rows_.table->spill),
      out_of_bag_(rows_.table->spill),
      judged_(rows_.table->spill),
      round_(first_round) {
  const int n_threads = params_.tree.n_threads;
  place_parts();
  if (n_rows() >= std::size_t{1} << 30) throw std::invalid_argument("boosting takes at most 2^30 rows");
  n_all_rows_ = n_rows();
  take_rows_of_weight(n_rows(), rows_.weight, all_);
  if (all_.empty()) throw std::invalid_argument("no row has a positive weight");
  weigh_rows();
  if (!coded_)
    coded_ = std::make_shared<CodedTable>(*rows_.table, held_out_.table, rows_.weight, params_.max_bins,
                                          !params_.tree.symmetric, params_.tree.forced_splits, n_threads, interrupt);
  if (coded_->table != rows_.table || (held_out_.table != nullptr && coded_->later_table != held_out_.table))
    throw std::invalid_argument("these are the codes of another table");
  if (held_out_.table != nullptr) take_rows_of_weight(held_out_.table->n_rows, held_out_.weight, judged_);
  const Tiles& tiles = coded_->tiles;
  const auto n_drawn = static_cast<std::size_t>(params_.subsample * static_cast<double>(all_.size()));
  if (params_.tree.max_features_per_tree >= 1 && !params_.vector_leaves &&
      RootHistograms::are_worth_it(tiles, n_rows(), n_drawn, n_scores(), n_threads))
    roots_ = std::make_unique<RootHistograms>(tiles, n_rows(), n_scores(), n_threads);
  if (params_.vector_leaves)
    vector_space_ = std::make_unique<VectorSpace>(*this);
  else
    spaces_.push_back(std::make_unique<Workspace>(*this, n_threads));
  if (!params_.vector_leaves && n_trees_apart() > 0)
    while (spaces_.size() < static_cast<std::size_t>(n_threads))
      spaces_.push_back(std::make_unique<Workspace>(*this, 1));
  for (std::uint32_t k = 0; k < n_scores(); ++k) pairs_.emplace_back(n_rows(), rows_.table->spill);
}

Boosting::Boosting(BoostingRows rows, BoostingRows held_out, BoostingParams params,
                   std::shared_ptr<const CodedTable> coded, const Share& share)
    : rows_(std::move(rows)),
      held_out_(std::move(held_out)),
      params_(std::move(params)),
      coded_(std::move(coded)),
      weight_scale_(share.weight_scale),
      first_row_(share.first_row),
      n_all_rows_(share.n_all_rows) {
  params_.tree.count_by_weight = share.count_by_weight;
  place_parts();
  take_rows_of_weight(n_rows(), rows_.weight, all_);
  if (held_out_.table != nullptr) take_rows_of_weight(n_rows(), held_out_.weight, judged_);
  for (std::uint32_t k = 0; k < n_scores(); ++k) pairs_.emplace_back(n_rows());
}

Boosting::~Boosting() = default;

void Boosting::place_parts() {
  parts_ = placed(params_.parts);
  for (std::size_t p = 0; p < parts_.size(); ++p) part_of_.insert(part_of_.end(), parts_[p].n_scores, p);
  for (const auto& monotone : params_.monotonic_cst) {
    of_score_.push_back(params_.tree);
    of_score_.back().monotonic_cst = monotone;
  }
}

// Where a few rows hold nearly all the weight, shares of the hessian, by which the rows of a side are first judged, would
// refuse the others every split: one weight of 1e6 among 2,000 ones left no split at all. There a row counts for the
// usual weight.
void Boosting::weigh_rows() {
  if (params_.draws_by_gradient) weight_scale_ = std::ldexp(1.0, 50 - std::ilogb(static_cast<double>(n_rows())));
  if (rows_.weight == nullptr) return;
  const double first = rows_.weight[all_[0]];
  const auto is_first = [&](Row r) { return rows_.weight[r] == first; };
  if (!params_.draws_by_gradient && std::all_of(all_.begin(), all_.end(), is_first)) even_weight_ = first;
  const WeightScale found = weight_scale(all_, rows_.weight, n_rows(), params_.draws_by_gradient ? 50 : 61);
  weight_scale_ = found.scale;
  if (!(found.count_by_weight > 0)) return;
  params_.tree.count_by_weight = found.count_by_weight;
  for (BoostParams& params : of_score_) params.count_by_weight = params_.tree.count_by_weight;
}

// How many of a round's trees, one per class, are grown by a thread each: the threads never wait for one another then.
// Those left over are grown by all threads together, and so are all where rows lie in files: each thread would need memory of
// its own for every row.
std::uint32_t Boosting::n_trees_apart() const {
  constexpr double most_bytes = 1 << 28;  // of histograms
  const auto n_threads = static_cast<std::uint32_t>(params_.tree.n_threads);
  const double n_leaves = std::min<double>(params_.tree.max_leaf_nodes, static_cast<double>(all_.size()));
  const Tiles& tiles = coded_->tiles;
  const double bytes = 8.0 * static_cast<double>(tiles.n_cells() + tiles.listed().n_cells()) * n_leaves * n_threads;
  return n_threads < 2 || bytes > most_bytes || rows_.table->spill ? 0 : n_scores() - n_scores() % n_threads;
}

void Boosting::advance(Interrupt& interrupt, bool judges_out_of_bag) {
  interrupt.check();
  std::vector<std::uint32_t> dropped = draw_drops();
  take_off(dropped);
  grow_round(interrupt, judges_out_of_bag);
  ++round_;
  if (params_.drop_rate > 0) put_back(std::move(dropped));
}

void Boosting::keep(std::vector<BoostedTree> grown) {
  for (BoostedTree& g : grown) {
    trees_.push_back(std::move(g.tree));
    if (params_.drop_rate > 0) cuts_.push_back(std::move(g.cut));
  }
}

void Boosting::grow_round(Interrupt& interrupt, bool judges_out_of_bag) {
  if (begins_step() || totals_.empty()) {
    if (!has_pairs_) fill_pairs(nullptr);
    if (params_.n_parallel_trees > 1) step_scores_ = rows_.scores;
  }
  draw_rows();
  has_pairs_ = false;
  if (params_.subsample < 1 && judges_out_of_bag) loss_before_ = mean_out_of_bag();
  if (params_.vector_leaves) return grow_vector(interrupt);
  if (roots_) fill_roots(interrupt);
  std::vector<BoostedTree> grown(n_scores());
  const std::uint32_t n_apart = n_trees_apart();
  const Tiles& tiles = coded_->tiles;
  const double ns_per_tree = static_cast<double>(rows_of_round().size() + tiles.n_cells() + tiles.listed().n_cells());
  parallel_for_if_worth(ns_per_tree * n_apart, n_apart, params_.tree.n_threads, [&](std::size_t k, int worker) {
    grown[k] = grow(static_cast<std::uint32_t>(k), *spaces_[static_cast<std::size_t>(worker)], interrupt);
  });
  for (std::uint32_t k = n_apart; k < n_scores(); ++k) grown[k] = grow(k, *spaces_[0], interrupt);
  keep(std::move(grown));
}

BoostedTree Boosting::grow(std::uint32_t k, Workspace& space, Interrupt& interrupt) {
  const Packed* packed = roots_ ? roots_->pairs(k) : space.packed.data();
  const Units units = roots_ ? units_[k] : quantise(k, space.packed.data());
  const RowVector<Row>& rows = rows_of_round();
  space.rows.resize(rows.size());
  for_each_chunk(rows.size(), params_.tree.n_threads, 0.2, [&](std::size_t, std::size_t begin, std::size_t end) {
    touch((end - begin) * sizeof(Row));
    std::copy_n(rows.data() + begin, end - begin, space.rows.data() + begin);
  });
  BoostedTree grown = space.grower.grow(space.rows, packed, units, tree_params(k), key_of_tree(k),
                                        roots_ ? roots_->of(k) : nullptr, interrupt);
  set_values(grown, k, space.rows);
  if (!params_.linear_columns.empty()) add_lines(grown, k, space.rows);
  if (rows_.weight != nullptr || params_.draws_by_gradient) weigh(grown, space.rows);
  average(grown.tree);
  add_to_scores(grown, k, space.rows);
  walk_others({&grown, 1}, k);
  return grown;
}

std::uint64_t key_of_boosted_tree(std::uint64_t seed, std::uint32_t round, std::uint32_t score) {
  return derive(derive(derive(seed, 12), round), score);
}

void Boosting::fill_roots(Interrupt& interrupt) {
  units_.clear();
  for (std::uint32_t k = 0; k < n_scores(); ++k) units_.push_back(quantise(k, roots_->pairs(k)));
  roots_->fill(rows_of_round(), interrupt);
}

Units Boosting::quantise(std::uint32_t k, Packed* packed) const {
  const PackedScales scales(totals_[k], n_all_rows_);
  const auto low = static_cast<std::uint32_t>(key_of_tree(k));
  for_each_chunk(n_rows(), params_.tree.n_threads, 1.0, [&](std::size_t, std::size_t begin, std::size_t end) {
    touch((end - begin) * sizeof(Pair));
    boost_kernels().quantise(pairs_[k].data() + begin, first_row_ + begin, end - begin, scales.gradient, scales.hessian,
                             low, packed + begin);
  });
  return scales.units();
}

// Leaves are set from the gradients before rounding; their sums are whole numbers of a unit that none of them feels, so
// they may be added up in any order.
void Boosting::set_values(BoostedTree& grown, std::uint32_t k, std::span<const Row> rows) const {
  const std::size_t n_leaves = grown.leaves.size();
  const int n_threads = params_.tree.n_threads;
  if (traits_of(part_of(k).loss).refits_leaves()) {
    const double estimated_ns = 30.0 * static_cast<double>(rows.size());
    parallel_for_if_worth(estimated_ns, n_leaves, n_threads, [&](std::size_t i, int) {
      grown.tree.value[grown.leaves[i].node] = refitted_value(grown.leaves[i], k, rows);
    });
    return order_values(grown.tree, tree_params(k).monotonic_cst);
  }
  const LeafScales scales(totals_[k]);
  std::vector<std::atomic<std::int64_t>> g(n_leaves), h(n_leaves);
  for_each_piece(grown.leaves, rows, n_rows(), n_threads, 3.0, [&](std::size_t i, std::size_t begin, std::size_t end) {
    touch((end - begin) * sizeof(Pair));
    const WholeSums sums =
        boost_kernels().sum_pairs(pairs_[k].data(), rows.data() + begin, end - begin, scales.gradient, scales.hessian);
    g[i].fetch_add(sums.gradient, std::memory_order_relaxed);
    h[i].fetch_add(sums.hessian, std::memory_order_relaxed);
  });
  std::vector<WholeSums> sums;
  sums.reserve(n_leaves);
  for (std::size_t i = 0; i < n_leaves; ++i) sums.push_back({g[i].load(), h[i].load()});
  const SplitSearch search(coded_->coding, tree_params(k), {});
  set_steps(grown, sums, scales, search, tree_params(k), params_.step_growth(round_),
            is_tempered(params_, part_of(k), k), params_.vector_leaves);
}

void Boosting::add_lines(BoostedTree& grown, std::uint32_t k, std::span<const Row> rows) const {
  const BoostParams& tree = tree_params(k);
  const SplitSearch search(coded_->coding, tree, {});
  const bool tempers = is_tempered(params_, part_of(k), k);
  StepRules rules;
  rules.newton = [&](double g, double h) { return search.step(g, h, {}); };
  rules.bounded = [&](double size) {
    if (tree.max_step > 0) size = std::min(size, tree.max_step);
    if (tree.longest_step > 0) size = std::min(size, tree.longest_step);
    return tempers ? tempered(size) : size;
  };
  rules.learning_rate = tree.learning_rate * params_.step_growth(round_);
  set_lines(grown, *rows_.table, rows, pairs_[k].data(), {params_.linear_columns, params_.linear_l2}, rules,
            tree.n_threads);
}

double Boosting::refitted_value(const GrownLeaf& leaf, std::uint32_t k, std::span<const Row> rows) const {
  const Part& part = part_of(k);
  const LossTraits& traits = traits_of(part.loss);
  const double *target = target_of(part, rows_),
               *scores = (step_scores_.empty() ? rows_.scores : step_scores_)[k].data();
  std::vector<std::pair<double, double>> residuals;
  for (const Row r : rows.subspan(leaf.begin, leaf.end - leaf.begin))
    residuals.emplace_back(target[r] - scores[r], (rows_.weight == nullptr ? 1.0 : rows_.weight[r]) *
                                                      (traits.is_relative ? relative_weight(target[r]) : 1.0));
  double value = weighted_quantile(residuals, traits.level(part.parameter));
  if (traits.refit == LeafRefit::clipped_mean) {
    double sum = 0, total = 0;
    for (const auto& [residual, weight] : residuals) {
      sum += weight * std::clamp(residual - value, -part.delta, part.delta);
      total += weight;
    }
    value += sum / total;
  }
  if (params_.tree.max_step > 0) value = std::clamp(value, -params_.tree.max_step, params_.tree.max_step);
  return params_.tree.learning_rate * value;  // steps grow with squared errors alone
}

// Values of splits are means of those below; leaves may count for less, or be drawn to these.
void Boosting::average(Tree& tree) const {
  if (step_share_ < 1)
    for (double& value : tree.value) value *= step_share_;
  average_below(tree);
  if (params_.hierarchical_shrinkage > 0) shrink(tree, params_.hierarchical_shrinkage);
}

// Nodes know the weight of their rows, not their number. It is summed in whole numbers of a power of two that is small
// enough: whole weights stay what they are, and the order of the rows does not matter.
void Boosting::weigh(BoostedTree& grown, std::span<const Row> rows) const {
  if (even_weight_ > 0) {
    const auto unit = static_cast<std::int64_t>(even_weight_ * weight_scale_);
    std::vector<std::int64_t> weights;
    weights.reserve(grown.leaves.size());
    for (const GrownLeaf& leaf : grown.leaves)
      weights.push_back(static_cast<std::int64_t>(leaf.end - leaf.begin) * unit);
    return set_weights(grown, weights, weight_scale_);
  }
  std::vector<std::atomic<std::int64_t>> sums(grown.leaves.size());
  for_each_piece(grown.leaves, rows, n_rows(), params_.tree.n_threads, 2.0,
                 [&](std::size_t i, std::size_t begin, std::size_t end) {
                   touch(rows_, end - begin);
                   std::int64_t sum = 0;
                   for (std::size_t j = begin; j < end; ++j)
                     sum += static_cast<std::int64_t>(weight_of(rows[j]) * weight_scale_);
                   sums[i].fetch_add(sum, std::memory_order_relaxed);
                 });
  std::vector<std::int64_t> weights;
  weights.reserve(sums.size());
  for (const auto& sum : sums) weights.push_back(sum.load(std::memory_order_relaxed));
  set_weights(grown, weights, weight_scale_);
}

void Boosting::add_to_scores(const BoostedTree& grown, std::uint32_t k, std::span<const Row> rows) {
  double* scores = rows_.scores[k].data();
  for_each_piece(grown.leaves, rows, n_rows(), params_.tree.n_threads, 2.0,
                 [&](std::size_t i, std::size_t begin, std::size_t end) {
                   touch((end - begin) * sizeof(double));
                   const std::size_t node = grown.leaves[i].node;
                   const double value = grown.tree.value[node];
                   if (grown.tree.lines.has(node))
                     return add_line(grown.tree, node, *rows_.table, rows.subspan(begin, end - begin), scores);
                   for (std::size_t j = begin; j < end; ++j) scores[rows[j]] += value;
                 });
}

// Rows that the trees were not grown on; the trees are those of scores from the first, and differ in their values alone.
void Boosting::walk_others(std::span<const BoostedTree> grown, std::uint32_t first) {
  // Rows without a weight come last; nobody asks for their scores where they are held out and have scores as such.
  const std::size_t n_apart =
      held_out_.table == rows_.table && !out_of_bag_.empty() ? all_.size() - in_bag_.size() : out_of_bag_.size();
  if (n_apart > 0) walk(grown, first, coded_->codes, std::span<const Row>(out_of_bag_).first(n_apart), rows_);
  if (held_out_.table == nullptr) return;
  const Codes& codes = held_out_.table == rows_.table ? coded_->codes : coded_->later;
  walk(grown, first, codes, judged_, held_out_);
}

void Boosting::walk(std::span<const BoostedTree> grown, std::uint32_t first, const Codes& codes,
                    std::span<const Row> rows, BoostingRows& to) const {
  std::vector<RowVector<double>>& scores = to.scores;
  const auto touch_rows = [&](std::span<const Row> some) { rows_.table->touch(some, grown.size()); };
  for_each_leaf(
      grown[0].tree, grown[0].cut, coded_->coding, codes, rows, params_.tree.n_threads,
      [&](Row r, std::uint32_t leaf) {
        for (std::size_t k = 0; k < grown.size(); ++k)
          scores[first + k][r] +=
              leaf_value(grown[k].tree, leaf, [&](std::uint32_t f) { return value_at(to.table->columns[f], r); });
      },
      touch_rows);
}

}  // namespace spinney
