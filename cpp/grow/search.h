// Finding a node's best split by sorting (or binning, or drawing) its columns when they are needed, and parting its rows.
#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "base/interrupt.h"
#include "base/pool.h"
#include "base/random.h"
#include "cells/categories.h"
#include "cells/coarse.h"
#include "cells/histogram.h"
#include "cells/median.h"
#include "cells/random_cut.h"
#include "cells/sorted.h"
#include "cells/user.h"
#include "data/bins.h"
#include "data/keys.h"
#include "data/presort.h"
#include "data/ranks.h"
#include "data/read.h"
#include "data/sort.h"
#include "grow/draw.h"
#include "grow/rules.h"

namespace spinney {

// Codes of the number columns: bins, or an index for the exact search of large nodes, or neither.
struct Bins {
  std::vector<std::uint8_t> coarse;   // by column and row, in one piece that goes back to the system; empty: none
  std::vector<BinnedColumn> columns;  // empty: exact; category columns stay empty inside
  Presorted presorted;                // of all rows, where many trees share it
  RowKeys keys;                       // of all rows, where cuts are random
  RowRanks ranks;                     // of all rows, where nodes count the few columns that they try
  const std::uint8_t* coarse_codes(const Table& table, std::uint32_t f) const {  // null for category columns
    return table.columns[f].is_category() ? nullptr : coarse.data() + f * table.n_rows;
  }
  bool has(const Table& table, std::uint32_t f) const { return !columns.empty() && !table.columns[f].is_category(); }
};

// Columns that were tried at a node, and the best cut of each.
struct Tried {
  std::vector<std::uint32_t> columns;
  std::vector<Candidate> candidates;  // one per column
  std::vector<std::uint32_t> order;   // scratch: columns to try
  std::vector<std::uint8_t> live;     // scratch, by column
};

template <class Criterion>
struct Worker {  // scratch of one thread
  explicit Worker(const Criterion& c) : criterion(c) {}
  Criterion criterion;
  ColumnSorter sorter;
  ScanBuffers buffers;
  RandomBuffers random;
  Histogram histogram;
  Tried tried;
};

template <class Criterion>
inline constexpr bool needs_positions = std::is_same_v<Criterion, AbsoluteError>;
template <class Criterion>
inline constexpr bool is_additive = !needs_positions<Criterion> && !std::is_same_v<Criterion, UserSplits>;

// Below this many rows, sorting codes beats filling a histogram of a few hundred bins.
inline constexpr std::size_t histogram_rows = 2000;

// The rows of a node sorted by a column, as entries; with `local`, they carry positions in `rows`.
inline std::span<const Entry> sort_rows(ColumnSorter& sorter, const Table& table, const Bins& bins, std::uint32_t f,
                                        std::span<const Row> rows, bool local) {
  if (!bins.has(table, f)) return sorter.sort(table.columns[f], rows, local);
  const BinnedColumn& binned = bins.columns[f];
  auto& entries = sorter.entries();
  entries.resize(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::uint32_t code = binned.code(rows[i]);
    entries[i] = entry_of(code == binned.n_bins ? missing_code : code, local ? static_cast<Row>(i) : rows[i]);
  }
  return sorter.sort_entries();
}

template <class Criterion>
Candidate search_column(Worker<Criterion>& worker, const Rules& rules, const Bins& bins, const OpenNode& node,
                        std::span<const Row> rows, std::uint32_t f) {
  const Column& column = rules.table.columns[f];
  const Limits limits = rules.limits(node, f);
  const Totals total{node.n(), node.stat.data()};
  if constexpr (needs_positions<Criterion>) worker.criterion.attach(rows);
  if constexpr (std::is_same_v<Criterion, UserSplits>) worker.criterion.look_at(column);
  if (rules.params.random_cuts)
    return scan_random(worker.criterion, column, rows, total, limits, RandomStream(derive(node.key, 16 + f)),
                       worker.random);
  constexpr bool local = needs_positions<Criterion>;
  Candidate best;
  if (bins.has(rules.table, f)) {
    const BinnedColumn& binned = bins.columns[f];
    if constexpr (is_additive<Criterion>)
      if (rows.size() >= histogram_rows)
        return scan_histogram(worker.criterion, binned, rows, total, limits, worker.histogram, worker.buffers);
    best = scan_numbers<LongWord>(worker.criterion, sort_rows(worker.sorter, rules.table, bins, f, rows, local).data(),
                                  total, limits, worker.buffers);
  } else {
    const Entry* words = worker.sorter.sort(column, rows, local).data();
    best = column.is_category() ? scan_categories<LongWord>(worker.criterion, words, total, limits)
                                : scan_numbers<LongWord>(worker.criterion, words, total, limits, worker.buffers);
  }
  if (local) {
    best.below = rows[best.below];
    best.above = rows[best.above];
  }
  return best;
}

// The columns to try at a node, one after the other: all of them, or those that are always tried and a random choice of
// the others in random order.
class ColumnDraw {
 public:
  ColumnDraw(const Rules& rules, const OpenNode& node, std::vector<std::uint32_t>& order)
      : order_(order), random_(derive(node.key, 3)) {
    const GrowParams& params = rules.params;
    const std::size_t n_columns = rules.n_columns(), n_always = params.always.size();
    if (!rules.draws_columns()) {
      order_ = node.features;
      n_first = drawn_ = order_.size();
      return;
    }
    // constants known from above still count as tried, so the draw is from all columns
    n_first = n_always + params.max_features;
    if (params.columns.empty()) {
      order_.resize(n_columns);
      std::iota(order_.begin(), order_.end(), std::uint32_t{0});
    } else {
      order_ = params.columns;
    }
    if (n_always > 0) {
      std::erase_if(order_,
                    [&](std::uint32_t f) { return std::binary_search(params.always.begin(), params.always.end(), f); });
      order_.insert(order_.begin(), params.always.begin(), params.always.end());
    }
    drawn_ = n_always;
    if (params.column_weights.empty()) return;
    const std::span<std::uint32_t> others = std::span(order_).subspan(n_always);
    shuffle_columns(others, others.size(), params.column_weights, random_);
    drawn_ = order_.size();
  }

