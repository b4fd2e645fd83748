// The trees of a round: one for each score, or one with multi-output leaves.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "boost/roots.h"
#include "learn/leaf_updater.h"

namespace spinney {

class RoundGrower {
 public:
  RoundGrower(const BoostingState& state, const Gradients& gradients, const RowSample& sample,
              const LeafUpdater& leaves);
  ~RoundGrower();

  // Grows the trees by score and adds their values to the scores of all rows.
  std::vector<BoostedTree> grow(Interrupt& interrupt);

 private:
  struct Workspace;  // of a tree being grown
  struct VectorSpace;

  BoostedTree grow_tree(std::uint32_t score, Workspace& space, Interrupt& interrupt);
  std::vector<BoostedTree> grow_vector(Interrupt& interrupt);
  void fill_roots(Interrupt& interrupt);
  std::uint32_t n_trees_apart() const;

  const BoostingState& state_;
  const Gradients& gradients_;
  const RowSample& sample_;
  const LeafUpdater& leaves_;
  std::vector<std::unique_ptr<Workspace>> spaces_;  // by thread that grows a separate tree; the first always exists
  std::unique_ptr<VectorSpace> vector_space_;
  std::unique_ptr<RootHistograms> roots_;  // if the roots of a round are built together
  std::vector<Units> units_;               // of those pairs, by score
};

}  // namespace spinney
