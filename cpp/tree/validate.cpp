#include "tree/validate.h"

#include <cmath>

namespace spinney {

static bool sizes_agree(const Tree& t) {
  const std::size_t n = t.size();
  return n > 0 && n < UINT32_MAX && t.value_width > 0 && t.threshold.size() == n && t.right.size() == n &&
         t.flags.size() == n && t.set.size() == n && t.impurity.size() == n && t.weight.size() == n &&
         t.n_rows.size() == n && t.value.size() / t.value_width == n && t.value.size() % t.value_width == 0 &&
         t.sets.size() < UINT32_MAX;
}

// Preorder: a split is followed by its left subtree, which ends where the right one begins.
static bool is_preorder(const Tree& t) {
  std::vector<std::uint32_t> rights;
  for (std::size_t i = 0; i < t.size(); ++i) {
    if (!t.is_leaf(i)) {
      if (t.right[i] <= i + 1 || t.right[i] >= t.size()) return false;
      rights.push_back(t.right[i]);
    } else if (rights.empty()) {
      return i + 1 == t.size();
    } else {
      if (rights.back() != i + 1) return false;
      rights.pop_back();
    }
  }
  return false;  // the last node was a split
}

static bool set_is_sound(const Tree& t, std::uint32_t begin, std::uint32_t n_categories) {
  if (begin >= t.sets.size()) return false;
  const std::uint32_t head = t.sets[begin], n = head & ~Tree::list_mark;
  if (n > t.sets.size() - begin - 1) return false;
  if (!(head & Tree::list_mark)) return n <= (n_categories + std::uint64_t{31}) / 32;
  for (std::uint32_t i = 1; i < n; ++i)
    if (t.sets[begin + i] >= t.sets[begin + i + 1]) return false;
  return n == 0 || t.sets[begin + n] < n_categories;
}

static bool codes_are_sound(const SplitList& list, std::size_t& at, std::uint32_t n_categories) {
  if (at >= list.sets.size()) return false;
  const std::size_t n = list.sets[at++];
  if (n > list.sets.size() - at) return false;
  for (std::size_t i = at; i < at + n; ++i)
    if (list.sets[i] >= n_categories || (i > at && list.sets[i - 1] >= list.sets[i])) return false;
  at += n;
  return true;
}

static bool splits_are_sound(const Tree& t, const std::vector<std::uint32_t>& n_categories) {
  const SplitList& list = t.splits;
  const std::size_t n = list.size();
  if (list.empty()) return n == 0;
  if (list.begin.size() != t.size() + 1 || list.begin[0] != 0 || list.begin.back() != n) return false;
  for (const std::size_t size : {list.flags.size(), list.feature.size(), list.threshold.size(), list.set.size(),
                                 list.count.size(), list.improve.size(), list.adjusted.size()})
    if (size != n) return false;
  for (std::size_t i = 0; i < t.size(); ++i) {
    const std::uint32_t first = list.begin[i], end = list.begin[i + 1];
    if (end < first || end > n || (end > first) == t.is_leaf(i)) return false;
    for (std::uint32_t s = first; s < end; ++s)
      if ((list.role[s] == SplitList::primary) != (s == first)) return false;
    if (end > first && list.feature[first] != static_cast<std::uint32_t>(t.feature[i])) return false;
  }
  for (std::size_t s = 0; s < n; ++s) {
    const bool is_category = list.flags[s] & SplitList::category;
    if (list.role[s] > SplitList::surrogate || (list.flags[s] & ~(SplitList::category | SplitList::reversed)))
      return false;
    if (list.feature[s] >= n_categories.size() || is_category != (n_categories[list.feature[s]] > 0)) return false;
    if (std::isnan(list.threshold[s]) || std::isnan(list.improve[s]) || std::isnan(list.adjusted[s])) return false;
    std::size_t at = list.set[s];
    if (is_category && !(codes_are_sound(list, at, n_categories[list.feature[s]]) &&
                         codes_are_sound(list, at, n_categories[list.feature[s]])))
      return false;
  }
  return true;
}

static bool linear_leaves_are_sound(const Tree& t, const std::vector<std::uint32_t>& n_categories) {
  const LinearLeaves& linear_leaves = t.linear_leaves;
  const std::size_t n = linear_leaves.size();
  if (linear_leaves.empty()) return n == 0 && linear_leaves.base.empty();
  if (t.value_width != 1 || n >= UINT32_MAX) return false;
  if (linear_leaves.begin.size() != t.size() + 1 || linear_leaves.base.size() != t.size() ||
      linear_leaves.begin[0] != 0 || linear_leaves.begin.back() != n)
    return false;
  for (const std::size_t size :
       {linear_leaves.slope.size(), linear_leaves.middle.size(), linear_leaves.low.size(), linear_leaves.high.size()})
    if (size != n) return false;
  for (std::size_t i = 0; i < t.size(); ++i)
    if (linear_leaves.begin[i + 1] < linear_leaves.begin[i] || !std::isfinite(linear_leaves.base[i]) ||
        (linear_leaves.has(i) && !t.is_leaf(i)))
      return false;
  for (std::size_t s = 0; s < n; ++s) {
    if (linear_leaves.feature[s] >= n_categories.size() || n_categories[linear_leaves.feature[s]] > 0) return false;
    if (!std::isfinite(linear_leaves.slope[s]) || !std::isfinite(linear_leaves.middle[s]) ||
        !std::isfinite(linear_leaves.low[s]) || !std::isfinite(linear_leaves.high[s]) ||
        linear_leaves.low[s] > linear_leaves.high[s])
      return false;
  }
  return true;
}

std::string find_fault(const Tree& t, const std::vector<std::uint32_t>& n_categories) {
  constexpr std::uint8_t known_flags =
      Tree::missing_left | Tree::category | Tree::default_left | Tree::stops | Tree::alone;
  if (!sizes_agree(t)) return "its arrays differ in length";
  if (!is_preorder(t)) return "its nodes do not form a tree";
  if (!splits_are_sound(t, n_categories)) return "its recorded splits do not match its nodes";
  if (!linear_leaves_are_sound(t, n_categories)) return "its linear leaves do not match its leaves and number columns";
  for (std::size_t i = 0; i < t.size(); ++i) {
    const auto at = [&](const char* what) { return "node " + std::to_string(i) + " " + what; };
    if (!(t.weight[i] >= 0) || !std::isfinite(t.weight[i])) return at("has an invalid weight");
    if (std::isnan(t.impurity[i])) return at("has an invalid impurity");  // infinite where squares overflow
    for (const double v : t.value_of(i))
      if (!std::isfinite(v)) return at("has a value that is not finite");
    if (t.is_leaf(i)) continue;
    const auto f = static_cast<std::size_t>(t.feature[i]);
    if (f >= n_categories.size()) return at("splits a column that does not exist");
    if (t.flags[i] & ~known_flags) return at("has unknown flags");
    if (t.splits.empty() && (t.flags[i] & (Tree::stops | Tree::alone)))
      return at("has a rule for surrogate splits, of which there are none");
    if (((t.flags[i] & Tree::category) != 0) != (n_categories[f] > 0))
      return at("has a split of the wrong type for its column");
    if (std::isnan(t.threshold[i])) return at("has a threshold that is not a number");
    if ((t.flags[i] & Tree::category) && !set_is_sound(t, t.set[i], n_categories[f]))
      return at("has a set of categories that do not exist");
  }
  return {};
}

}  // namespace spinney
