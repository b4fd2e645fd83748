// Loops of Shapley values, compiled once per instruction set; see base/cpu.h.

#include <algorithm>
#include <cstdint>

#include "base/lanes.h"
#include "predict/shap_pairs.h"
#include "predict/shap_tree.h"

namespace spinney {
namespace {

using Numbers = Lanes<double, shap_lanes>;
using Mask = Flags<double, shap_lanes>;
constexpr bool by_pairs = register_bytes == 16;

SPINNEY_INLINE Numbers every(double c) { return every<shap_lanes>(c); }

SPINNEY_INLINE Mask up_to(const Numbers& x, const Numbers& threshold, bool missing_too) {
  return missing_too ? ~(x > threshold) : x <= threshold;
}

SPINNEY_INLINE Mask mask_of(std::uint8_t bits) {
  ShapMask m;
  for (std::size_t lane = 0; lane < shap_lanes; ++lane) m.of[lane] = -(std::int64_t{bits} >> lane & 1);
  Mask r;
  __builtin_memcpy(&r, &m, sizeof r);
  return r;
}

void fill_split(const ShapTree& tree, const ShapSplit& s, double* c) {
  const std::size_t n = tree.n_points;
  const bool is_new = s.previous < 0;
  const double zl = s.fraction_before * s.left_fraction, zr = s.fraction_before * s.right_fraction;
  const double zs = s.fraction_before * s.stop_fraction;
  for (std::size_t k = 0; k < n; ++k) {
    const double t = tree.t[k], u = tree.u[k];
    const double factor = is_new ? 1.0 : t + s.fraction_before * u,
                 above = is_new ? 0.0 : (1.0 - s.fraction_before) / factor;
    const double left = t + zl * u, right = t + zr * u, stop = t + zs * u, cold = -1.0 / u;
    c[ShapKernels::left_met * n + k] = left / factor;
    c[ShapKernels::left_unmet * n + k] = zl * u / factor;
    c[ShapKernels::right_met * n + k] = right / factor;
    c[ShapKernels::right_unmet * n + k] = zr * u / factor;
    c[ShapKernels::gain_left * n + k] = (1.0 - zl) / left - above;
    c[ShapKernels::gain_right * n + k] = (1.0 - zr) / right - above;
    c[ShapKernels::loss * n + k] = cold - above;
    c[ShapKernels::stop_met * n + k] = stop / factor;
    c[ShapKernels::stop_unmet * n + k] = zs * u / factor;
    c[ShapKernels::gain_stop * n + k] = (1.0 - zs) / stop - above;
    c[ShapKernels::above * n + k] = above;
    c[ShapKernels::cold * n + k] = cold;
  }
}

void fill(ShapTree& tree) {
  double *c = tree.constants.data(), *table = tree.tables.data();
  for (const ShapSplit& s : tree.splits) {
    fill_split(tree, s, c);
    if (by_pairs && !tree.tables.empty()) fill_table(c, tree.n_points, table);
    c += ShapKernels::n_constants * tree.n_points;
    table += 2 * table_of_side * tree.n_points;
  }
}

// One walk of eight rows over a tree, depth first, without recursion, because trees may be deeper than the stack.
// fixed_points: the number of points if known at compile time, else 0.
template <std::size_t fixed_points, bool one_value, bool with_pairs>
class ShapWalk {
 public:
  ShapWalk(const ShapTree& tree, const ShapLanes* x, const ShapSides* sides, std::size_t n_slots, ShapScratch& scratch,
           ShapLanes* values, ShapLanes* pairs)
      : tree_(tree),
        splits_(tree.splits.data()),
        x_(reinterpret_cast<const Numbers*>(x)),
        sides_(sides),
        n_slots_(n_slots),
        n_values_(tree.n_values),
        n_points_(tree.n_points),
        constants_(tree.constants.empty() ? nullptr : tree.constants.data()),
        spare_(scratch.constants.data()),
        down_(reinterpret_cast<Numbers*>(scratch.down.data())),
        up_(reinterpret_cast<Numbers*>(scratch.up.data())),
        done_(reinterpret_cast<Numbers*>(scratch.done.data())),
        edge_(reinterpret_cast<Numbers*>(scratch.edge.data())),
        left_(reinterpret_cast<Mask*>(scratch.left.data())),
        right_(reinterpret_cast<Mask*>(scratch.right.data())),
        before_(reinterpret_cast<Mask*>(scratch.before.data())),
        alive_(reinterpret_cast<Mask*>(scratch.alive.data())),
        open_(scratch.open.data()),
        hidden_(scratch.hidden.data()),
        terms_(scratch.terms.data()),
        due_(reinterpret_cast<Numbers*>(scratch.due.data())),
        out_(reinterpret_cast<Numbers*>(values)),
        pairs_(reinterpret_cast<Numbers*>(pairs)) {}

