#include "data/read.h"

#include <algorithm>
#include <limits>

namespace spinney {

std::size_t first_stored(const Column& c, Row row) {
  const auto is_before = [&](std::int32_t stored) { return static_cast<Row>(stored) < row; };
  return static_cast<std::size_t>(std::partition_point(c.sparse_rows, c.sparse_rows + c.n_sparse, is_before) -
                                  c.sparse_rows);
}

// Ascending rows are merged with the stored entries; others are looked up one by one.
template <class T>
static void read_sparse(const Column& c, const Row* rows, std::size_t n, double* values) {
  const auto stored_row = [&](std::size_t at) { return static_cast<Row>(c.sparse_rows[at]); };
  std::size_t n_in_turn = 0;
  while (n_in_turn < n && rows[n_in_turn] == rows[0] + n_in_turn) ++n_in_turn;
  std::fill(values, values + n, 0.0);
  if (n == 0 || c.n_sparse == 0) return;
  if (n_in_turn == n) {
    for (std::size_t at = first_stored(c, rows[0]); at < c.n_sparse && stored_row(at) <= rows[n - 1]; ++at)
      values[stored_row(at) - rows[0]] = static_cast<double>(load<T>(c, at));
    return;
  }
  const bool ascend = std::is_sorted(rows, rows + n);
  std::size_t at = first_stored(c, rows[0]);
  for (std::size_t i = 0; i < n; ++i) {
    if (!ascend) at = first_stored(c, rows[i]);
    while (at < c.n_sparse && stored_row(at) < rows[i]) ++at;
    if (at < c.n_sparse && stored_row(at) == rows[i]) values[i] = static_cast<double>(load<T>(c, at));
  }
}

void read_values(const Column& c, const Row* rows, std::size_t n, double* values) {
  constexpr double missing = std::numeric_limits<double>::quiet_NaN();
  with_type(c.dtype, [&]<class T>(const T*) {
    if (c.is_sparse()) {
      read_sparse<T>(c, rows, n, values);
    } else if (c.mask != nullptr) {
      for (std::size_t i = 0; i < n; ++i)
        values[i] = is_masked(c, rows[i]) ? missing : static_cast<double>(load<T>(c, rows[i]));
    } else if (c.is_category()) {
      for (std::size_t i = 0; i < n; ++i) {
        const T code = load<T>(c, rows[i]);
        values[i] = code < T{0} ? missing : static_cast<double>(code);
      }
    } else {
      for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<double>(load<T>(c, rows[i]));
    }
  });
}

}  // namespace spinney
