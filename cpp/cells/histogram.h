// Cuts of a binned column of a large node: a cell is a bin. The last code stands for missing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cells/candidate.h"
#include "cells/sorted.h"
#include "data/bins.h"

namespace spinney {

struct Histogram {
  std::vector<std::int64_t> stats;  // width per bin
  std::vector<Row> n;
};

template <class Criterion>
void fill_histogram(const Criterion& criterion, const BinnedColumn& bins, std::span<const Row> rows, Histogram& h) {
  const std::size_t width = criterion.width();
  h.stats.assign((bins.n_bins + 1) * width, 0);
  h.n.assign(bins.n_bins + 1, 0);
  bins.with_codes([&](const auto* codes) {
    for (const Row r : rows) {
      const std::size_t bin = codes[r];
      criterion.add(r, h.stats.data() + bin * width);
      ++h.n[bin];
    }
  });
}

template <class Criterion>
Candidate scan_histogram(const Criterion& criterion, const BinnedColumn& bins, std::span<const Row> rows,
                         const Totals& total, const Limits& limits, Histogram& h, ScanBuffers& b) {
  fill_histogram(criterion, bins, rows, h);
  const std::size_t width = criterion.width();
  const std::int64_t* missing = h.stats.data() + bins.n_bins * width;
  const Row n_missing = h.n[bins.n_bins];
  Candidate best;
  best.has_missing = n_missing > 0;
  std::size_t n_cells = 0, last = 0;
  for (std::size_t bin = 0; bin < bins.n_bins; ++bin)
    if (h.n[bin] > 0) {
      ++n_cells;
      last = bin;
    }
  if (n_cells + (n_missing > 0) <= 1) {
    best.constant = true;
    return best;
  }
  for (const bool missing_left : {false, true}) {
    if (missing_left && n_missing == 0) break;
    b.left.assign(width, 0);
    Row n_left = 0;
    if (missing_left) {
      b.left.assign(missing, missing + width);
      n_left = n_missing;
    }
    for (std::size_t bin = 0; bin < bins.n_bins; ++bin) {
      if (h.n[bin] == 0) continue;
      if (bin == last && (missing_left || n_missing == 0)) break;
      for (std::size_t k = 0; k < width; ++k) b.left[k] += h.stats[bin * width + k];
      n_left += h.n[bin];
      if (!admits(limits, total, b.left.data(), n_left)) continue;
      const double score = criterion.score(b.left.data(), total.stat);
      if (score > best.score || (score == best.score && best.found() && bin < best.at)) {
        best.score = score;
        best.at = best.code_below = static_cast<std::uint32_t>(bin);
        best.n_left = n_left;
        best.w_left = static_cast<double>(b.left[0]);
        best.missing_left = missing_left;
        best.missing_alone = bin == last;
      }
    }
  }
  return best;
}

}  // namespace spinney
