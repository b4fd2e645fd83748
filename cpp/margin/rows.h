// Kernel values between the rows of a table, computed on demand or read from a precomputed matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "margin/kernel.h"

namespace spinney {

// Some rows as tiles; or, for a precomputed matrix, as its columns.
struct KernelColumns {
  std::size_t n = 0;
  std::vector<double> tiles, squares;
  std::vector<std::uint32_t> rows;

  std::size_t n_tiles() const { return padded(n) / tile_rows; }
};

class KernelRows {
 public:
  // terms: n_terms times n_rows, term-major.
  KernelRows(const double* terms, std::size_t n_rows, std::size_t n_terms, const Kernel& kernel);
  // matrix: of all pairs, n_rows times n_rows; must outlive this object.
  KernelRows(const double* matrix, std::size_t n_rows);

  std::size_t n_rows() const { return n_rows_; }
  double diagonal(std::size_t row) const;
  KernelColumns columns(std::span<const std::uint32_t> rows) const;

  // out[q][i] for rows[q] and the i-th row of some tiles of the columns, counted from the first of them.
  template <class T>
  void fill(std::span<const std::uint32_t> rows, const KernelColumns& columns, std::size_t first_tile,
            std::size_t n_tiles, T* const* out) const;

 private:
  std::size_t n_rows_, n_terms_ = 0;
  const double* matrix_ = nullptr;
  std::vector<double> by_row_, squares_;
  Kernel kernel_;
};

}  // namespace spinney