  void run() {
    for (std::size_t k = 0; k < n_points(); ++k) down_[k] = every(tree_.weight[k]);
    for (std::uint32_t at = 0;;) {
      enter(at);
      if (descend_left(splits_[at])) {
        ++at;
        continue;
      }
      while (!descend_right(splits_[at])) {
        at = climb(at);
        if (at == nothing) return;
      }
      at = splits_[at].right;
    }
  }

 private:
  static constexpr std::uint32_t nothing = UINT32_MAX;

  std::size_t n_points() const { return fixed_points > 0 ? fixed_points : n_points_; }
  std::size_t n_values() const { return one_value ? 1 : n_values_; }
  Numbers* down_of(std::size_t level) const { return down_ + level * n_points(); }
  Numbers* up_of(std::size_t level, std::size_t value) const { return up_ + (level * n_values() + value) * n_points(); }

  const double* constants_of(const ShapSplit& s) {
    if (constants_ != nullptr) {
      const auto index = static_cast<std::size_t>(&s - splits_);
      return constants_ + index * ShapKernels::n_constants * n_points();
    }
    if (made_for_ != &s) fill_split(tree_, s, spare_);
    made_for_ = &s;
    return spare_;
  }

  // The sides of the rows at a split, and which of them have met the conditions on its column so far.
  SPINNEY_INLINE void enter(std::uint32_t at) {
    const ShapSplit& s = splits_[at];
    open_[s.level] = at;
    if (s.looked_up < 0) {
      const Mask left = up_to(x_[s.slot], every(s.threshold), s.missing_left);
      left_[s.level] = left;
      right_[s.level] = ~left;
    } else {
      left_[s.level] = mask_of(sides_[s.looked_up].left);
      right_[s.level] = mask_of(sides_[s.looked_up].right);
    }
    before_[s.level] = s.previous < 0 ? ~mask_of(0) : alive_[s.previous];
    if constexpr (with_pairs) {
      hidden_[s.level] = 0;
      if (s.previous >= 0) hidden_[s.previous] = 1;
    }
  }

  // to[k] = P of a child
  SPINNEY_INLINE void carry_down(const ShapSplit& s, const Mask& met, double fraction, const double* if_met,
                                 const double* if_unmet, Numbers* to) const {
    const Numbers* p = down_of(s.level);
    const Mask taken = met, before = before_[s.level];
    if (s.previous < 0) {
      for (std::size_t k = 0; k < n_points(); ++k) to[k] = p[k] * select(taken, every(if_met[k]), every(if_unmet[k]));
      return;
    }
    for (std::size_t k = 0; k < n_points(); ++k) {
      const Numbers ratio = select(taken, every(if_met[k]), every(if_unmet[k]));
      to[k] = p[k] * select(before, ratio, every(fraction));
    }
  }

  // to[value][k] = H of a leaf, whose P is at to[0]
  SPINNEY_INLINE void turn_at_leaf(const double* value, Numbers* to) const {
    for (std::size_t v = n_values(); v-- > 0;)
      for (std::size_t k = 0; k < n_points(); ++k) to[v * n_points() + k] = every(value[v]) * to[k];
  }

  bool is_linear(std::uint32_t leaf) const { return tree_.linear.begin[leaf] < tree_.linear.begin[leaf + 1]; }

  // The same for a linear leaf below a split, and what its columns contribute themselves.
  void turn_at_linear_leaf(const ShapSplit& s, std::uint32_t leaf, double constant, const Mask& met, double fraction,
                           Numbers* to) {
    double base = tree_.linear.base[leaf];
    const std::size_t n = read_terms(leaf, constant, base);
    for (std::size_t i = 0; i < n; ++i) place_term(terms_[i], s, met, fraction);
    for (std::size_t i = 0; i < n; ++i) {
      const Numbers part = part_of(terms_[i]);
      Numbers sum = every(0);
      for (std::size_t k = 0; k < n_points(); ++k) {
        const double z = terms_[i].fraction, factor = tree_.t[k] + z * tree_.u[k];
        due_[k] = part * to[k] * every(z / (factor * factor));
        sum += due_[k];
      }
      out_[terms_[i].slot] += sum;
      if constexpr (with_pairs) add_interactions(s.level + 1, terms_[i].slot, 0, due_);
    }
    for (std::size_t k = 0; k < n_points(); ++k) {
      Numbers value = every(base);
      for (std::size_t i = 0; i < n; ++i)
        value += part_of(terms_[i]) * every(tree_.t[k] / (tree_.t[k] + terms_[i].fraction * tree_.u[k]));
      to[k] = value * to[k];
    }
  }

