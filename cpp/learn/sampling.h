// The rows used in a boosting round.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "learn/gradients.h"

namespace spinney {

class RowSample {
 public:
  RowSample(const BoostingState& state, Gradients& gradients);

  // Draws the rows of the next round. The gradients of rows drawn by their gradients are reweighted.
  void draw();

  // The same with other partitions. `takes_all`: no partition has drawn a row, so that all are used. Returns the number
  // of out-of-bag rows with a weight, which come first.
  std::size_t draw_partition(bool takes_all);

  const RowVector<Row>& in_use() const { return state_.params.subsample < 1 ? in_bag_ : state_.all; }
  const RowVector<Row>& in_bag() const { return in_bag_; }
  const RowVector<Row>& out_of_bag() const { return out_of_bag_; }  // including rows of weight 0

  double weight_of(Row r) const {
    return (state_.rows.weight == nullptr ? 1.0 : state_.rows.weight[r]) * stands_for(r);
  }

 private:
  double stands_for(Row r) const {
    return state_.params.draws_by_gradient ? std::max(1.0, whole_size_ / static_cast<double>(sizes_[r])) : 1.0;
  }
  void draw_by_hash();
  void add_weightless();
  void draw_largest_and_some(std::uint64_t key);
  void measure_rows();
  void reweight_drawn_rows();

  const BoostingState& state_;
  Gradients& gradients_;
  RowVector<Row> in_bag_, out_of_bag_;
  std::vector<float> sizes_;  // of the rows' gradients, if rows are drawn by them
  double whole_size_ = 0;     // rows of at least this size are drawn with certainty
};

}  // namespace spinney
