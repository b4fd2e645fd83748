// Rounds of one tree whose leaves hold a value for each score.
#include "learn/boosting.h"
#include "learn/leaf_values.h"
#include "learn/vector_space.h"

namespace spinney {

// Gains are added up in the unit of the loss. Gradients that tell signs only have none: their scores count alike.
// Those of a normal distribution's mean are in units of a variance.
static double weight_of_gain(const LossPart& part, bool is_first, std::size_t n_parts) {
  const LossTraits& traits = traits_of(part.loss);
  if (part.loss == Loss::normal && is_first) return part.weight / part.parameter;
  return traits.refits_leaves() && !traits.bends ? 1.0 / static_cast<double>(n_parts) : part.weight;
}

void Boosting::grow_vector(Interrupt& interrupt) {
  VectorSpace& space = *vector_space_;
  std::vector<ScoreTerms> scores;
  for (std::uint32_t k = 0; k < n_scores(); ++k) {
    Packed* packed = space.packed[k].data();
    const Units units = quantise(k, packed);
    scores.push_back({packed, units, weight_of_gain(part_of(k), k == part_of(k).first, parts_.size()),
                      tree_params(k).monotonic_cst});
  }
  space.rows.assign(rows_of_round().begin(), rows_of_round().end());
  VectorTree found = space.grower.grow(space.rows, scores, params_.tree, key_of_tree(0), interrupt);
  if (rows_.weight != nullptr) weigh(found.grown, space.rows);
  std::vector<BoostedTree> grown(n_scores(), found.grown);
  for (std::uint32_t k = 0; k < n_scores(); ++k) {
    Tree& tree = grown[k].tree;
    for (std::size_t at = 0; at < tree.size(); ++at) {  // such that the decrease of weight times impurity is the gain
      const double g = static_cast<double>(found.sums[at][k].gradient) * scores[k].units.gradient;
      const double h = static_cast<double>(found.sums[at][k].hessian) * scores[k].units.hessian;
      const double saved = scores[k].weight * g * g / (h + params_.tree.l2_regularization + 1e-300);
      tree.impurity[at] = tree.weight[at] > 0 ? -saved / tree.weight[at] : 0.0;
    }
    set_values(grown[k], k, space.rows);
    average(tree);
    add_to_scores(grown[k], k, space.rows);
  }
  walk_others(grown, 0);
  keep(std::move(grown));
}

}  // namespace spinney