  SPINNEY_INLINE static Numbers part_of(const ShapTerm& term) {
    Mask met;
    __builtin_memcpy(&met, &term.met, sizeof met);
    Numbers part;
    __builtin_memcpy(&part, &term.part, sizeof part);
    return select(met, part, every(0));
  }

  // Computes the parts of a leaf's value by column, and adds those of the background row to the base. Where columns
  // are missing, the leaf has a constant value, which is attributed to these columns.
  std::size_t read_terms(std::uint32_t leaf, double constant, double& base) const {
    const ShapLinear& l = tree_.linear;
    const std::uint32_t begin = l.begin[leaf], n = l.begin[leaf + 1] - begin;
    const double gap = constant - base;
    Numbers n_missing = every(0);
    double n_missing_behind = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t slot = l.slot[l.feature[begin + i]];
      n_missing += select(x_[slot] == x_[slot], every(0), every(1));
      if (l.background != nullptr && l.background[slot] != l.background[slot]) n_missing_behind += 1;
    }
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t j = begin + i, slot = l.slot[l.feature[j]];
      const Numbers x = x_[slot], low = every(l.low[j]), high = every(l.high[j]);
      const Numbers from_low = select(x < low, low, x), clipped = select(from_low > high, high, from_low);
      const Numbers in_line = every(l.slope[j]) * (clipped - every(l.middle[j]));
      const Numbers if_missing = select(x == x, every(0), every(gap) / n_missing);
      Numbers part = select(n_missing > every(0), if_missing, in_line);
      if (l.background != nullptr) {
        const double b = l.background[slot], up = b < l.low[j] ? l.low[j] : b,
                     bounded = up > l.high[j] ? l.high[j] : up;
        double behind = l.slope[j] * (bounded - l.middle[j]);
        if (n_missing_behind > 0) behind = b == b ? 0.0 : gap / n_missing_behind;
        base += behind;
        part -= every(behind);
      }
      ShapTerm& term = terms_[i];
      __builtin_memcpy(&term.part, &part, sizeof part);
      term.slot = slot;
    }
    return n;
  }

  // Finds the last condition on a term's column above a leaf.
  void place_term(ShapTerm& term, const ShapSplit& s, const Mask& met, double fraction) const {
    if (s.slot == term.slot) {
      const Mask all = before_[s.level] & met;
      __builtin_memcpy(&term.met, &all, sizeof all);
      term.fraction = s.fraction_before * fraction;
      return;
    }
    std::uint32_t below = open_[s.level];
    for (std::size_t level = s.level; level-- > 0; below = open_[level]) {
      const ShapSplit& above = splits_[open_[level]];
      if (above.slot != term.slot) continue;
      const bool is_left = above.left_value == nullptr && below == open_[level] + 1;
      __builtin_memcpy(&term.met, &alive_[level], sizeof term.met);
      term.fraction = above.fraction_before * (is_left ? above.left_fraction : above.right_fraction);
      return;
    }
    const Mask all = ~mask_of(0);  // not on the path, so that no condition excludes a row
    __builtin_memcpy(&term.met, &all, sizeof all);
    term.fraction = 1;
  }

  SPINNEY_INLINE void note_edge(const ShapSplit& s, const Mask& met, const double* gain, const double* c) const {
    const double *loss = c + ShapKernels::loss * n_points(), *above = c + ShapKernels::above * n_points(),
                 *cold = c + ShapKernels::cold * n_points();
    const Mask taken = met, before = before_[s.level];
    Numbers* edge = edge_ + s.level * n_points();
    for (std::size_t k = 0; k < n_points(); ++k) {
      const Numbers g = select(taken, every(gain[k]), every(loss[k])) + every(above[k]);
      edge[k] = select(before, g, every(cold[k]));
    }
  }

