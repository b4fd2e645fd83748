// A worker for one criterion: searches a node's columns by sorting, binning or drawing them on demand.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "base/random.h"
#include "cells/categories.h"
#include "cells/coarse.h"
#include "cells/histogram.h"
#include "cells/median.h"
#include "cells/random_cut.h"
#include "cells/sorted.h"
#include "cells/user.h"
#include "criterion/wide.h"
#include "grow/drawn_columns.h"
#include "grow/ranked_columns.h"
#include "grow/sorted_columns.h"
#include "grow/sparse_columns.h"
#include "grow/worker.h"

namespace spinney {

template <class Criterion>
inline constexpr bool needs_positions = std::is_same_v<Criterion, AbsoluteError>;
template <class Criterion>
inline constexpr bool is_additive = !needs_positions<Criterion> && !std::is_same_v<Criterion, UserSplits>;

// For fewer rows, sorting codes beats filling a histogram of a few hundred bins.
inline constexpr std::size_t histogram_rows = 2000;

// State of the columns in a search by bounds; empty for criteria without bounds.
template <class Criterion>
struct CoarseScratch {};
template <class Criterion>
  requires requires(Criterion c) { c.rows.value(0); }
struct CoarseScratch<Criterion> {
  std::vector<CoarseSearch<decltype(Criterion::rows)>> searches;
  std::vector<double> ends;  // best scores at the ends of steps
};

template <class Criterion>
class CriterionWorker final : public Worker {
 public:
  explicit CriterionWorker(const Criterion& criterion) : criterion_(criterion) {}

  std::size_t stat_width() const override { return criterion_.width(); }

  void add(std::span<const Row> rows, std::int64_t* stat) const override {
    for (const Row r : rows) criterion_.add(r, stat);
  }

  Candidate search_column(const Rules& rules, const Bins& bins, const OpenNode& node, std::span<const Row> rows,
                          std::uint32_t f) override {
    const Column& column = rules.table.columns[f];
    const Limits limits = rules.limits(node, f);
    const Totals total{node.n(), node.stat.data()};
    rules.table.touch(rows, 1, bins.has(rules.table, f) ? 2 : 8);
    if constexpr (needs_positions<Criterion>) criterion_.attach(rows);
    if constexpr (std::is_same_v<Criterion, UserSplits>) criterion_.look_at(column);
    if (rules.params.random_cuts)
      return scan_random(criterion_, column, rows, total, limits, RandomStream(derive(node.key, 16 + f)), random_);
    constexpr bool local = needs_positions<Criterion>;
    Candidate best;
    if (bins.has(rules.table, f)) {
      const BinnedColumn& binned = bins.columns[f];
      if constexpr (is_additive<Criterion>)
        if (rows.size() >= histogram_rows)
          return scan_histogram(criterion_, binned, rows, total, limits, histogram_, buffers_);
      best = scan_numbers<LongWord>(criterion_, sort_rows(sorter, rules.table, bins, f, rows, local).data(), total,
                                    limits, buffers_);
    } else if (is_additive<Criterion> && column.n_categories > 0 && rows.size() > column.n_categories) {
      if constexpr (is_additive<Criterion>) best = scan_categories(criterion_, column, rows, total, limits);
    } else {
      const Entry* words = sorter.sort(column, rows, local).data();
      best = column.is_category() ? scan_categories<LongWord>(criterion_, words, total, limits)
                                  : scan_numbers<LongWord>(criterion_, words, total, limits, buffers_);
    }
    if (local) {
      best.below = rows[best.below];
      best.above = rows[best.above];
    }
    if (column.is_category()) rules.charge(node, best);
    return best;
  }

  // Columns with coarse codes are searched twice: first for the best score at the ends of their steps, then, given the
  // best score of all columns, for the cuts that may reach it.
  void search_columns(Workers workers, const Rules& rules, const Bins& bins, const OpenNode& node,
                      std::span<const Row> rows, std::span<const std::uint32_t> columns,
                      std::span<Candidate> candidates, Interrupt& interrupt) override {
    if constexpr (requires(Criterion c) { c.rows.value(0); }) {
      if (reads_presorted(bins, rows) && bins.tiles.n_rows > 0 && 2 * columns.size() > bins.tiles.columns.size())
        return search_tiles(workers, rules, bins, node, rows, columns, candidates, interrupt);
      if (rows.size() >= coarse_rows && !bins.coarse.empty() && !columns.empty())
        return search_coarse(workers, rules, bins, node, rows, columns, candidates, interrupt);
    }
    if constexpr (is_additive<Criterion>)
      if (reads_presorted(bins, rows))
        return search_presorted(workers, rules, bins, node, rows, columns, candidates, interrupt);
    for_each_column(workers, rows.size(), columns.size(), interrupt, [&](std::size_t i, Worker& worker) {
      candidates[i] = worker.search_column(rules, bins, node, rows, columns[i]);
    });
  }

  void forget_rows() override {
    if constexpr (needs_positions<Criterion>) criterion_.detach();
  }

