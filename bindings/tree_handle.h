// A tree held by Python.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "predict/walk.h"
#include "tree/tree.h"

namespace spinney {

// A tree with the data needed to walk it. Immutable, so threads may share it.
struct TreeHandle {
  TreeHandle(Tree t, std::vector<std::uint32_t> categories)
      : tree(std::move(t)), n_categories(std::move(categories)), walker(tree) {}
  TreeHandle(const TreeHandle&) = delete;

  const Tree tree;
  const std::vector<std::uint32_t> n_categories;  // by column; 0: numbers
  const Walker walker;
};

}  // namespace spinney