  // If the left child is a split, it is next; a leaf is finished.
  SPINNEY_INLINE bool descend_left(const ShapSplit& s) {
    const double* c = constants_of(s);
    const bool is_leaf = s.left_value != nullptr;
    Numbers* to = is_leaf ? up_of(s.level, 0) : down_of(s.level + 1);
    carry_down(s, left_[s.level], s.left_fraction, c + ShapKernels::left_met * n_points(),
               c + ShapKernels::left_unmet * n_points(), to);
    if (is_leaf && tree_.linear.begin != nullptr && is_linear(s.node + 1)) {
      if constexpr (with_pairs) note_edge(s, left_[s.level], c + ShapKernels::gain_left * n_points(), c);
      turn_at_linear_leaf(s, s.node + 1, *s.left_value, left_[s.level], s.left_fraction, to);
      return false;
    }
    if (is_leaf) {
      turn_at_leaf(s.left_value, to);
      return false;
    }
    alive_[s.level] = before_[s.level] & left_[s.level];
    if constexpr (with_pairs) note_edge(s, left_[s.level], c + ShapKernels::gain_left * n_points(), c);
    return true;
  }

  SPINNEY_INLINE bool descend_right(const ShapSplit& s) {
    const double* c = constants_of(s);
    const bool is_leaf = s.right_value != nullptr;
    Numbers* to = is_leaf ? done_ : down_of(s.level + 1);
    carry_down(s, right_[s.level], s.right_fraction, c + ShapKernels::right_met * n_points(),
               c + ShapKernels::right_unmet * n_points(), to);
    if (is_leaf && tree_.linear.begin != nullptr && is_linear(tree_.linear.right[s.node])) {
      if constexpr (with_pairs) note_edge(s, right_[s.level], c + ShapKernels::gain_right * n_points(), c);
      turn_at_linear_leaf(s, tree_.linear.right[s.node], *s.right_value, right_[s.level], s.right_fraction, to);
      return false;
    }
    if (is_leaf) {
      turn_at_leaf(s.right_value, to);
      return false;
    }
    alive_[s.level] = before_[s.level] & right_[s.level];
    if constexpr (with_pairs) note_edge(s, right_[s.level], c + ShapKernels::gain_right * n_points(), c);
    return true;
  }

  // Finishes every split whose right side is done; returns the split whose left side is done.
  SPINNEY_INLINE std::uint32_t climb(std::uint32_t at) {
    for (;;) {
      const ShapSplit& s = splits_[at];
      for (std::size_t v = 0; v < n_values(); ++v) {
        finish(s, v);
        if (s.stop_value != nullptr) finish_stops(s, v);
      }
      if (with_pairs && s.previous >= 0) hidden_[s.previous] = 0;
      if (s.level == 0) return nothing;
      const std::uint32_t parent = open_[s.level - 1];
      if (splits_[parent].left_value == nullptr && at == parent + 1) {
        for (std::size_t v = 0; v < n_values(); ++v)
          for (std::size_t k = 0; k < n_points(); ++k) up_of(s.level - 1, v)[k] = done_[v * n_points() + k];
        return parent;
      }
      at = parent;
    }
  }

  // The contribution of the split's column, and the sums for the node above.
  SPINNEY_INLINE void finish(const ShapSplit& s, std::size_t value) {
    const double* c = constants_of(s);
    const double *gain_left = c + ShapKernels::gain_left * n_points(),
                 *gain_right = c + ShapKernels::gain_right * n_points(), *loss = c + ShapKernels::loss * n_points();
    const Mask left = left_[s.level], right = right_[s.level], before = before_[s.level];
    Numbers *from_left = up_of(s.level, value), *done = done_ + value * n_points(), sum = every(0);
    for (std::size_t k = 0; k < n_points(); ++k) {
      const Numbers on_left = from_left[k] * select(left, every(gain_left[k]), every(loss[k]));
      const Numbers due = on_left + done[k] * select(right, every(gain_right[k]), every(loss[k]));
      sum += due;
      done[k] += from_left[k];
      if constexpr (with_pairs) from_left[k] = select(before, due, every(0));
    }
    out_[value * n_slots_ + s.slot] += select(before, sum, every(0));
    if constexpr (with_pairs) add_interactions(s.level, s.slot, value, from_left);
  }

