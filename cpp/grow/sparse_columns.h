// The columns of a block by their non-zero entries: the cost of a node depends on the entries of its rows only.
//
//   runs      where every column is tried: each column's entries are sorted node by node and partitioned with the rows.
//             A split touches the columns in which its smaller side has entries; the runs of the others pass on
//             unchanged.
//   gathered  where few are tried: their entries in the node are collected on demand, column by column or row by row,
//             whichever is cheaper. Random cuts need only the entries beyond the cut, and are drawn in place.
//   sums      columns with one value besides 0 have one cut, which needs only the sum of their entries. The larger
//             child's sums are the node's minus those of the smaller child's rows.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "cells/entries.h"
#include "criterion/scalar.h"
#include "criterion/wide.h"
#include "grow/block.h"

namespace spinney {

// The part that does not depend on the criterion.
class SparseBlock : public BlockColumns {
 public:
  SparseBlock(const Rules& rules, const Bins& bins) : rules_(rules), all_(bins.entries) {}

  void start(const OpenNode& root, std::span<Row> rows) override;
  // The entries of the columns searched last are still available, and the chosen column is among them.
  std::size_t partition(const OpenNode& node, const Choice& choice) override;
  SplitRecord describe(const Choice& choice, bool left_heavier) override;
  void follow(const OpenNode& node, const OpenNode& left, const OpenNode& right) override;
  bool finds_constants(const OpenNode&) const override { return gathers_; }

 protected:
  struct Run {
    std::uint32_t column = 0;
    std::size_t begin = 0, end = 0;
  };
  struct Sum {  // of a flag's entries
    std::int64_t s = 0, w = 0;
    std::uint32_t n = 0;
  };
  // State of a node that is, or will be, searched.
  struct State {
    std::size_t begin = 0, end = 0;  // its rows
    std::vector<Run> runs;           // of columns with entries
    std::vector<Sum> sums;           // by column; empty: unknown
    bool is_of(const OpenNode& node) const { return begin == node.begin && end == node.end; }
  };

  virtual bool can_sum() const = 0;
  // Adds the entries of rows to the sums of their columns, or subtracts them.
  virtual void add_to_sums(std::span<const Row> rows, std::vector<Sum>& sums) const = 0;
  virtual void take_from_sums(std::span<const Row> rows, std::vector<Sum>& sums) const = 0;

  // Prepares a search of the node's columns: a node is searched once, or some columns after others.
  void enter(const OpenNode& node, std::span<const std::uint32_t> columns);
  // Where few columns are tried: returns whether going through their entries is cheaper than through those of the
  // node's rows.
  bool gathers_by_column(const OpenNode& node, std::span<const std::uint32_t> columns) const;
  void gather(const OpenNode& node, std::span<const std::uint32_t> columns, bool by_column);
  // Only the chosen column is gathered, when rows are partitioned.
  void gather_none(std::size_t n_columns);
  void gather_one(const OpenNode& node, std::uint32_t f, std::size_t c);
  void fetch_last(std::uint32_t f) const;
  bool is_in(Row row, const OpenNode& node) const {
    return place_[row] - static_cast<std::uint32_t>(node.begin) < node.n();
  }
  bool is_summed(std::uint32_t f) const { return !state_.sums.empty() && all_.columns[f].is_flag; }
  bool is_above(std::uint32_t f) const {
    return all_.columns[f].first_above == 0;
  }  // whether a flag's value is above 0
  // The node's entries in columns[c] of the search.
  std::span<const Entry> entries_of(std::uint32_t f, std::size_t c) const {
    if (gathers_) return std::span(entries_).subspan(gathered_[c], gathered_[c + 1] - gathered_[c]);
    const std::size_t at = run_at_[f];
    if (at >= state_.runs.size() || state_.runs[at].column != f) return {};
    return std::span(entries_).subspan(state_.runs[at].begin, state_.runs[at].end - state_.runs[at].begin);
  }
  EntryRun run_of(const OpenNode& node, std::uint32_t f, std::size_t c) const {
    return EntryRun(entries_of(f, c), all_.columns[f].first_above, node.n());
  }
  std::span<const Row> rows_of(const OpenNode& node) const { return rows_.subspan(node.begin, node.n()); }

