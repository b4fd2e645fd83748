#include "boost/coded_table.h"

#include <algorithm>
#include <numeric>

namespace spinney {

std::vector<Row> rows_of_weight(std::size_t n_rows, const double* weight) {
  std::vector<Row> rows(n_rows);
  std::size_t n = 0;
  for (std::size_t r = 0; r < n_rows; ++r) {
    rows[n] = static_cast<Row>(r);
    n += weight == nullptr || weight[r] > 0;
  }
  rows.resize(n);
  return rows;
}

double usual_weight(const std::vector<Row>& rows, const double* weight) {
  std::vector<double> weights(rows.size());
  std::transform(rows.begin(), rows.end(), weights.begin(), [&](Row r) { return weight[r]; });
  const double mean = std::accumulate(weights.begin(), weights.end(), 0.0) / static_cast<double>(weights.size());
  const auto middle = weights.begin() + static_cast<std::ptrdiff_t>(weights.size() / 2);
  std::nth_element(weights.begin(), middle, weights.end());
  return 8 * *middle < mean ? *middle : 0.0;
}

namespace {

// Where a few rows hold nearly all the weight, bins of equal weight would leave the others hardly an edge: there no row
// counts for more than eight times the usual weight.
Coding learn_coding(const Table& table, const Table* later, const double* weight, std::uint32_t max_bins, int n_threads,
                    Interrupt& interrupt) {
  std::vector<double> clipped;
  if (weight != nullptr) {
    const double usual = usual_weight(rows_of_weight(table.n_rows, weight), weight);
    if (usual > 0) clipped.assign(weight, weight + table.n_rows);
    for (double& w : clipped) w = std::min(w, 8 * usual);
  }
  return Coding::learn(table, later, clipped.empty() ? weight : clipped.data(), max_bins, n_threads, interrupt);
}

}  // namespace

CodedTable::CodedTable(const Table& first, const Table* second, const double* weight, std::uint32_t max_bins,
                       bool lists_columns, int n_threads, Interrupt& interrupt)
    : table(&first),
      later_table(second),
      coding(learn_coding(first, second, weight, max_bins, n_threads, interrupt)),
      codes(encode(first, coding, lists_columns, n_threads, interrupt)),
      later(second == nullptr || second == &first ? Codes{}
                                                  : encode(*second, coding, lists_columns, n_threads, interrupt)),
      tiles(coding, codes, n_threads, interrupt) {}

}  // namespace spinney