  std::size_t size() const { return order_.size(); }

  // To be called with i = 0, 1, …; the first draws of shuffle_columns, and no more than are needed.
  std::uint32_t at(std::size_t i) {
    if (i >= drawn_ && i + 1 < order_.size()) std::swap(order_[i], order_[i + random_.below(order_.size() - i)]);
    return order_[i];
  }

  std::size_t n_first;  // tried together; the rest one by one, until a column can be cut

 private:
  std::vector<std::uint32_t>& order_;
  RandomStream random_;
  std::size_t drawn_ = 0;  // columns before this one stay where they are
};

// Below this many rows, sorting all of them is as fast.
inline constexpr std::size_t coarse_rows = 4096;

// Calls body(i, worker) for i in [0, n_columns), in parallel if the rows are many.
template <class Criterion, class Body>
void for_each_column(std::span<Worker<Criterion>> workers, std::size_t n_rows, std::size_t n_columns,
                     Interrupt& interrupt, Body&& body) {
  const double estimated_ns = 8.0 * static_cast<double>(n_rows) * static_cast<double>(n_columns);
  parallel_for_if_worth(estimated_ns, n_columns, static_cast<int>(workers.size()), [&](std::size_t i, int worker) {
    interrupt.check();
    body(i, workers[static_cast<std::size_t>(worker)]);
  });
}

// Searches columns `tried[first…]` in parallel. Columns with coarse codes go twice: first for the best score at the ends
// of their steps, then, knowing the best of all columns, for the cuts that may reach it.
template <class Criterion>
void search_columns(std::span<Worker<Criterion>> workers, const Rules& rules, const Bins& bins, const OpenNode& node,
                    std::span<const Row> rows, std::span<const std::uint32_t> tried, std::span<Candidate> candidates,
                    Interrupt& interrupt) {
  const auto for_each_column = [&](auto&& body) {
    spinney::for_each_column(workers, rows.size(), tried.size(), interrupt, body);
  };
  if constexpr (requires(Criterion c) { c.rows.value(0); }) {
    if (rows.size() >= coarse_rows && !bins.coarse.empty() && !tried.empty()) {
      using Rows = decltype(workers[0].criterion.rows);
      const Totals total{node.n(), node.stat.data()};
      std::vector<CoarseSearch<Rows>> searches(tried.size());
      std::vector<double> ends(tried.size(), no_score);
      for_each_column([&](std::size_t i, Worker<Criterion>& worker) {
        const std::uint8_t* codes = bins.coarse_codes(rules.table, tried[i]);
        if (codes == nullptr) {
          candidates[i] = search_column(worker, rules, bins, node, rows, tried[i]);
          ends[i] = candidates[i].score;
        } else {
          searches[i].fill(worker.criterion, codes, rows, total);
          ends[i] = searches[i].best_end(worker.criterion, total, rules.limits(node, tried[i]));
        }
      });
      const double best_end = *std::max_element(ends.begin(), ends.end());
      // rules that compare the columns' own best
      const bool by_column = rules.target.rule == Rule::gain_ratio || !rules.params.feature_costs.empty();
      for_each_column([&](std::size_t i, Worker<Criterion>& worker) {
        const std::uint8_t* codes = bins.coarse_codes(rules.table, tried[i]);
        if (codes != nullptr)
          candidates[i] = searches[i].refine(worker.criterion, rules.table.columns[tried[i]], codes, rows, total,
                                             rules.limits(node, tried[i]), by_column ? ends[i] : best_end,
                                             worker.sorter, worker.buffers);
      });
      return;
    }
  }
  for_each_column([&](std::size_t i, Worker<Criterion>& worker) {
    candidates[i] = search_column(worker, rules, bins, node, rows, tried[i]);
  });
}

// Can a node do without a list of its columns? Where the draw is from all of them, and the search tells constant ones as
// quickly as a list does.
inline bool is_unlisted(const Rules& rules, bool tells_constants) {
  return tells_constants && rules.draws_columns() && rules.params.groups.empty();
}

// Calls search(columns, candidates) for the columns to try, and drops those that turn out constant from node.features,
// where that is needed.
template <class Search>
void search_drawn_columns(const Rules& rules, OpenNode& node, Tried& found, Search&& search,
                          bool tells_constants = false) {
  auto& [tried, candidates, order, live] = found;
  ColumnDraw draw(rules, node, order);
  const bool unlisted = is_unlisted(rules, tells_constants);
  const bool all_live = unlisted || node.features.size() == rules.table.n_columns();
  if (!all_live) {
    live.assign(rules.table.n_columns(), 0);
    for (const std::uint32_t f : node.features) live[f] = 1;
  }
  tried.clear();
  bool any_found = false, any_constant = false;  // the draw goes on until a column can be cut
  for (std::size_t begin = 0, end = draw.n_first; begin < draw.size() && !any_found; begin = end, end = end + 1) {
    const std::size_t first = tried.size();
    for (std::size_t i = begin; i < end; ++i)
      if (const std::uint32_t f = draw.at(i); all_live || live[f]) tried.push_back(f);
    candidates.resize(std::max(candidates.size(), tried.size()));
    search(std::span<const std::uint32_t>(tried).subspan(first),
           std::span(candidates).subspan(first, tried.size() - first));
    for (std::size_t i = first; i < tried.size(); ++i) {
      any_constant = any_constant || candidates[i].constant;
      any_found = any_found || candidates[i].found();
    }
  }
  candidates.resize(tried.size());
  if (!any_constant || unlisted) return;
  live.assign(rules.table.n_columns(), 1);
  for (std::size_t i = 0; i < tried.size(); ++i) live[tried[i]] = !candidates[i].constant;
  std::erase_if(node.features, [&](std::uint32_t f) { return !live[f]; });
}

// A bin holds rows of several values: finds those next to the cut among the node's rows, as sorting by value would.
inline void find_neighbours(const Column& column, const BinnedColumn& binned, std::span<const Row> rows, Candidate& c) {
  double below = 0, above = 0;
  bool any_below = false, any_above = false;
  read_rows(column, rows.data(), rows.size(), [&](std::size_t i, double v) {
    if (v != v) return;
    if (binned.code(rows[i]) <= c.code_below) {
      if (any_below && v <= below) return;
      any_below = true;
      below = v;
      c.below = rows[i];
    } else if (!any_above || v < above) {
      any_above = true;
      above = v;
      c.above = rows[i];
    }
  });
}

// As above, for the best cut of column f, where it is a cut between bins.
inline void find_neighbours(const Rules& rules, const Bins& bins, std::uint32_t f, std::span<const Row> rows,
                            Candidate& c) {
  if (bins.has(rules.table, f) && c.found() && !c.missing_alone && !rules.params.random_cuts)
    find_neighbours(rules.table.columns[f], bins.columns[f], rows, c);
}

// Finds the best split of a node.
template <class Criterion>
std::optional<Choice> find_split(std::span<Worker<Criterion>> workers, const Rules& rules, const Bins& bins,
                                 OpenNode& node, std::span<const Row> rows, Interrupt& interrupt) {
  Tried& tried = workers[0].tried;
  search_drawn_columns(rules, node, tried, [&](auto columns, auto candidates) {
    search_columns(workers, rules, bins, node, rows, columns, candidates, interrupt);
  });
  std::optional<Choice> choice = rules.choose(tried.columns, tried.candidates, node);
  if (choice) find_neighbours(rules, bins, choice->feature, rows, choice->candidate);
  return choice;
}

// The threshold of a cut between two values, as the tree stores it.
inline double cut_of(const GrowParams& params, std::uint32_t feature, double below, double above) {
  if (!params.weighing.rpart) return cut_between(below, above);
  if (!params.weighing.fold && params.weighing.closed_cuts[feature]) return (below + above) / 2;
  return std::nextafter((below + above) / 2, -std::numeric_limits<double>::infinity());  // x < middle goes left
}

// The split as the tree stores it, all but the threshold. `codes` are the categories seen in the node, ascending (category
// columns).
inline SplitRecord describe_sides(const Rules& rules, const Choice& choice, bool left_heavier,
                                  const std::vector<std::uint32_t>& codes) {
  const Candidate& c = choice.candidate;
  SplitRecord split;
  split.feature = choice.feature;
  split.is_category = rules.table.columns[choice.feature].is_category();
  split.default_left = c.missing_alone || left_heavier;
  split.missing_left = c.has_missing ? c.missing_left : left_heavier;
  if (!split.is_category) return split;
  split.left_codes = c.missing_alone ? codes : c.left_codes;
  std::sort(split.left_codes.begin(), split.left_codes.end());
  std::set_difference(codes.begin(), codes.end(), split.left_codes.begin(), split.left_codes.end(),
                      std::back_inserter(split.right_codes));
  return split;
}

inline SplitRecord describe_split(const Rules& rules, const Choice& choice, bool left_heavier,
                                  const std::vector<std::uint32_t>& codes) {
  const Candidate& c = choice.candidate;
  const Column& column = rules.table.columns[choice.feature];
  SplitRecord split = describe_sides(rules, choice, left_heavier, codes);
  if (split.is_category) return split;
  if (c.missing_alone)
    split.threshold = std::numeric_limits<double>::infinity();
  else if (rules.params.random_cuts)
    split.threshold = c.threshold;
  else
    split.threshold = cut_of(rules.params, choice.feature, value_at(column, c.below), value_at(column, c.above));
  return split;
}

// Marks each row's side (1: left) and, for a category column, collects the categories seen.
inline void mark_sides(const Rules& rules, const Choice& choice, std::span<const Row> rows,
                       std::vector<std::uint8_t>& side, std::vector<std::uint32_t>& codes) {
  const Column& column = rules.table.columns[choice.feature];
  side.resize(rows.size());
  codes.clear();
  if (column.is_category()) {
    std::vector<std::uint32_t> left = choice.candidate.left_codes;
    std::sort(left.begin(), left.end());
    read_rows(column, rows.data(), rows.size(), [&](std::size_t i, double v) {
      if (v == v) codes.push_back(static_cast<std::uint32_t>(v));
      side[i] = v != v ? choice.candidate.missing_left
                       : std::binary_search(left.begin(), left.end(), static_cast<std::uint32_t>(v));
    });
    std::sort(codes.begin(), codes.end());
    codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
    return;
  }
  const double threshold = describe_split(rules, choice, false, {}).threshold;
  const bool missing_left = choice.candidate.missing_left;
  read_rows(column, rows.data(), rows.size(),
            [&](std::size_t i, double v) { side[i] = v <= threshold || (v != v && missing_left); });
}

}  // namespace spinney
