// What a tree asks of rows that are dealt out to pieces, which may lie in other processes.
//
// A piece has the codes of some rows that follow one another in the table, and their gradients; it parts the rows of nodes
// and adds up their histograms. Whoever grows the tree adds up what all pieces say, which are whole numbers, and finds the
// splits. All questions that can be asked at once are one message, so that few are sent. Pieces answer messages in the order
// in which they are sent, so that one may be sent before another is answered. A node is known by a number.
#pragma once

#include <cstdint>
#include <vector>

#include "base/message.h"
#include "boost/codes.h"
#include "boost/kernels.h"
#include "boost/split.h"

namespace spinney {

enum class Question : std::uint8_t {
  gradients,    // at the present scores: their sums, and the rows' losses, chunk by chunk
  plant,        // rows and rounded gradients of trees to be grown: histograms of the roots
  divide,       // nodes to be parted (and histograms of a child), or counted by the codes of a column; then leaf_sums
  leaf_sums,    // gradients, hessians and weights of leaves
  add,          // finished trees, to be added to the scores
  out_of_bag,   // targets, weights and scores of some rows that were not drawn
  held_scores,  // scores of all rows, as those held out have them
  keep_scores,  // nothing: these scores are the best so far
  kept_scores,  // those that were kept last
};

enum class OfChild : std::uint8_t { none, left, right };  // whose histogram is wanted

struct LeafSums {  // of a node's rows, in whole numbers, so that those of its children add up to them
  std::int64_t gradient = 0, hessian = 0, weight = 0;

  LeafSums& operator+=(const LeafSums& other) {
    gradient += other.gradient;
    hessian += other.hessian;
    weight += other.weight;
    return *this;
  }
};

// A histogram as it is sent: the cells of the columns that the tree may use, column by column.
class PlainCells {
 public:
  PlainCells(const Coding& coding, const std::vector<std::uint8_t>& in_use) : first_(coding.columns.size(), none) {
    for (std::uint32_t f = 0; f < coding.columns.size(); ++f) {
      if (!in_use[f] || coding.columns[f].n_codes < 2) continue;
      columns_.push_back(f);
      first_[f] = n_cells_;
      n_cells_ += coding.columns[f].n_codes;
    }
  }
  std::size_t n_cells() const { return n_cells_; }
  const std::vector<std::uint32_t>& columns() const { return columns_; }
  std::size_t first(std::uint32_t column) const { return first_[column]; }

 private:
  static constexpr std::size_t none = SIZE_MAX;
  std::size_t n_cells_ = 0;
  std::vector<std::uint32_t> columns_;
  std::vector<std::size_t> first_;
};

inline void put_split(MessageWriter& to, const BoostSplit& split) {
  to.put<std::uint32_t>(split.feature);
  to.put<std::uint32_t>(split.cut);
  to.put<std::uint8_t>(split.missing_left);
  to.put<std::uint8_t>(split.is_category);
  to.put_run(split.left_codes);
}

inline BoostSplit get_split(MessageReader& from) {
  BoostSplit split;
  split.feature = from.get<std::uint32_t>();
  split.cut = from.get<std::uint32_t>();
  split.missing_left = from.get<std::uint8_t>() != 0;
  split.is_category = from.get<std::uint8_t>() != 0;
  split.left_codes = from.get_run<std::uint32_t>();
  return split;
}

}  // namespace spinney