  std::unique_ptr<BlockColumns> sorted_columns(const Rules& rules, const Bins& bins) override {
    if constexpr (!needs_positions<Criterion>)
      return std::make_unique<SortedColumns<Criterion>>(rules, bins, criterion_, sorter, buffers_);
    return nullptr;
  }
  std::unique_ptr<BlockColumns> drawn_columns(const Rules& rules, const Bins& bins) override {
    if constexpr (is_additive<Criterion>)
      return std::make_unique<DrawnColumns<Criterion>>(rules, bins, criterion_, random_);
    return nullptr;
  }
  std::unique_ptr<BlockColumns> ranked_columns(const Rules& rules, const Bins& bins) override {
    if constexpr (std::is_same_v<Criterion, Wide<ClassRows>>)
      return std::make_unique<RankedColumns>(rules, bins, criterion_);
    return nullptr;
  }
  std::unique_ptr<BlockColumns> sparse_columns(const Rules& rules, const Bins& bins) override {
    if constexpr (is_additive<Criterion>)
      return std::make_unique<SparseColumns<Criterion>>(rules, bins, criterion_, random_);
    return nullptr;
  }

 private:
  static bool reads_presorted(const Bins& bins, std::span<const Row> rows) {
    return bins.sorts_for_one_tree && bins.presorted.n_rows > 0 &&
           rows.size() > bins.presorted.n_rows / Bins::least_fraction;
  }

  // Marks the rows of a node, unless it has all rows.
  const std::uint8_t* mark(std::span<const Row> rows, std::size_t n_rows) {
    if (rows.size() == n_rows) return nullptr;
    in_node_.assign(n_rows, 0);
    for (const Row r : rows) in_node_[r] = 1;
    return in_node_.data();
  }

  void search_presorted(Workers workers, const Rules& rules, const Bins& bins, const OpenNode& node,
                        std::span<const Row> rows, std::span<const std::uint32_t> columns,
                        std::span<Candidate> candidates, Interrupt& interrupt) {
    const Presorted& all = bins.presorted;
    const std::uint8_t* in_node = mark(rows, all.n_rows);
    for_each_column(workers, rows.size(), columns.size(), interrupt, [&](std::size_t i, Worker& any) {
      auto& worker = static_cast<CriterionWorker&>(any);
      const std::uint32_t f = columns[i];
      if (rules.table.columns[f].is_category()) {
        candidates[i] = worker.search_column(rules, bins, node, rows, f);
        return;
      }
      const std::uint32_t* words = all.column(f).data();
      std::size_t n_present = all.n_present[f];
      if (in_node != nullptr) {
        worker.marked_.resize(rows.size() + 1);
        const std::size_t n_all = n_present;
        n_present = all.take(f, 0, n_all, in_node, worker.marked_.data());
        all.take(f, n_all, all.n_rows, in_node, worker.marked_.data() + n_present);
        words = worker.marked_.data();
      }
      const bool one_value = std::none_of(words + (n_present > 0), words + n_present,
                                          [](std::uint32_t word) { return MarkedWord::differ(0, word); });
      candidates[i] = scan_words<MarkedWord>(worker.criterion_, words, n_present, one_value,
                                             {node.n(), node.stat.data()}, rules.limits(node, f), worker.buffers_);
    });
  }

  // As search_coarse, for presorted rows: the steps of eight columns are summed together, and nothing is sorted.
  void search_tiles(Workers workers, const Rules& rules, const Bins& bins, const OpenNode& node,
                    std::span<const Row> rows, std::span<const std::uint32_t> columns, std::span<Candidate> candidates,
                    Interrupt& interrupt) {
    const CoarseTiles& tiles = bins.tiles;
    std::vector<std::size_t> place(tiles.columns.size(), columns.size()),
        others;  // indices among the columns that are tried
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::uint32_t lane = tiles.lane_of[columns[i]];
      if (lane == CoarseTiles::none)
        others.push_back(i);
      else
        place[lane] = i;
    }
    auto& [searches, ends] = coarse_;
    searches.resize(std::max(searches.size(), columns.size()));
    ends.assign(columns.size(), no_score);
    for_each_column(workers, rows.size(), tiles.n_tiles() + others.size(), interrupt, [&](std::size_t t, Worker& any) {
      auto& worker = static_cast<CriterionWorker&>(any);
      if (t < tiles.n_tiles()) {
        if (needs_wide_sums(rules.target.rule, rules.params.min_samples_leaf))
          read_tile<4>(worker, rules, tiles, t, node, rows, columns, place);
        else
          read_tile<2>(worker, rules, tiles, t, node, rows, columns, place);
        return;
      }
      const std::size_t i = others[t - tiles.n_tiles()];
      candidates[i] = worker.search_column(rules, bins, node, rows, columns[i]);
      ends[i] = end_of(candidates[i]);
    });
    const std::uint8_t* in_node = mark(rows, bins.presorted.n_rows);
    const double best_end = *std::max_element(ends.begin(), ends.end());
    for_each_column(workers, rows.size() / 8, columns.size(), interrupt, [&](std::size_t i, Worker& any) {
      auto& worker = static_cast<CriterionWorker&>(any);
      const std::uint32_t lane = tiles.lane_of[columns[i]];
      if (lane == CoarseTiles::none) return;
      const SortedSteps sorted{bins.presorted, columns[i], tiles.begin[lane], in_node};
      candidates[i] =
          searches[i].refine(worker.criterion_, sorted, {node.n(), node.stat.data()}, rules.limits(node, columns[i]),
                             compares_columns(rules) ? ends[i] : best_end, worker.marked_, worker.buffers_);
    });
  }

