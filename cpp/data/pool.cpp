#include "data/pool.h"

#include <algorithm>

#include "data/read.h"

namespace spinney {

static Pools::Pool pool_column(const Table& table, const Column& column, double least, const double* times) {
  const std::size_t n_rows = table.n_rows;
  Pools::Pool pool;
  std::vector<double> there(column.n_categories + std::size_t{1}, 0.0);
  for (std::size_t r = 0; r < n_rows; ++r)
    if (const auto code = load<std::int32_t>(column, r); code >= 0)
      there[static_cast<std::size_t>(code)] += times == nullptr ? 1.0 : times[r];
  const auto is_rare = [&](std::size_t code) { return there[code] > 0 && there[code] < least; };
  for (std::uint32_t code = 0; code < column.n_categories; ++code)
    if (is_rare(code)) pool.categories.push_back(code);
  if (pool.categories.size() < least_pooled) return {};
  pool.codes = LargeArray<std::int32_t>(n_rows, table.spill);
  for (std::size_t r = 0; r < n_rows; ++r) {
    const auto code = load<std::int32_t>(column, r);
    const bool rare = code >= 0 && is_rare(static_cast<std::size_t>(code));
    pool.codes.data()[r] = rare ? static_cast<std::int32_t>(pool.categories.front()) : code;
  }
  return pool;
}

Pools pool_rare(const Table& table, double least, const double* times) {
  Pools pools;
  for (const Column& column : table.columns)
    pools.by_column.push_back(column.is_category() ? pool_column(table, column, least, times) : Pools::Pool());
  return pools;
}

Table Pools::apply(const Table& table) const {
  Table pooled = table;
  for (std::size_t f = 0; f < by_column.size(); ++f) {
    const Pool& pool = by_column[f];
    if (pool.categories.empty()) continue;
    Column& column = pooled.columns[f];
    column.data = reinterpret_cast<const std::byte*>(pool.codes.data());
    column.stride = sizeof(std::int32_t);
    column.pooled = &pool.categories;
  }
  return pooled;
}

}  // namespace spinney
