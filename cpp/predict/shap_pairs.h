// Shapley values of small trees where a register holds two doubles.
//
// The factor of a register at a split depends on which of its rows take the edge. Two rows have four cases, and a table
// of them replaces broadcasts and selections, half of all work: the ratios of P and the gains of a case are adjacent,
// [side][case][point][ratio, gain][row]. Products and sums are those of ShapWalk, in the same order.
//
// Included by shap_body.cpp only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/lanes.h"
#include "predict/shap_tree.h"

namespace spinney {
namespace {

constexpr std::size_t shap_pairs = shap_lanes / 2;
constexpr std::size_t table_of_side = 16;  // numbers per point: four cases of a ratio and a gain for two rows
constexpr std::size_t most_table_points = 6;

void fill_table(const double* c, std::size_t n_points, double* table) {
  static constexpr ShapKernels::Constant ratios[2][2] = {{ShapKernels::left_unmet, ShapKernels::left_met},
                                                         {ShapKernels::right_unmet, ShapKernels::right_met}};
  static constexpr ShapKernels::Constant gains[2][2] = {{ShapKernels::loss, ShapKernels::gain_left},
                                                        {ShapKernels::loss, ShapKernels::gain_right}};
  for (std::size_t side = 0; side < 2; ++side)
    for (std::size_t taken = 0; taken < 4; ++taken)
      for (std::size_t k = 0; k < n_points; ++k)
        for (const auto& constants : {ratios[side], gains[side]})
          for (std::size_t row = 0; row < 2; ++row) *table++ = c[constants[taken >> row & 1] * n_points + k];
}

// One walk of eight rows over a tree, depth first, each pair of rows separately.
template <std::size_t n_points>
class ShapPairWalk {
  using Pair = Lanes<double, 2>;
  using PairMask = Flags<double, 2>;
  using Numbers = Lanes<double, shap_lanes>;
  using Mask = Flags<double, shap_lanes>;

 public:
  ShapPairWalk(const ShapTree& tree, const ShapLanes* x, const ShapSides* sides, ShapScratch& scratch,
               ShapLanes* values)
      : splits_(tree.splits.data()),
        tables_(tree.tables.data()),
        weight_(tree.weight),
        x_(reinterpret_cast<const Numbers*>(x)),
        sides_(sides),
        down_(reinterpret_cast<Pair*>(scratch.down.data())),
        up_(reinterpret_cast<Pair*>(scratch.up.data())),
        done_(reinterpret_cast<Pair*>(scratch.done.data())),
        left_(scratch.left.data()),
        right_(scratch.right.data()),
        before_(scratch.before.data()),
        alive_(scratch.alive.data()),
        places_(scratch.places.data()),
        open_(scratch.open.data()),
        out_(reinterpret_cast<Pair*>(values)) {}

  void run() {
    for (std::size_t i = 0; i < shap_pairs; ++i)
      for (std::size_t k = 0; k < n_points; ++k) down_[i * n_points + k] = every<2>(weight_[k]);
    for (std::uint32_t at = 0;;) {
      enter(at);
      const ShapSplit* s = &splits_[at];
      if (s->left_value == nullptr) {
        carry<false>(*s, 0, s->left_fraction, 1.0, level_of(down_, s->level + 1));
        note_alive(*s, left_);
        ++at;
        continue;
      }
      if (s->right_value != nullptr) {
        finish_leaves(*s, sums_of(at));
        at = climb(at);
        if (at == nothing) return;
        s = &splits_[at];
      } else {
        carry<true>(*s, 0, s->left_fraction, *s->left_value, level_of(up_, s->level));
      }
      while (s->right_value != nullptr) {
        carry<true>(*s, 1, s->right_fraction, *s->right_value, done_);
        finish(*s, sums_of(at));
        at = climb(at);
        if (at == nothing) return;
        s = &splits_[at];
      }
      carry<false>(*s, 1, s->right_fraction, 1.0, level_of(down_, s->level + 1));
      note_alive(*s, right_);
      at = s->right;
    }
  }

 private:
  static constexpr std::uint32_t nothing = UINT32_MAX;

  static Pair* level_of(Pair* of_levels, std::size_t level) { return of_levels + level * shap_pairs * n_points; }
  const double* table(const ShapSplit& s, std::size_t side, std::size_t pair) const {
    const auto index = static_cast<std::size_t>(&s - splits_);
    return tables_ + index * 2 * table_of_side * n_points + places_[s.level * shap_lanes + side * shap_pairs + pair];
  }
  static PairMask mask_of(const ShapMask& mask, std::size_t pair) { return load<2>(mask.of + 2 * pair); }

  // The sides of the rows at a split, and which of them have met the conditions on its column so far.
  SPINNEY_INLINE void enter(std::uint32_t at) {
    const ShapSplit& s = splits_[at];
    open_[s.level] = at;
    ShapMask &left = left_[s.level], &right = right_[s.level];
    if (s.looked_up < 0) {
      const Numbers threshold = every<shap_lanes>(s.threshold);
      const Mask up_to = s.missing_left ? ~(x_[s.slot] > threshold) : x_[s.slot] <= threshold;
      store(left.of, up_to);
      store(right.of, ~up_to);
    } else {
      for (std::size_t lane = 0; lane < shap_lanes; ++lane) {
        left.of[lane] = -(std::int64_t{sides_[s.looked_up].left} >> lane & 1);
        right.of[lane] = -(std::int64_t{sides_[s.looked_up].right} >> lane & 1);
      }
    }
    if (s.previous >= 0) before_[s.level] = alive_[s.previous];
    std::uint32_t* place = places_ + s.level * shap_lanes;
    for (std::size_t i = 0; i < shap_pairs; ++i) {
      place[i] = place_of(left, i);
      place[shap_pairs + i] = place_of(right, i) + static_cast<std::uint32_t>(table_of_side * n_points);
    }
  }