  const Rules& rules_;
  const Entries& all_;
  std::span<Row> rows_;  // row index of the block
  State state_;          // of the node that is searched

 private:
  void start_runs(const OpenNode& root);
  void sum_flags(const OpenNode& node, std::span<const std::uint32_t> columns);
  bool are_sums_worth(const OpenNode& node) const;
  void gather_by_column(const OpenNode& node, std::span<const std::uint32_t> columns);
  Entry* copy_entries(const OpenNode& node, std::uint32_t f, Entry* out) const;
  void fetch(std::uint32_t f) const;
  void gather_by_row(const OpenNode& node, std::span<const std::uint32_t> columns);
  void mark(Row row);
  void mark_flag(const OpenNode& node, const Choice& choice);
  void mark_entries(const OpenNode& node, const Choice& choice);
  std::size_t partition_rows(const OpenNode& node);
  bool goes_left(Row row) const { return (side_[row] != 0) != zeros_left_; }
  void partition_runs(const OpenNode& small, bool small_is_left, State& left, State& right);
  std::size_t partition_entries(const Run& run);

  bool gathers_ = false;        // few columns are tried; else there are runs
  bool sums_ = false;           // most entries belong to flags, whose sums are maintained
  double row_entries_ = 0;      // per row, on average
  std::vector<State> pending_;  // in the order of the grower's stack
  std::vector<std::vector<Sum>> spare_sums_;
  std::vector<Entry> entries_;            // runs, or the entries gathered last
  std::vector<std::uint32_t> run_at_;     // by column: index of its run in the state, if it has one
  std::vector<std::size_t> gathered_;     // by searched column: where its entries begin; then the end
  bool in_place_ = false;                 // the columns searched last are not gathered
  std::vector<std::uint32_t> place_;      // by row: its position in the row index
  std::vector<std::uint32_t> requested_;  // by column: 1 + its index among the searched columns; 0: not searched
  struct RequestedEntry {
    std::uint32_t column;
    Entry entry;
  };
  std::vector<RequestedEntry> found_;
  std::vector<std::uint32_t> touched_;  // by column: the last split whose smaller side has entries in it
  std::uint32_t n_splits_ = 0;
  std::vector<std::uint8_t> side_;  // by row; 1: not on the side of the zeros
  std::vector<Row> marked_;         // rows with side_ 1
  bool zeros_left_ = false;
  double below_ = 0, above_ = 0;  // the values next to the last cut
  std::vector<Entry> spare_entries_;
};

// The same with a criterion.
template <class Criterion>
class SparseColumns final : public SparseBlock {
 public:
  SparseColumns(const Rules& rules, const Bins& bins, const Criterion& criterion, RandomBuffers& random)
      : SparseBlock(rules, bins), criterion_(criterion), random_(random) {}

  void search(const OpenNode& node, std::span<const std::uint32_t> columns, std::span<Candidate> candidates) override {
    enter(node, columns);
    const bool by_column = gathers_by_column(node, columns);
    if constexpr (is_scalar)
      if (by_column && rules_.params.random_cuts && state_.sums.empty() && compares(node))
        return draw_in_place(node, columns, candidates);
    gather(node, columns, by_column);
    if constexpr (is_scalar)
      if (compares(node))
        return rules_.params.random_cuts ? draw_together(node, columns, candidates)
                                         : search_together(node, columns, candidates);
    if constexpr (std::is_same_v<Criterion, Wide<ClassRows>>)
      if (compares(node) && !rules_.params.random_cuts && criterion_.rule == Rule::gini &&
          criterion_.rows.n_outputs == 1)
        return search_classes(node, columns, candidates);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (set_if_zeros(columns[c], c, candidates[c])) continue;
      candidates[c] = is_summed(columns[c]) ? search_sum(node, columns[c]) : search_run(node, columns[c], c);
      candidates[c].code_below = static_cast<std::uint32_t>(c);
    }
  }

  void add(std::size_t begin, std::size_t end, std::int64_t* stat) const override {
    for (std::size_t i = begin; i < end; ++i) criterion_.add(rows_[i], stat);
  }

 private:
  static constexpr bool is_scalar = requires(Criterion c) { c.rows.value(0); };

