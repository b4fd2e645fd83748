// Trees in one set of arrays: tree t is nodes root[t] … root[t + 1] - 1.
#pragma once

#include <cstdint>
#include <vector>

#include "tree/tree.h"
#include "tree/tree_buffer.h"

namespace spinney {

struct Forest {
  Tree nodes;
  std::vector<std::uint32_t> root{0};  // then the end

  static Forest join(std::vector<BufferedTree> trees, int n_threads);  // needs little more memory than the trees

  std::size_t n_trees() const { return root.size() - 1; }
  void add(const Tree& tree);
  void reserve(std::size_t n_nodes, std::size_t n_set_words, std::size_t n_trees);
  Tree tree(std::size_t t) const;  // a copy of one
};

}  // namespace spinney
