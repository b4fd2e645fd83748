// The next splits of a tree in their order, as far as it is known, for threads that make them in any order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace spinney {

template <class Leaf>
class NextSplits {
 public:
  // A leaf follows its parent, so it counts with the least gain on its way from the root, unless the order is by depth.
  struct Split {
    double gain;
    std::uint32_t depth;
    Leaf* leaf;  // null: a thread has taken it, or it is split
  };

  // Further splits than the first `most` are not considered. Those with less than `probable_gain` will hardly be made.
  NextSplits(std::size_t most, bool depth_wise, double probable_gain)
      : most_(most), is_depth_wise_(depth_wise), probable_gain_(depth_wise ? 0 : probable_gain) {}
  std::size_t most() const { return most_; }

  void add(Leaf& leaf, double gain_of_parent) {
    const double own = leaf.best.gain;
    const Split split{is_depth_wise_ ? own : std::min(own, gain_of_parent), leaf.depth,
                      leaf.is_split() ? nullptr : &leaf};
    const auto at = std::upper_bound(splits_.begin(), splits_.end(), split,
                                     [this](const Split& a, const Split& b) { return is_before(a, b); });
    if (at == splits_.end() && splits_.size() == most_) return;
    n_taken_ = std::min(n_taken_, static_cast<std::size_t>(at - splits_.begin()));
    splits_.insert(at, split);
    if (splits_.size() > most_) splits_.pop_back();
  }

  // The first leaf that no thread has taken, or null.
  Leaf* first() {
    while (n_taken_ < splits_.size() && splits_[n_taken_].leaf == nullptr) ++n_taken_;
    return n_taken_ < splits_.size() ? splits_[n_taken_].leaf : nullptr;
  }

  // Returns whether that leaf, which exists, will probably be split.
  bool is_first_probable() const { return splits_[n_taken_].gain >= probable_gain_; }
  void count_all_as_probable() { probable_gain_ = 0; }

  // Takes the first leaf, which exists, and returns the gain that its children are added with.
  double take() {
    splits_[n_taken_].leaf = nullptr;
    return splits_[n_taken_].gain;
  }

 private:
  bool is_before(const Split& a, const Split& b) const {
    return is_depth_wise_ && a.depth != b.depth ? a.depth < b.depth : a.gain > b.gain;
  }

  const std::size_t most_;
  const bool is_depth_wise_;
  double probable_gain_;
  std::vector<Split> splits_;
  std::size_t n_taken_ = 0;  // so many are taken at the beginning
};

}  // namespace spinney
