// Which rows a round of boosting learns from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "learn/gradients.h"

namespace spinney {

class RowSample {
 public:
  RowSample(const BoostingState& state, Gradients& gradients);

  // Of the next round. Those drawn by their gradients stand for others: their gradients are multiplied.
  void draw();

  // The same where other partitions draw too. `takes_all`: nobody has drawn a row, so that all are taken. Returns how many of
  // those out of bag have a weight: they come first.
  std::size_t draw_partition(bool takes_all);

  const RowVector<Row>& in_use() const { return state_.params.subsample < 1 ? in_bag_ : state_.all; }
  const RowVector<Row>& in_bag() const { return in_bag_; }
  const RowVector<Row>& out_of_bag() const { return out_of_bag_; }  // and rows of no weight

  double weight_of(Row r) const {
    return (state_.rows.weight == nullptr ? 1.0 : state_.rows.weight[r]) * stands_for(r);
  }

 private:
  double stands_for(Row r) const {
    return state_.params.draws_by_gradient ? std::max(1.0, whole_size_ / static_cast<double>(sizes_[r])) : 1.0;
  }
  void part_by_chance();
  void add_weightless();
  void draw_largest_and_some(std::uint64_t key);
  void measure_rows();
  void weigh_drawn_rows();

  const BoostingState& state_;
  Gradients& gradients_;
  RowVector<Row> in_bag_, out_of_bag_;
  std::vector<float> sizes_;  // of the rows' gradients, where these say which are drawn
  double whole_size_ = 0;     // a row of which is drawn for certain
};

}  // namespace spinney