  static std::uint32_t place_of(const ShapMask& taken, std::size_t pair) {
    constexpr std::int64_t size = 4 * n_points;  // of a case
    return static_cast<std::uint32_t>((taken.of[2 * pair] & size) + (taken.of[2 * pair + 1] & 2 * size));
  }

  void note_alive(const ShapSplit& s, const ShapMask* taken) const {
    Mask mask = load<shap_lanes>(taken[s.level].of);
    if (s.previous >= 0) mask = mask & load<shap_lanes>(before_[s.level].of);
    store(alive_[s.level].of, mask);
  }

  // P of a child, or H of a leaf
  template <bool is_leaf>
  SPINNEY_INLINE void carry(const ShapSplit& s, std::size_t side, double fraction, double value, Pair* to) const {
    const Pair *p = level_of(down_, s.level), v = every<2>(value), unmet = every<2>(fraction);
    for (std::size_t i = 0; i < shap_pairs; ++i) {
      const double* ratios = table(s, side, i);
      for (std::size_t k = 0; k < n_points; ++k) {
        Pair ratio = load<2>(ratios + 4 * k);
        if (s.previous >= 0) ratio = select(mask_of(before_[s.level], i), ratio, unmet);
        const Pair product = p[i * n_points + k] * ratio;
        to[i * n_points + k] = is_leaf ? v * product : product;
      }
    }
  }

  // The contribution of the split's column, and the sums for the node above.
  SPINNEY_INLINE void finish(const ShapSplit& s, Pair* to) const {
    const Pair* from_left = level_of(up_, s.level);
    for (std::size_t i = 0; i < shap_pairs; ++i) {
      const double *gain_left = table(s, 0, i) + 2, *gain_right = table(s, 1, i) + 2;
      Pair sum = every<2>(0.0);
      for (std::size_t k = 0; k < n_points; ++k) {
        const Pair left = from_left[i * n_points + k], right = done_[i * n_points + k];
        sum += left * load<2>(gain_left + 4 * k) + right * load<2>(gain_right + 4 * k);
        to[i * n_points + k] = right + left;
      }
      add(s, i, sum);
    }
  }

  // The same for a split between leaves.
  SPINNEY_INLINE void finish_leaves(const ShapSplit& s, Pair* to) const {
    const Pair *p = level_of(down_, s.level), left_value = every<2>(*s.left_value),
               right_value = every<2>(*s.right_value);
    const Pair left_fraction = every<2>(s.left_fraction), right_fraction = every<2>(s.right_fraction);
    for (std::size_t i = 0; i < shap_pairs; ++i) {
      const double *on_left = table(s, 0, i), *on_right = table(s, 1, i);
      Pair sum = every<2>(0.0);
      for (std::size_t k = 0; k < n_points; ++k) {
        Pair left_ratio = load<2>(on_left + 4 * k), right_ratio = load<2>(on_right + 4 * k);
        if (s.previous >= 0) {
          const PairMask before = mask_of(before_[s.level], i);
          left_ratio = select(before, left_ratio, left_fraction);
          right_ratio = select(before, right_ratio, right_fraction);
        }
        const Pair left = left_value * (p[i * n_points + k] * left_ratio);
        const Pair right = right_value * (p[i * n_points + k] * right_ratio);
        sum += left * load<2>(on_left + 4 * k + 2) + right * load<2>(on_right + 4 * k + 2);
        to[i * n_points + k] = right + left;
      }
      add(s, i, sum);
    }
  }

  SPINNEY_INLINE void add(const ShapSplit& s, std::size_t pair, Pair sum) const {
    if (s.previous >= 0) sum = select(mask_of(before_[s.level], pair), sum, every<2>(0.0));
    out_[s.slot * shap_pairs + pair] += sum;
  }

  bool is_left(std::uint32_t at) const {
    const std::uint32_t parent = open_[splits_[at].level - 1];
    return splits_[parent].left_value == nullptr && at == parent + 1;
  }

  // Where the sums below a split are stored.
  Pair* sums_of(std::uint32_t at) const {
    const std::size_t level = splits_[at].level;
    return level > 0 && is_left(at) ? level_of(up_, level - 1) : done_;
  }

  // Finishes every split above whose right side is done; returns the split whose left side is done.
  SPINNEY_INLINE std::uint32_t climb(std::uint32_t at) const {
    for (;;) {
      if (splits_[at].level == 0) return nothing;
      const std::uint32_t parent = open_[splits_[at].level - 1];
      if (is_left(at)) return parent;
      finish(splits_[parent], sums_of(parent));
      at = parent;
    }
  }

  const ShapSplit* splits_;
  const double *tables_, *weight_;
  const Numbers* x_;
  const ShapSides* sides_;
  Pair *down_, *up_, *done_;
  ShapMask *left_, *right_, *before_, *alive_;
  std::uint32_t *places_, *open_;
  Pair* out_;
};

template <std::size_t n_points>
void walk_pairs(const ShapTree& tree, const ShapLanes* x, const ShapSides* sides, ShapScratch& scratch,
                ShapLanes* values) {
  ShapPairWalk<n_points>(tree, x, sides, scratch, values).run();
}

}  // namespace
}  // namespace spinney