  bool can_sum() const override { return is_scalar; }
  void add_to_sums(std::span<const Row> rows, std::vector<Sum>& sums) const override { change<1>(rows, sums); }
  void take_from_sums(std::span<const Row> rows, std::vector<Sum>& sums) const override { change<-1>(rows, sums); }

  template <int sign>
  void change(std::span<const Row> rows, std::vector<Sum>& sums) const {
    if constexpr (is_scalar)
      for (const Row r : rows) {
        const std::int64_t s = sign * criterion_.rows.value(r), w = sign * criterion_.rows.weight(r);
        for (const std::uint32_t f : all_.columns_of(r)) {
          sums[f].s += s;
          sums[f].w += w;
          sums[f].n += static_cast<std::uint32_t>(sign);
        }
      }
  }

  // Most columns drawn by a small node have no entry in it.
  bool set_if_zeros(std::uint32_t f, std::size_t c, Candidate& candidate) const {
    if (is_summed(f) || !entries_of(f, c).empty()) return false;
    candidate.score = no_score;
    candidate.constant = true;
    return true;
  }

  // Returns whether cuts of different columns can be compared by their scores alone.
  bool compares(const OpenNode& node) const {
    const Limits limits = rules_.limits(node, 0);
    return !rules_.bounded() && rules_.params.feature_costs.empty() && rules_.target.rule != Rule::gain_ratio &&
           limits.min_weight <= 0 && !limits.watch_ties;
  }

