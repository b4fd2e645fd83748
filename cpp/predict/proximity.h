// Random-forest proximities: counts the trees in which two rows share a leaf.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"

namespace spinney {

// The leaves of the rows, and the contents of each leaf. Leaves are numbered across all trees.
struct SharedLeaves {
  static constexpr std::uint32_t nowhere = UINT32_MAX;

  std::size_t n_trees = 0;                // at most 65,535
  std::span<const std::uint32_t> leaf;    // by row and tree; nowhere: the tree does not count for the row
  std::span<const std::uint64_t> starts;  // leaf l holds others[starts[l]] … others[starts[l + 1] - 1]
  std::span<const std::uint32_t> others;
  std::size_t n_others = 0;
  bool is_self = false;  // rows are compared with themselves: row i is not its own neighbour
  // Bit masks of the trees that count, by row, `n_words` each. Empty: all count, and the divisor is n_trees.
  std::size_t n_words = 0;
  std::span<const std::uint64_t> bits, other_bits;

  std::size_t n_rows() const { return leaf.size() / n_trees; }
};

struct Neighbours {
  std::vector<std::uint32_t> n;      // by row
  std::vector<std::uint32_t> other;  // row after row, ascending in each
  std::vector<double> proximity;
};

// The `n_most` largest proximities of each row that are at least `threshold`; ties go to the lower rows.
Neighbours nearest_rows(const SharedLeaves& leaves, std::size_t n_most, double threshold, int n_threads,
                        Interrupt& interrupt);

// The sum of the squares of each row's proximities.
std::vector<double> squared_proximities(const SharedLeaves& leaves, int n_threads, Interrupt& interrupt);

}  // namespace spinney
