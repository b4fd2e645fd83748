// The trees of a round: one for each score, or one whose leaves hold a value for each of them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "boost/roots.h"
#include "learn/leaf_setting.h"

namespace spinney {

class RoundGrower {
 public:
  RoundGrower(const BoostingState& state, const Gradients& gradients, const RowSample& sample,
              const LeafSetting& leaves);
  ~RoundGrower();

  // Trees by score, whose values have been added to the scores of all rows.
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
  const LeafSetting& leaves_;
  std::vector<std::unique_ptr<Workspace>> spaces_;  // by thread that grows a tree of its own; the first always
  std::unique_ptr<VectorSpace> vector_space_;
  std::unique_ptr<RootHistograms> roots_;  // where the trees of a round are planted together
  std::vector<Units> units_;               // of the pairs there, by score
};

}  // namespace spinney
