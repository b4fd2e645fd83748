#include "data/coarse.h"

#include <algorithm>
#include <array>
#include <vector>

#include "data/bins.h"
#include "data/edge_search.h"
#include "data/read.h"

namespace spinney {

// Upper ends of all steps but the last, ascending.
static std::vector<double> steps_of(const Column& column, std::span<const Row> rows) {
  constexpr std::size_t n_sample = 8192;
  std::vector<Row> sample;
  const std::size_t stride = std::max<std::size_t>(1, rows.size() / n_sample);
  for (std::size_t i = stride / 2; i < rows.size(); i += stride) sample.push_back(rows[i]);
  std::vector<double> values;
  read_rows(column, sample.data(), sample.size(), [&](std::size_t, double v) {
    if (v == v) values.push_back(v);
  });
  std::sort(values.begin(), values.end());
  std::vector<double> steps;
  for (std::size_t k = 0; k + 1 < n_coarse && !values.empty(); ++k)
    steps.push_back(values[(k + 1) * values.size() / n_coarse]);
  return steps;
}

template <class T>  // that has all the column's values
static void code_rows(const Column& column, std::span<const Row> rows, const EdgeSearch& steps, std::uint8_t* codes) {
  constexpr std::size_t block = 256;
  std::array<T, block> values;
  std::array<std::uint32_t, block> below;
  for (std::size_t begin = 0; begin < rows.size(); begin += block) {
    const std::size_t n = std::min(block, rows.size() - begin);
    const Row* some = rows.data() + begin;
    read_rows(column, some, n, [&](std::size_t i, double v) { values[i] = static_cast<T>(v); });
    steps.find(values.data(), n, below.data());
    for (std::size_t i = 0; i < n; ++i)
      codes[some[i]] = values[i] == values[i] ? static_cast<std::uint8_t>(below[i]) : coarse_missing;
  }
}

void fill_coarse_codes(const Column& column, std::span<const Row> rows, std::uint8_t* codes) {
  const EdgeSearch steps(steps_of(column, rows));
  (has_short_keys(column) ? code_rows<float> : code_rows<double>)(column, rows, steps, codes);
}

}  // namespace spinney