  // Rows that stop at a split: a third child, which is a leaf.
  void finish_stops(const ShapSplit& s, std::size_t value) {
    const double* c = constants_of(s);
    const double *if_met = c + ShapKernels::stop_met * n_points(), *if_unmet = c + ShapKernels::stop_unmet * n_points(),
                 *gain = c + ShapKernels::gain_stop * n_points(), *loss = c + ShapKernels::loss * n_points();
    const Mask stops = ~left_[s.level] & ~right_[s.level], before = before_[s.level];
    const Numbers* p = down_of(s.level);
    Numbers *due = up_of(s.level, value), *done = done_ + value * n_points(), sum = every(0);
    for (std::size_t k = 0; k < n_points(); ++k) {
      const Numbers ratio = select(stops, every(if_met[k]), every(if_unmet[k]));
      const Numbers h = every(s.stop_value[value]) * (p[k] * select(before, ratio, every(s.stop_fraction)));
      due[k] = select(before, h * select(stops, every(gain[k]), every(loss[k])), every(0));
      sum += due[k];
      done[k] += h;
    }
    out_[value * n_slots_ + s.slot] += sum;
    if constexpr (with_pairs) add_interactions(s.level, s.slot, value, due);
  }

  // With the columns of the first levels, without those whose last condition is further down.
  void add_interactions(std::size_t n_levels, std::uint32_t slot, std::size_t value, const Numbers* due) const {
    for (std::size_t level = 0; level < n_levels; ++level) {
      const std::uint32_t other = splits_[open_[level]].slot;
      if (hidden_[level] || other == slot) continue;
      const Numbers* g = edge_ + level * n_points();
      Numbers sum = every(0);
      for (std::size_t k = 0; k < n_points(); ++k) sum += due[k] * g[k];
      const std::size_t first = other < slot ? other : slot, second = other < slot ? slot : other;
      pairs_[(value * n_slots_ + first) * n_slots_ + second] += sum;
    }
  }

  const ShapTree& tree_;
  const ShapSplit* splits_;
  const Numbers* x_;
  const ShapSides* sides_;
  std::size_t n_slots_, n_values_, n_points_;
  const double* constants_;
  double* spare_;
  const ShapSplit* made_for_ = nullptr;
  Numbers *down_, *up_, *done_, *edge_;
  Mask *left_, *right_, *before_, *alive_;
  std::uint32_t* open_;
  std::uint8_t* hidden_;
  ShapTerm* terms_;
  Numbers* due_;
  Numbers *out_, *pairs_;
};

template <std::size_t fixed_points, bool one_value, bool with_pairs>
void walk(const ShapTree& tree, const ShapLanes* x, const ShapSides* sides, std::size_t n_slots, ShapScratch& scratch,
          ShapLanes* values, ShapLanes* pairs) {
  ShapWalk<fixed_points, one_value, with_pairs>(tree, x, sides, n_slots, scratch, values, pairs).run();
}

void explain(const ShapTree& tree, const ShapLanes* x, const ShapSides* sides, std::size_t n_slots,
             ShapScratch& scratch, ShapLanes* values, ShapLanes* pairs) {
  if constexpr (by_pairs) {
    static constexpr decltype(&walk_pairs<1>) by_points[] = {walk_pairs<1>, walk_pairs<2>, walk_pairs<3>,
                                                             walk_pairs<4>, walk_pairs<5>, walk_pairs<6>};
    if (!tree.tables.empty() && pairs == nullptr && tree.n_points <= most_table_points)
      return by_points[tree.n_points - 1](tree, x, sides, scratch, values);
  }
  auto* chosen = &walk<0, false, false>;
  if (pairs != nullptr) {
    chosen = &walk<0, false, true>;
  } else if (tree.n_values == 1) {
    static constexpr decltype(chosen) by_points[] = {
        &walk<0, true, false>, &walk<1, true, false>, &walk<2, true, false>, &walk<3, true, false>,
        &walk<4, true, false>, &walk<5, true, false>, &walk<6, true, false>};
    chosen = by_points[tree.n_points <= 6 ? tree.n_points : 0];
  } else {
    static constexpr decltype(chosen) by_points[] = {&walk<0, false, false>, &walk<1, false, false>,
                                                     &walk<2, false, false>, &walk<3, false, false>,
                                                     &walk<4, false, false>};
    chosen = by_points[tree.n_points <= 4 ? tree.n_points : 0];
  }
  chosen(tree, x, sides, n_slots, scratch, values, pairs);
}

}  // namespace

const ShapKernels& shap_kernels_of(OfIsa<Isa::SPINNEY_ISA>) {
  static constexpr ShapKernels table{
      .table_size = by_pairs ? 2 * table_of_side : 0,
      .fill = fill,
      .explain = explain,
  };
  return table;
}

}  // namespace spinney
