#include "tree/splits.h"

#include <algorithm>

namespace spinney {

void SplitList::end_node() {
  if (begin.empty()) begin.push_back(0);
  begin.push_back(static_cast<std::uint32_t>(size()));
}

void SplitList::pad(std::size_t n_nodes) {
  while (begin.size() < n_nodes + 1) begin.push_back(static_cast<std::uint32_t>(size()));
}

void SplitList::append(const SplitList& subtree) {
  const auto shift = static_cast<std::uint32_t>(size()), set_shift = static_cast<std::uint32_t>(sets.size());
  if (begin.empty()) begin.push_back(0);
  for (std::size_t i = 1; i < subtree.begin.size(); ++i) begin.push_back(subtree.begin[i] + shift);
  extend(role, subtree.role);
  extend(flags, subtree.flags);
  extend(feature, subtree.feature);
  extend(threshold, subtree.threshold);
  for (const std::uint32_t s : subtree.set) set.push_back(s + set_shift);
  extend(sets, subtree.sets);
  extend(count, subtree.count);
  extend(improve, subtree.improve);
  extend(adjusted, subtree.adjusted);
}

std::size_t SplitList::set_words(std::size_t split) const {
  if (!(flags[split] & category)) return 0;
  const std::size_t n_left = sets[set[split]];
  return n_left + sets[set[split] + n_left + 1] + 2;
}

void SplitList::copy_node(const SplitList& from, std::size_t node) {
  for (std::size_t s = from.begin[node]; s < from.begin[node + 1]; ++s) {
    role.push_back(from.role[s]);
    flags.push_back(from.flags[s]);
    feature.push_back(from.feature[s]);
    threshold.push_back(from.threshold[s]);
    set.push_back(static_cast<std::uint32_t>(sets.size()));
    const auto first = from.sets.begin() + static_cast<std::ptrdiff_t>(from.set[s]);
    sets.insert(sets.end(), first, first + static_cast<std::ptrdiff_t>(from.set_words(s)));
    count.push_back(from.count[s]);
    improve.push_back(from.improve[s]);
    adjusted.push_back(from.adjusted[s]);
  }
  end_node();
}

SplitList::Side SplitList::side_of(std::size_t split, double x) const {
  if (x != x) return Side::unknown;
  if (!(flags[split] & category))
    return (x <= threshold[split]) != ((flags[split] & reversed) && role[split] == surrogate) ? Side::left
                                                                                              : Side::right;
  const auto code = static_cast<std::uint32_t>(x);
  const std::uint32_t* left = sets.data() + set[split] + 1;
  const std::uint32_t* right = left + left[-1] + 1;
  if (std::binary_search(left, left + left[-1], code)) return Side::left;
  return std::binary_search(right, right + right[-1], code) ? Side::right : Side::unknown;
}

void add(SplitList& list, const RankedSplit& split) {
  list.role.push_back(split.role);
  list.flags.push_back(static_cast<std::uint8_t>((split.is_category ? SplitList::category : 0) |
                                                 (split.reversed ? SplitList::reversed : 0)));
  list.feature.push_back(split.feature);
  list.threshold.push_back(split.threshold);
  list.set.push_back(static_cast<std::uint32_t>(list.sets.size()));
  if (split.is_category)
    for (const auto* codes : {&split.left_codes, &split.right_codes}) {
      list.sets.push_back(static_cast<std::uint32_t>(codes->size()));
      extend(list.sets, *codes);
    }
  list.count.push_back(split.count);
  list.improve.push_back(split.improve);
  list.adjusted.push_back(split.adjusted);
}

}  // namespace spinney
