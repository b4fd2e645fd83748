#include "data/keys.h"

#include <algorithm>
#include <array>

#include "base/pool.h"
#include "data/read.h"

namespace spinney {

RowKeys make_row_keys(const Table& table, int n_threads, Interrupt& interrupt) {
  constexpr std::size_t chunk = 1024;  // rows whose keys stay in cache from one column to the next
  constexpr std::size_t max_size_by_column = std::size_t{1} << 26;
  RowKeys made;
  made.n_columns = table.n_columns();
  made.keys = LargeArray<std::uint32_t>(table.n_rows * table.n_columns(), table.spill);
  const bool sparse = std::any_of(table.columns.begin(), table.columns.end(), [](auto& c) { return c.is_sparse(); });
  const bool twice = !sparse && !table.spill && made.keys.size() <= max_size_by_column;
  if (twice) made.by_column = LargeArray<std::uint32_t>(made.keys.size());
  const std::size_t n_chunks = (table.n_rows + chunk - 1) / chunk;
  std::vector<std::uint8_t> exact(n_chunks * table.n_columns(), 1);
  const double estimated_ns = 2.0 * static_cast<double>(made.keys.size());
  parallel_for_if_worth(estimated_ns, n_chunks, n_threads, [&](std::size_t c, int) {
    interrupt.check();
    std::array<Row, chunk> rows;
    const std::size_t begin = c * chunk, n = std::min(chunk, table.n_rows - begin);
    table.touch(n);
    if (table.spill) table.spill->touch(sizeof(std::uint32_t) * n * made.n_columns);
    for (std::size_t i = 0; i < n; ++i) rows[i] = static_cast<Row>(begin + i);
    for (std::size_t f = 0; f < table.n_columns(); ++f) {
      const bool is_category = table.columns[f].is_category();
      std::uint32_t* out = made.keys.data() + begin * made.n_columns + f;
      bool all_exact = true;
      read_rows(table.columns[f], rows.data(), n, [&](std::size_t i, double v) {
        const auto rounded = static_cast<float>(v);
        all_exact &= is_category || v != v || static_cast<double>(rounded) == v;
        out[i * made.n_columns] = v != v        ? RowKeys::missing
                                  : is_category ? static_cast<std::uint32_t>(v)
                                                : RowKeys::key_of(rounded);
      });
      if (twice)
        for (std::size_t i = 0; i < n; ++i)
          made.by_column.data()[f * table.n_rows + begin + i] = out[i * made.n_columns];
      exact[c * made.n_columns + f] = all_exact;
    }
  });
  made.keys.seal();
  made.exact.assign(table.n_columns(), 1);
  for (std::size_t i = 0; i < exact.size(); ++i) made.exact[i % made.n_columns] &= exact[i];
  return made;
}

}  // namespace spinney
