#include "boost/boosted_tree.h"

#include <algorithm>
#include <limits>

namespace spinney {

void set_split(Tree& tree, std::size_t at, const Coding& coding, const BoostSplit& split, bool left_heavier) {
  const CodedColumn& column = coding.columns[split.feature];
  tree.feature[at] = static_cast<std::int32_t>(split.feature);
  const bool missing_left = split.saw_missing ? split.missing_left : left_heavier;
  std::uint8_t flags = missing_left ? Tree::missing_left : 0;
  if (column.is_category) {
    flags |= Tree::category;
    if (missing_left) flags |= Tree::default_left;
    std::vector<std::uint32_t> right;
    for (std::uint32_t code = 0; code + 1 < column.n_codes; ++code)
      if (!std::binary_search(split.left_codes.begin(), split.left_codes.end(), code)) right.push_back(code);
    tree.set[at] = add_set(tree.sets, split.left_codes, right, missing_left);
  } else {
    const bool missing_alone = split.cut + 1 == column.n_present();
    tree.threshold[at] = missing_alone ? std::numeric_limits<double>::infinity() : column.edges[split.cut];
    if (left_heavier) flags |= Tree::default_left;
  }
  tree.flags[at] = flags;
}

}  // namespace spinney