  // Sums the steps of a tile's columns and finds their best ends.
  template <std::size_t width>
  void read_tile(CriterionWorker& worker, const Rules& rules, const CoarseTiles& tiles, std::size_t t,
                 const OpenNode& node, std::span<const Row> rows, std::span<const std::uint32_t> columns,
                 std::span<const std::size_t> place) {
    const std::size_t first = t * CoarseTiles::lanes, n = std::min(tiles.columns.size() - first, CoarseTiles::lanes);
    const std::span<const std::size_t> places = place.subspan(first, n);
    if (std::all_of(places.begin(), places.end(), [&](std::size_t i) { return i == columns.size(); })) return;
    const Totals total{node.n(), node.stat.data()};
    const std::int64_t mean = total.stat[1] / total.stat[0];
    auto* cells = worker.step_buffers_.template cleared<width>();
    if (n <= CoarseTiles::lanes / 2)
      sum_steps<width, CoarseTiles::lanes / 2>(worker.criterion_.rows, mean, tiles.tile(t), rows, cells);
    else
      sum_steps<width, CoarseTiles::lanes>(worker.criterion_.rows, mean, tiles.tile(t), rows, cells);
    for (std::size_t lane = 0; lane < n; ++lane) {
      const std::size_t i = places[lane];
      if (i == columns.size()) continue;
      coarse_.searches[i].read(cells + 256 * lane, total);
      coarse_.ends[i] = coarse_.searches[i].best_end(worker.criterion_, total, rules.limits(node, columns[i]));
    }
  }

  // The score other columns must reach to be searched: a charged score implies nothing about the others.
  static double end_of(const Candidate& candidate) { return candidate.charge > 0 ? no_score : candidate.score; }

  // Rules that compare the best cuts of the columns.
  static bool compares_columns(const Rules& rules) {
    return rules.target.rule == Rule::gain_ratio || !rules.params.feature_costs.empty();
  }

  void search_coarse(Workers workers, const Rules& rules, const Bins& bins, const OpenNode& node,
                     std::span<const Row> rows, std::span<const std::uint32_t> columns, std::span<Candidate> candidates,
                     Interrupt& interrupt) {
    using Rows = decltype(criterion_.rows);
    const Totals total{node.n(), node.stat.data()};
    std::vector<CoarseSearch<Rows>> searches(columns.size());
    std::vector<double> ends(columns.size(), no_score);
    for_each_column(workers, rows.size(), columns.size(), interrupt, [&](std::size_t i, Worker& any) {
      auto& worker = static_cast<CriterionWorker&>(any);
      const std::uint8_t* codes = bins.coarse_codes(rules.table, columns[i]);
      if (codes == nullptr) {
        candidates[i] = worker.search_column(rules, bins, node, rows, columns[i]);
        ends[i] = end_of(candidates[i]);
      } else {
        searches[i].fill(worker.criterion_, codes, rows, total);
        ends[i] = searches[i].best_end(worker.criterion_, total, rules.limits(node, columns[i]));
      }
    });
    const double best_end = *std::max_element(ends.begin(), ends.end());
    for_each_column(workers, rows.size(), columns.size(), interrupt, [&](std::size_t i, Worker& any) {
      auto& worker = static_cast<CriterionWorker&>(any);
      const std::uint8_t* codes = bins.coarse_codes(rules.table, columns[i]);
      if (codes != nullptr)
        candidates[i] = searches[i].refine(worker.criterion_, rules.table.columns[columns[i]], codes, rows, total,
                                           rules.limits(node, columns[i]), compares_columns(rules) ? ends[i] : best_end,
                                           worker.sorter, worker.buffers_);
    });
  }

  Criterion criterion_;
  ScanBuffers buffers_;
  RandomBuffers random_;
  Histogram histogram_;
  std::vector<std::uint8_t> in_node_;  // by row of the table: whether it is in the node
  std::vector<std::uint32_t> marked_;  // sorted words of the node's rows
  CoarseScratch<Criterion> coarse_;
  StepBuffers step_buffers_;
};

template <class Criterion>
std::unique_ptr<Worker> make_worker(const Criterion& criterion) {
  return std::make_unique<CriterionWorker<Criterion>>(criterion);
}

}  // namespace spinney
