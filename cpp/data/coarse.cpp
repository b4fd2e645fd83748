#include "data/coarse.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "data/read.h"

namespace spinney {

// Upper ends of the first 254 steps, padded with the largest number; ascending.
static std::array<double, 256> steps_of(const Column& column, std::span<const Row> rows) {
  constexpr std::size_t n_sample = 8192;
  std::vector<Row> sample;
  const std::size_t stride = std::max<std::size_t>(1, rows.size() / n_sample);
  for (std::size_t i = stride / 2; i < rows.size(); i += stride) sample.push_back(rows[i]);
  std::vector<double> values;
  read_rows(column, sample.data(), sample.size(), [&](std::size_t, double v) {
    if (v == v) values.push_back(v);
  });
  std::sort(values.begin(), values.end());
  std::array<double, 256> steps;
  steps.fill(std::numeric_limits<double>::infinity());
  for (std::size_t k = 0; k + 1 < n_coarse && !values.empty(); ++k)
    steps[k] = values[(k + 1) * values.size() / n_coarse];
  return steps;
}

void fill_coarse_codes(const Column& column, std::span<const Row> rows, std::uint8_t* codes) {
  const std::array<double, 256> steps = steps_of(column, rows);
  read_rows(column, rows.data(), rows.size(), [&](std::size_t i, double v) {
    std::uint32_t below = 0;  // number of steps that end before v, without a branch
    for (std::uint32_t width = 128; width > 0; width /= 2)
      below += width & (0u - static_cast<std::uint32_t>(steps[below + width - 1] < v));
    codes[rows[i]] = v != v ? coarse_missing : static_cast<std::uint8_t>(std::min<std::size_t>(below, n_coarse - 1));
  });
}

}  // namespace spinney
