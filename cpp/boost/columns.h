// The columns a node may be split on: those drawn for its tree, its level and the node, restricted by interaction
// constraints.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "boost/codes.h"
#include "boost/split.h"

namespace spinney {

class DrawnColumns {
 public:
  // `key` is the random key of the tree.
  DrawnColumns(const Coding& coding, const BoostParams& params, std::uint64_t key);

  // By column: whether the node may be split on it. `groups` are the interaction groups that the path to the node
  // leaves open.
  const std::vector<std::uint8_t>& of_tree() const { return in_use_; }
  std::vector<std::uint8_t> of_node(std::uint32_t depth, std::uint64_t path,
                                    std::span<const std::uint32_t> groups) const;

 private:
  bool is_in(std::span<const std::uint32_t> groups, std::uint32_t column) const;

  const BoostParams& params_;
  const std::uint64_t key_;
  std::vector<std::uint32_t> columns_;  // columns of the tree, ascending
  std::vector<std::uint8_t> in_use_;    // the same as flags by column
};

}  // namespace spinney
