// Checks that a tree is safe to walk: every walk ends in a leaf, and no array is read outside its bounds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tree/tree.h"

namespace spinney {

// A description of the first fault; empty if there is none. `n_categories`: by column, 0 for numbers.
std::string find_fault(const Tree& tree, const std::vector<std::uint32_t>& n_categories);

}  // namespace spinney
