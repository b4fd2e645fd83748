#include "boost/coded_table.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "boost/forced.h"

namespace spinney {

std::vector<Row> rows_of_weight(std::size_t n_rows, const double* weight) {
  std::vector<Row> rows;
  take_rows_of_weight(n_rows, weight, rows);
  return rows;
}

double usual_weight(std::span<const Row> rows, const double* weight) {
  std::vector<double> weights(rows.size());
  std::transform(rows.begin(), rows.end(), weights.begin(), [&](Row r) { return weight[r]; });
  const double mean = std::accumulate(weights.begin(), weights.end(), 0.0) / static_cast<double>(weights.size());
  const auto middle = weights.begin() + static_cast<std::ptrdiff_t>(weights.size() / 2);
  std::nth_element(weights.begin(), middle, weights.end());
  return 8 * *middle < mean ? *middle : 0.0;
}

WeightScale weight_scale(std::span<const Row> rows, const double* weight, std::size_t n_rows, int n_bits) {
  const double total = std::accumulate(weight, weight + n_rows, 0.0);
  const double usual = usual_weight(rows, weight);
  return {std::ldexp(1.0, std::min(n_bits - std::ilogb(total), 1000)),
          usual > 0 ? usual * static_cast<double>(rows.size()) / total : 0.0};
}

namespace {

// Where a few rows hold nearly all the weight, bins of equal weight would leave hardly any edges for the others, so
// weights are clipped at eight times the median weight.
std::vector<double> clipped(std::size_t n_rows, const double* weight) {
  std::vector<double> found;
  if (weight == nullptr) return found;
  const double usual = usual_weight(rows_of_weight(n_rows, weight), weight);
  if (usual > 0) found.assign(weight, weight + n_rows);
  for (double& w : found) w = std::min(w, 8 * usual);
  return found;
}

Coding learn_coding(const Table& table, const Table* validation, const double* weight, std::uint32_t max_bins,
                    const std::vector<ForcedSplit>& forced, int n_threads, Interrupt& interrupt) {
  const std::vector<double> less = clipped(table.n_rows, weight);
  Coding coding = Coding::learn(table, validation, less.empty() ? weight : less.data(), max_bins, n_threads, interrupt);
  force_edges(coding, forced);
  return coding;
}

}  // namespace

RowsToLearnFrom::RowsToLearnFrom(std::size_t n_rows, const double* weight)
    : rows(Coding::rows_to_learn_from(n_rows, weight)) {
  if (weight == nullptr) return;
  const std::vector<double> less = clipped(n_rows, weight);
  for (const Row r : rows) weights.push_back(less.empty() ? weight[r] : less[r]);
}

CodedTable::CodedTable(std::span<const Table* const> tables, const Table& rows, Coding known, int n_threads,
                       Interrupt& interrupt)
    : table(&rows),
      validation_table(&rows),
      coding(std::move(known)),
      codes(encode(tables, coding, n_threads, interrupt)),
      tiles(coding, codes, n_threads, interrupt) {}

CodedTable::CodedTable(const Table& first, const Table* second, const double* weight, std::uint32_t max_bins,
                       bool lists_columns, const std::vector<ForcedSplit>& forced, int n_threads, Interrupt& interrupt)
    : table(&first),
      validation_table(second),
      coding(learn_coding(first, second, weight, max_bins, forced, n_threads, interrupt)),
      codes(encode(first, coding, lists_columns, n_threads, interrupt)),
      validation(second == nullptr || second == &first ? Codes{}
                                                       : encode(*second, coding, lists_columns, n_threads, interrupt)),
      tiles(coding, codes, n_threads, interrupt) {}

}  // namespace spinney
