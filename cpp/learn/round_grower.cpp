#include "learn/round_grower.h"

#include <algorithm>

#include "base/pool.h"
#include "boost/local_rows.h"
#include "boost/vector_rows.h"
#include "learn/chunks.h"

namespace spinney {

struct RoundGrower::Workspace {
  Workspace(const BoostingState& state, bool has_roots, int n_threads)
      : packed(has_roots ? 0 : state.n_rows()), memory(*state.coded, n_threads) {}
  std::vector<Row> rows;      // of the tree, leaf by leaf
  LargeArray<Packed> packed;  // unless the roots of a round are built together
  LocalMemory memory;
};

struct RoundGrower::VectorSpace {
  explicit VectorSpace(const BoostingState& state) : memory(*state.coded, state.n_scores(), state.n_threads()) {
    for (std::uint32_t k = 0; k < state.n_scores(); ++k) packed.emplace_back(state.n_rows());
  }
  std::vector<Row> rows;                   // of the tree, leaf by leaf
  std::vector<LargeArray<Packed>> packed;  // by score
  VectorMemory memory;
};

RoundGrower::RoundGrower(const BoostingState& state, const Gradients& gradients, const RowSample& sample,
                         const LeafUpdater& leaves)
    : state_(state), gradients_(gradients), sample_(sample), leaves_(leaves) {
  const int n_threads = state.n_threads();
  if (state.params.vector_leaves) {
    vector_space_ = std::make_unique<VectorSpace>(state);
    return;
  }
  const Tiles& tiles = state.coded->tiles;
  const auto n_drawn = static_cast<std::size_t>(state.params.subsample * static_cast<double>(state.all.size()));
  if (state.params.tree.max_features_per_tree >= 1 &&
      RootHistograms::are_worth_it(tiles, state.n_rows(), n_drawn, state.n_scores(), n_threads))
    roots_ = std::make_unique<RootHistograms>(tiles, state.n_rows(), state.n_scores(), n_threads);
  const bool has_roots = roots_ != nullptr;
  spaces_.push_back(std::make_unique<Workspace>(state, has_roots, n_threads));
  if (n_trees_apart() > 0)
    while (spaces_.size() < std::min<std::size_t>(state.n_scores(), static_cast<std::size_t>(n_threads)))
      spaces_.push_back(std::make_unique<Workspace>(state, has_roots, 1));
}

RoundGrower::~RoundGrower() = default;

// The number of a round's trees, one per class, that are grown by one thread each, so that threads never wait for each
// other. The remaining ones are grown by all threads together, unless they are many: n threads grow a tree about
// n / (1 + n / 12) times as fast as one. So are all trees if rows are in files: each thread would need memory for every
// row.
std::uint32_t RoundGrower::n_trees_apart() const {
  constexpr double most_bytes = 1 << 28;  // of histograms
  const auto n_threads = static_cast<std::uint32_t>(state_.n_threads());
  const double n_leaves = std::min<double>(state_.params.tree.max_leaf_nodes, static_cast<double>(state_.all.size()));
  const Tiles& tiles = state_.coded->tiles;
  const double bytes = 8.0 * static_cast<double>(tiles.n_cells() + tiles.listed().n_cells()) * n_leaves * n_threads;
  const std::uint32_t n_remaining = state_.n_scores() % n_threads;
  const bool are_apart = n_remaining * (12 + n_threads) > 12 * n_threads;
  return n_threads < 2 || bytes > most_bytes || state_.rows.table->spill
             ? 0
             : state_.n_scores() - (are_apart ? 0 : n_remaining);
}

std::vector<BoostedTree> RoundGrower::grow(Interrupt& interrupt) {
  if (state_.params.vector_leaves) return grow_vector(interrupt);
  if (roots_) fill_roots(interrupt);
  std::vector<BoostedTree> grown(state_.n_scores());
  const std::uint32_t n_apart = n_trees_apart();
  const Tiles& tiles = state_.coded->tiles;
  const double ns_per_tree = static_cast<double>(sample_.in_use().size() + tiles.n_cells() + tiles.listed().n_cells());
  parallel_for_if_worth(ns_per_tree * n_apart, n_apart, state_.n_threads(), [&](std::size_t k, int worker) {
    grown[k] = grow_tree(static_cast<std::uint32_t>(k), *spaces_[static_cast<std::size_t>(worker)], interrupt);
  });
  for (std::uint32_t k = n_apart; k < state_.n_scores(); ++k) grown[k] = grow_tree(k, *spaces_[0], interrupt);
  return grown;
}

BoostedTree RoundGrower::grow_tree(std::uint32_t k, Workspace& space, Interrupt& interrupt) {
  const Packed* packed = roots_ ? roots_->pairs(k) : space.packed.data();
  const Units units = roots_ ? units_[k] : gradients_.quantise(k, space.packed.data());
  const RowVector<Row>& rows = sample_.in_use();
  space.rows.resize(rows.size());
  for_each_chunk(rows.size(), state_.n_threads(), 0.2, [&](std::size_t, std::size_t begin, std::size_t end) {
    state_.touch((end - begin) * sizeof(Row));
    std::copy_n(rows.data() + begin, end - begin, space.rows.data() + begin);
  });
  BoostedTree grown = grow_boosted_tree(space.memory, state_.tree_params(k), state_.key_of_tree(k), units, space.rows,
                                        packed, roots_ ? roots_->of(k) : nullptr, interrupt);
  leaves_.set_values(grown, k, space.rows);
  if (!state_.params.linear_columns.empty()) leaves_.add_linear(grown, k, space.rows);
  if (state_.rows.weight != nullptr || state_.params.draws_by_gradient) leaves_.update_weights(grown, space.rows);
  leaves_.average(grown.tree);
  leaves_.add_to_scores(grown, k, space.rows);
  leaves_.walk_others({&grown, 1}, k);
  return grown;
}

void RoundGrower::fill_roots(Interrupt& interrupt) {
  units_.clear();
  for (std::uint32_t k = 0; k < state_.n_scores(); ++k) units_.push_back(gradients_.quantise(k, roots_->pairs(k)));
  roots_->fill(sample_.in_use(), interrupt);
}

// ---- multi-output leaves ---------------------------------------------------------------------------------

namespace {

// Gains are summed in the unit of the loss. Gradients that are signs have no unit: their scores have equal weight.
// Those of the location of a distribution are in units of a variance.
double weight_of_gain(const LossComponent& component, bool is_first, std::size_t n_parts) {
  const LossTraits& traits = traits_of(component.loss);
  if (traits.has_location && is_first) return component.weight / component.parameter;
  return traits.refits_leaves() && !traits.has_delta ? 1.0 / static_cast<double>(n_parts) : component.weight;
}

}  // namespace

std::vector<BoostedTree> RoundGrower::grow_vector(Interrupt& interrupt) {
  VectorSpace& space = *vector_space_;
  std::vector<ScoreTerms> scores;
  for (std::uint32_t k = 0; k < state_.n_scores(); ++k) {
    Packed* packed = space.packed[k].data();
    const Units units = gradients_.quantise(k, packed);
    scores.push_back(
        {packed, units,
         weight_of_gain(state_.component_of(k), k == state_.component_of(k).first, state_.components.size()),
         state_.tree_params(k).monotonic_cst});
  }
  space.rows.assign(sample_.in_use().begin(), sample_.in_use().end());
  VectorTree found =
      grow_vector_tree(space.memory, state_.params.tree, state_.key_of_tree(0), scores, space.rows, interrupt);
  if (state_.rows.weight != nullptr) leaves_.update_weights(found.grown, space.rows);
  std::vector<BoostedTree> grown(state_.n_scores(), found.grown);
  for (std::uint32_t k = 0; k < state_.n_scores(); ++k) {
    Tree& tree = grown[k].tree;
    for (std::size_t at = 0; at < tree.size(); ++at) {  // so that the decrease of weighted impurity equals the gain
      const double g = static_cast<double>(found.sums[at][k].gradient) * scores[k].units.gradient;
      const double h = static_cast<double>(found.sums[at][k].hessian) * scores[k].units.hessian;
      const double saved = scores[k].weight * g * g / (h + state_.params.tree.l2_regularization + 1e-300);
      tree.impurity[at] = tree.weight[at] > 0 ? -saved / tree.weight[at] : 0.0;
    }
    leaves_.set_values(grown[k], k, space.rows);
    leaves_.average(tree);
    leaves_.add_to_scores(grown[k], k, space.rows);
  }
  leaves_.walk_others(grown, 0);
  return grown;
}

}  // namespace spinney