  // Of the columns compared together, only the best has a candidate.
  void search_together(const OpenNode& node, std::span<const std::uint32_t> columns, std::span<Candidate> candidates) {
    const Totals total{node.n(), node.stat.data()};
    const Row min_leaf = rules_.params.min_samples_leaf;
    cuts_.start(criterion_.rule, total, decltype(criterion_.rows)::sums_are_weights);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::uint32_t f = columns[c];
      candidates[c].score = no_score;
      if (is_summed(f)) {
        const Sum& sum = state_.sums[f];
        candidates[c].constant = sum.n == 0 || sum.n == total.n;
        if (sum.n >= min_leaf && total.n - sum.n >= min_leaf)
          cuts_.add_flag(sum.s, sum.w, is_above(f), static_cast<std::uint32_t>(c));
        continue;
      }
      if (set_if_zeros(f, c, candidates[c])) continue;
      const EntryRun run = run_of(node, f, c);
      candidates[c].constant = run.is_constant();
      if (candidates[c].constant) continue;
      if (run.n_missing() > 0) {
        candidates[c] = scan_entries(criterion_, run, total, rules_.limits(node, f), buffers_);
        candidates[c].code_below = static_cast<std::uint32_t>(c);
      } else {
        cuts_.add(criterion_.rows, run, static_cast<std::uint32_t>(c), min_leaf);
      }
    }
    cuts_.settle();
    if (!cuts_.found()) return;
    candidates[cuts_.column()] = cuts_.candidate();
    candidates[cuts_.column()].code_below = cuts_.column();
  }

  // The same for one random cut of each column.
  void draw_together(const OpenNode& node, std::span<const std::uint32_t> columns, std::span<Candidate> candidates) {
    constexpr std::size_t ahead = 12;  // columns, whose values are far apart in memory
    cuts_.start(criterion_.rule, {node.n(), node.stat.data()}, decltype(criterion_.rows)::sums_are_weights);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::uint32_t f = columns[c];
      if (c + ahead < columns.size()) fetch_values(columns[c + ahead], c + ahead);
      if (set_if_zeros(f, c, candidates[c])) continue;
      if (is_summed(f)) {
        candidates[c] = search_sum(node, f);
        candidates[c].code_below = static_cast<std::uint32_t>(c);
        continue;
      }
      draw_run(node, f, c, candidates[c]);
    }
    take_drawn(candidates);
  }

  // One cut of a column whose entries are gathered.
  void draw_run(const OpenNode& node, std::uint32_t f, std::size_t c, Candidate& candidate) {
    const EntryRun run = run_of(node, f, c);
    candidate.score = no_score;
    candidate.constant = run.is_constant();
    if (candidate.constant) return;
    const double* values = values_of(f);
    const auto [low, high] = run.range(values);
    if (run.n_missing() > 0 || !std::isfinite(high - low)) {
      candidate = search_run(node, f, c);
      candidate.code_below = static_cast<std::uint32_t>(c);
      return;
    }
    RandomStream random(derive(node.key, 16 + f));
    candidate.threshold = draw_between(low, high, random);
    cuts_.add_drawn(criterion_.rows, run, run.at_of(values, candidate.threshold), static_cast<std::uint32_t>(c),
                    rules_.params.min_samples_leaf);
  }

  // The same without gathering: the node's first and last entries give the range, and those beyond the cut the sums.
  void draw_in_place(const OpenNode& node, std::span<const std::uint32_t> columns, std::span<Candidate> candidates) {
    constexpr std::size_t ahead = 16, half_way = 8;  // columns, which are far apart in memory
    cuts_.start(criterion_.rule, {node.n(), node.stat.data()}, decltype(criterion_.rows)::sums_are_weights);
    gather_none(columns.size());
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (c + ahead < columns.size()) fetch_last(columns[c + ahead]);
      if (c + half_way < columns.size()) fetch_last_values(columns[c + half_way]);
      const std::uint32_t f = columns[c];
      if (draw_short(node, f, c, candidates[c])) continue;
      gather_one(node, f, c);
      if (!set_if_zeros(f, c, candidates[c])) draw_run(node, f, c, candidates[c]);
    }
    take_drawn(candidates);
  }

  // False if the column may have no zeros in the node, has missing values or no finite range.
  bool draw_short(const OpenNode& node, std::uint32_t f, std::size_t c, Candidate& candidate) {
    const std::span<const Entry> all = all_.of_column(f);
    const std::uint32_t first_above = all_.columns[f].first_above;
    if (all.size() >= node.n() || all_.columns[f].has_missing) return false;
    std::size_t begin = 0, end = all.size();  // of the node's entries, possibly with others between them
    while (end > 0 && !is_in(row_of(all[end - 1]), node)) --end;
    candidate.score = no_score;
    candidate.constant = end == 0;
    if (end == 0) return true;
    const double* values = values_of(f);
    double low = 0, high = 0;
    if (first_above > 0) {
      while (!is_in(row_of(all[begin]), node)) ++begin;
      if (code_of(all[begin]) < first_above) low = values[code_of(all[begin])];
    }
    if (code_of(all[end - 1]) >= first_above) high = values[code_of(all[end - 1])];
    if (!std::isfinite(high - low)) return false;
    RandomStream random(derive(node.key, 16 + f));
    const double threshold = candidate.threshold = draw_between(low, high, random);
    DrawnSide side{.zeros_left = 0 <= threshold};
    const auto add = [&](std::uint32_t row) {
      const std::int64_t mask = -std::int64_t{is_in(row, node)};
      side.n -= static_cast<Row>(mask);
      side.s += criterion_.rows.value(row) & mask;
      side.w += criterion_.rows.weight(row) & mask;
    };
    if (side.zeros_left)
      for (std::size_t i = end; i-- > begin && values[code_of(all[i])] > threshold;) add(row_of(all[i]));
    else
      for (std::size_t i = begin; i < end && values[code_of(all[i])] <= threshold; ++i) add(row_of(all[i]));
    cuts_.add_side(side, 0, static_cast<std::uint32_t>(c), rules_.params.min_samples_leaf);
    return true;
  }

  // The best of the random cuts that were compared.
  void take_drawn(std::span<Candidate> candidates) {
    cuts_.settle();
    if (!cuts_.found()) return;
    Candidate& best = candidates[cuts_.column()];
    const double threshold = best.threshold;
    best = cuts_.candidate();
    best.threshold = threshold;
    best.code_below = cuts_.column();
  }

  // The same for many classes: only cuts that may be the best are scored in full.
  void search_classes(const OpenNode& node, std::span<const std::uint32_t> columns, std::span<Candidate> candidates) {
    const Totals total{node.n(), node.stat.data()};
    classes_.start(total, criterion_.width() - 1);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::uint32_t f = columns[c];
      if (set_if_zeros(f, c, candidates[c])) continue;
      const EntryRun run = run_of(node, f, c);
      candidates[c].score = no_score;
      candidates[c].constant = run.is_constant();
      if (candidates[c].constant) continue;
      if (run.n_missing() > 0) {
        candidates[c] = scan_entries(criterion_, run, total, rules_.limits(node, f), buffers_);
        candidates[c].code_below = static_cast<std::uint32_t>(c);
      } else {
        classes_.add(criterion_.rows, run, static_cast<std::uint32_t>(c), rules_.params.min_samples_leaf);
      }
    }
    Candidate best;
    for (const ClassCuts::Cut& cut : classes_.near_best()) {
      sum_left(criterion_, run_of(node, columns[cut.column], cut.column), cut.at, total, buffers_.left);
      const double score = criterion_.score(buffers_.left.data(), total.stat);
      const bool is_lower = score == best.score && best.code_below == cut.column && cut.at < best.at;
      if (!(score > best.score || is_lower)) continue;
      best.score = score;
      best.at = cut.at;
      best.w_left = static_cast<double>(buffers_.left[0]);
      best.code_below = cut.column;
    }
    if (best.found()) candidates[best.code_below] = best;
  }

  Candidate search_sum(const OpenNode& node, std::uint32_t f) {
    const Totals total{node.n(), node.stat.data()};
    const Sum& sum = state_.sums[f];
    Candidate best;
    best.constant = sum.n == 0 || sum.n == total.n;
    if (best.constant) return best;
    const bool above = is_above(f);
    const std::int64_t left[2] = {above ? total.stat[0] - sum.w : sum.w, above ? total.stat[1] - sum.s : sum.s};
    best.n_left = above ? total.n - sum.n : sum.n;
    best.w_left = static_cast<double>(left[0]);
    if (rules_.params.random_cuts) {
      const double value = all_.value(f, 0), low = std::min(0.0, value), high = std::max(0.0, value);
      if (!std::isfinite(high - low)) return draw_by_rows(node, f);
      RandomStream random(derive(node.key, 16 + f));
      best.threshold = draw_between(low, high, random);
    }
    if constexpr (is_scalar)
      if (admits(rules_.limits(node, f), total, left, best.n_left)) best.score = criterion_.score(left, total.stat);
    return best;
  }

  Candidate search_run(const OpenNode& node, std::uint32_t f, std::size_t c) {
    const Totals total{node.n(), node.stat.data()};
    const EntryRun run = run_of(node, f, c);
    const Limits limits = rules_.limits(node, f);
    if (!rules_.params.random_cuts) return scan_entries(criterion_, run, total, limits, buffers_);
    Candidate best;
    best.constant = run.is_constant();
    if (best.constant) return best;
    const double* values = values_of(f);
    const auto [low, high] = run.range(values);
    if (low < high && !std::isfinite(high - low)) {
      best = draw_by_rows(node, f);
      best.at = run.at_of(values, best.threshold);
      return best;
    }
    return draw_entries(criterion_, run, values, total, limits, low, high, RandomStream(derive(node.key, 16 + f)),
                        buffers_);
  }

  const double* values_of(std::uint32_t f) const { return all_.values.data() + all_.columns[f].values; }

  // A cut is more likely among the last values of a column than among the first: most are above 0.
  void fetch_last_values(std::uint32_t f) const {
    constexpr std::size_t line = 64 / sizeof(double), most_lines = 3;
    const std::span<const Entry> all = all_.of_column(f);
    if (all.empty() || code_of(all.back()) == missing_code) return;
    const std::size_t last = code_of(all.back());
    for (std::size_t i = 0; i < most_lines && i * line <= last; ++i) __builtin_prefetch(values_of(f) + last - i * line);
  }

  // The highest value of a run; the lowest is usually 0.
  void fetch_values(std::uint32_t f, std::size_t c) const {
    const std::span<const Entry> run = entries_of(f, c);
    if (!run.empty() && code_of(run.back()) != missing_code) __builtin_prefetch(values_of(f) + code_of(run.back()));
  }

  // Infinite ranges are cut at one of the rows' values.
  Candidate draw_by_rows(const OpenNode& node, std::uint32_t f) {
    return scan_random(criterion_, rules_.table.columns[f], rows_of(node), {node.n(), node.stat.data()},
                       rules_.limits(node, f), RandomStream(derive(node.key, 16 + f)), random_);
  }

  const Criterion& criterion_;
  RandomBuffers& random_;
  EntryBuffers buffers_;
  EntryCuts cuts_;
  ClassCuts classes_;
};

}  // namespace spinney
