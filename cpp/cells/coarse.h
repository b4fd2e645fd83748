// Exact search of a large node by bounds.
//
// The sums over each step of the coarse codes give the statistic at the ends of the steps and bound it in between: for
// two classes by the orders in which all rows of one class come first, for regression by the sums of deviations above
// and below the node's mean. Scores are convex in (S, W), so their maximum over the corners of that region bounds every
// cut inside the step. Only rows of steps whose bound reaches the best known score are sorted, or looked up if they are
// presorted. The result is bit-identical to sorting all rows; in the top nodes of a tree a few percent of the rows
// remain.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "cells/candidate.h"
#include "cells/sorted.h"
#include "criterion/scalar.h"
#include "data/coarse.h"
#include "data/presort.h"
#include "data/sort.h"

namespace spinney {

// Rules whose scores have such bounds.
inline bool has_bounds(Rule rule) {
  return is_class_rule(rule) || rule == Rule::squared_error || rule == Rule::friedman_mse;
}

// Packed sums of a step, one or two additions per row: the weight and the sum; then the deviations and the rows.
template <std::size_t width>
struct StepSums {
  typedef std::int64_t Type __attribute__((vector_size(width * 8), may_alias));
};

// Returns whether cuts need more of a step than its weight and its sum.
inline bool needs_wide_sums(Rule rule, Row min_leaf) { return !is_class_rule(rule) || min_leaf > 1; }

// Adds the rows of a node to the steps of up to eight columns with interleaved codes; there are 256 `cells` per column.
// `mean` is that of the node.
template <std::size_t width, std::size_t lanes, class Rows>
void sum_steps(const Rows& data, std::int64_t mean, const std::uint8_t* tile, std::span<const Row> rows,
               typename StepSums<width>::Type* cells) {
  using Sums = typename StepSums<width>::Type;
  const auto codes_of = [tile](Row r) { return tile + std::size_t{r} * CoarseTiles::lanes; };
  constexpr std::size_t ahead = 24;
  Sums* of_lane[lanes];
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    of_lane[lane] = cells + 256 * lane;
#if defined(__aarch64__)
    asm("" : "+r"(of_lane[lane]));  // eight registers: otherwise each address would be recomputed
#endif
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row r = rows[i];
    __builtin_prefetch(codes_of(rows[std::min(i + ahead, rows.size() - 1)]));
    const std::int64_t w = data.weight(r), s = data.value(r);
    Sums sums;
    if constexpr (width == 2)
      sums = Sums{w, s};
    else
      sums = Sums{w, s, std::abs(s - mean * w), 1};
    std::uint64_t codes;
    __builtin_memcpy(&codes, codes_of(r), sizeof codes);
    [&]<std::size_t... lane>(std::index_sequence<lane...>) __attribute__((always_inline)) {
      ((of_lane[lane][codes >> 8 * lane & 0xff] += sums), ...);
    }(std::make_index_sequence<lanes>{});
  }
}

// Buffers for the sums of eight columns.
struct StepBuffers {
  static constexpr std::size_t n_cells = 256 * CoarseTiles::lanes;
  std::vector<StepSums<4>::Type> cells;

  template <std::size_t width>
  typename StepSums<width>::Type* cleared() {
    cells.resize(n_cells);
    std::fill_n(cells.begin(), n_cells * width / 4, StepSums<4>::Type{});
    return reinterpret_cast<typename StepSums<width>::Type*>(cells.data());
  }
};

// A column with presorted rows.
struct SortedSteps {
  const Presorted& rows;
  std::uint32_t column;
  const CoarseTiles::Begins& begin;
  const std::uint8_t* in_node;  // by row: 1 if it is in the node; null: all are

  // The node's rows of steps first … end - 1; `buffer` is scratch.
  std::span<const std::uint32_t> words(std::size_t first, std::size_t end, std::vector<std::uint32_t>& buffer) const {
    const std::size_t n = begin[end] - begin[first];
    if (in_node == nullptr) return rows.column(column).subspan(begin[first], n);
    if (buffer.size() < n + 1) buffer.resize(n + 1);
    return {buffer.data(), rows.take(column, begin[first], begin[end], in_node, buffer.data())};
  }
};

// The search of one column of a node.
template <class Rows>
class CoarseSearch {
 public:
  void fill(const Scalar<Rows>& criterion, const std::uint8_t* codes, std::span<const Row> rows, const Totals& total) {
    steps_.fill({});
    mean_ = total.stat[1] / total.stat[0];
    const Rows& data = criterion.rows;
    const bool deviates = !is_class_rule(criterion.rule);
    for (const Row r : rows) {
      Step& step = steps_[codes[r]];
      const std::int64_t v = data.value(r), w = data.weight(r);
      step.s += v;
      if (deviates) step.deviation += std::abs(v - mean_ * w);
      if constexpr (!has_unit_weights) step.w += w;
      ++step.n;
    }
    if constexpr (has_unit_weights)
      for (Step& step : steps_) step.w = step.n;
  }

  // The same from the sums of a column's steps. If rows are not counted, a step with rows counts as one row.
  template <class Sums>
  void read(const Sums* cells, const Totals& total) {
    mean_ = total.stat[1] / total.stat[0];
    for (std::size_t c = 0; c < steps_.size(); ++c) {
      if constexpr (sizeof(Sums) == sizeof(StepSums<2>::Type))
        steps_[c] = {cells[c][1], 0, cells[c][0], cells[c][0] > 0};
      else
        steps_[c] = {cells[c][1], cells[c][2], cells[c][0], static_cast<Row>(cells[c][3])};
    }
  }

  bool has_missing() const { return steps_[coarse_missing].n > 0; }

  // The best admissible score at the end of a step.
  double best_end(const Scalar<Rows>& criterion, const Totals& total, const Limits& limits) const {
    double best = no_score;
    for_each_side([&](std::int64_t w, std::int64_t s, Row n, bool) {
      for (std::size_t c = 0; c < n_coarse; ++c) {
        w += steps_[c].w;
        s += steps_[c].s;
        n += steps_[c].n;
        const std::int64_t left[2] = {w, s};
        if (steps_[c].n > 0 && w < total.stat[0] && admits(limits, total, left, n))
          best = std::max(best, criterion.score(left, total.stat));
      }
    });
    return best;
  }

  // The best cut of the column if its score is at least `floor`; otherwise none.
  Candidate refine(const Scalar<Rows>& criterion, const Column& column, const std::uint8_t* codes,
                   std::span<const Row> rows, const Totals& total, const Limits& limits, double floor,
                   ColumnSorter& sorter, ScanBuffers& b) {
    Candidate best;
    best.has_missing = has_missing();
    mark_survivors(criterion, total, floor);
    const std::span<const Row> chosen = survivors(codes, rows, b.chosen);
    if (!chosen.empty()) {
      const std::span<const Entry> entries = sorter.sort(column, chosen, false);
      best.constant = entries.size() == total.n && code_of(entries.front()) == code_of(entries.back());
      for_each_side([&](std::int64_t w, std::int64_t s, Row n, bool missing_left) {
        sweep_steps(criterion, entries, codes, total, limits, w, s, n, missing_left, b, best);
      });
      if (best.found()) locate(entries, best);
    } else {
      best.constant = steps_[coarse_missing].n == total.n;
    }
    if (has_missing()) try_missing_alone(criterion, total, limits, best);
    return best;
  }

  // The same for presorted rows; `buffer` is scratch. The number of rows on the left is not set.
  Candidate refine(const Scalar<Rows>& criterion, const SortedSteps& sorted, const Totals& total, const Limits& limits,
                   double floor, std::vector<std::uint32_t>& buffer, ScanBuffers& b) {
    Candidate best;
    best.has_missing = has_missing();
    best.constant = steps_[coarse_missing].w == total.stat[0];
    mark_survivors(criterion, total, floor);
    LeftOfWords left;
    for (std::size_t c = 0, end = 0; c < n_coarse; c = end) {
      for (end = c; end < n_coarse && (survives_[end] || steps_[end].n == 0);) ++end;
      const std::span<const std::uint32_t> words = sorted.words(c, end, buffer);
      left.first_at = sorted.begin[c];
      if (!words.empty()) {
        sweep_run(criterion, words, total, limits, left, b, best);
        best.constant = words.size() == total.n && std::none_of(words.begin() + 1, words.end(), [](std::uint32_t word) {
                          return MarkedWord::differ(0, word);
                        });
      }
      end += end == c;
      for (; c < end; ++c) {
        left.w += steps_[c].w;
        left.s += steps_[c].s;
        left.n += steps_[c].n;
      }
    }
    if (has_missing()) try_missing_alone(criterion, total, limits, best);
    return best;
  }

 private:
  // Calls visit with the statistic to the left of the first step: nothing, then the missing rows.
  template <class Visit>
  void for_each_side(Visit&& visit) const {
    visit(std::int64_t{0}, std::int64_t{0}, Row{0}, false);
    if (has_missing()) visit(steps_[coarse_missing].w, steps_[coarse_missing].s, steps_[coarse_missing].n, true);
  }

  // Sweeps the words of adjacent steps, with the missing rows right and left.
  void sweep_run(const Scalar<Rows>& criterion, std::span<const std::uint32_t> words, const Totals& total,
                 const Limits& limits, const LeftOfWords& left, ScanBuffers& b, Candidate& best) const {
    for_each_side([&](std::int64_t w, std::int64_t s, Row n, bool missing_left) {
      const double before = best.score;
      const std::uint32_t at_before = best.at;
      const LeftOfWords side{left.w + w, left.s + s, left.n + n, missing_left, left.first_at};
      sweep_scalar<MarkedWord>(criterion, words.data(), words.size(), total, limits, side, b, best);
      if (best.score == before && best.at == at_before) return;
      best.below = MarkedWord::row(words[best.at - left.first_at]);
      best.above = MarkedWord::row(words[best.at - left.first_at + 1]);
    });
  }

  void mark_survivors(const Scalar<Rows>& criterion, const Totals& total, double floor) {
    survives_.fill(false);
    for_each_side([&](std::int64_t w, std::int64_t s, Row, bool) {
      for (std::size_t c = 0; c < n_coarse; ++c) {
        if (steps_[c].n == 0) continue;
        const bool at_edge = w == 0 || w + steps_[c].w == total.stat[0];  // no bound where a side may be empty
        if (at_edge || bound(criterion, total, w, s, c) >= floor - slack(total, w, s, floor)) survives_[c] = true;
        w += steps_[c].w;
        s += steps_[c].s;
      }
    });
  }

  // Every row is written and retained if its step survives, which avoids a branch.
  std::span<const Row> survivors(const std::uint8_t* codes, std::span<const Row> rows, std::vector<Row>& buffer) const {
    if (buffer.size() < rows.size()) buffer.resize(rows.size());
    std::size_t n = 0;
    for (const Row r : rows) {
      buffer[n] = r;
      n += survives_[codes[r]];
    }
    return {buffer.data(), n};
  }

  // An upper bound of rounding errors: relative to the score, and to the terms that cancel in it when S is far from 0.
  static double slack(const Totals& total, std::int64_t w, std::int64_t s, double floor) {
    const double wl = static_cast<double>(w), wr = static_cast<double>(total.stat[0] - w);
    const double size = std::abs(static_cast<double>(s)) * wr + std::abs(static_cast<double>(total.stat[1] - s)) * wl;
    return 1e-9 * std::abs(floor) + 1e-13 * (size / wl) * (size / wr);
  }

  double bound(const Scalar<Rows>& criterion, const Totals& total, std::int64_t w, std::int64_t s,
               std::size_t c) const {
    std::array<std::array<std::int64_t, 2>, 4> corners;
    if (is_class_rule(criterion.rule)) {
      const std::int64_t first = steps_[c].w - steps_[c].s, second = steps_[c].s;
      corners = {{{w, s}, {w + first, s}, {w + second, s + second}, {w + steps_[c].w, s + steps_[c].s}}};
    } else {
      const std::int64_t drift = mean_ * steps_[c].w, net = steps_[c].s - drift;
      const std::int64_t above = (steps_[c].deviation + net) / 2 + 1, below = (net - steps_[c].deviation) / 2 - 1;
      corners = {
          {{w, s + above}, {w, s + below}, {w + steps_[c].w, s + drift + above}, {w + steps_[c].w, s + drift + below}}};
    }
    double most = no_score;
    for (const auto& corner : corners) most = std::max(most, criterion.score(corner.data(), total.stat));
    return most;
  }

  // Sweeps the surviving steps; a cut between two steps counts if both survive and no other step is between them.
  void sweep_steps(const Scalar<Rows>& criterion, std::span<const Entry> entries, const std::uint8_t* codes,
                   const Totals& total, const Limits& limits, std::int64_t w, std::int64_t s, Row n_missing_left,
                   bool missing_left, ScanBuffers& b, Candidate& best) const {
    const Kernels::Score score = score_kernel(criterion.rule);
    std::size_t i = 0, n = 0;
    Row present = 0;  // rows of lower steps
    for (std::size_t c = 0; c < n_coarse; ++c) {
      if (steps_[c].n == 0) continue;
      if (survives_[c]) {
        std::int64_t w_left = w, s_left = s;
        std::size_t next = c + 1;
        while (next < n_coarse && steps_[next].n == 0) ++next;
        const std::size_t end = i + steps_[c].n;
        for (Row at = present; i < end; ++i, ++at) {
          w_left += criterion.rows.weight(row_of(entries[i]));
          s_left += criterion.rows.value(row_of(entries[i]));
          const bool is_cut = i + 1 < end ? code_of(entries[i]) != code_of(entries[i + 1])
                                          : i + 1 < entries.size() && codes[row_of(entries[i + 1])] == next;
          const Row n_left = at + 1 + n_missing_left;
          if (!is_cut || n_left < limits.min_leaf || total.n - n_left < limits.min_leaf) continue;
          b.s_left[n] = static_cast<double>(s_left);
          b.w_left[n] = static_cast<double>(w_left);
          b.s_right[n] = static_cast<double>(total.stat[1] - s_left);
          b.w_right[n] = static_cast<double>(total.stat[0] - w_left);
          b.at[n] = at;
          if (++n < ScanBuffers::chunk) continue;
          keep_best(b, n, score, limits, missing_left, best);
          n = 0;
        }
      }
      w += steps_[c].w;
      s += steps_[c].s;
      present += steps_[c].n;
    }
    keep_best(b, n, score, limits, missing_left, best);
  }

  // Converts the cut's rank among the present rows to the rows next to it.
  void locate(std::span<const Entry> entries, Candidate& best) const {
    std::size_t skipped = 0, present = 0;
    for (std::size_t c = 0; c < n_coarse && present + steps_[c].n <= best.at; ++c) {
      present += steps_[c].n;
      if (!survives_[c]) skipped += steps_[c].n;
    }
    const std::size_t i = best.at - skipped;
    best.below = row_of(entries[i]);
    best.above = row_of(entries[i + 1]);
    best.n_left = best.at + 1 + (best.missing_left ? steps_[coarse_missing].n : 0);
  }

  void try_missing_alone(const Scalar<Rows>& criterion, const Totals& total, const Limits& limits,
                         Candidate& best) const {
    const std::int64_t left[2] = {total.stat[0] - steps_[coarse_missing].w, total.stat[1] - steps_[coarse_missing].s};
    const Row n_left = total.n - steps_[coarse_missing].n;
    if (left[0] == 0 || !admits(limits, total, left, n_left)) return;
    const double score = criterion.score(left, total.stat);
    if (!(score > best.score)) return;
    best.score = score;
    best.w_left = static_cast<double>(left[0]);
    best.missing_left = false;
    best.missing_alone = true;
    best.n_left = n_left;
  }

  static constexpr bool has_unit_weights = requires { std::integral_constant<std::int64_t, Rows::weight(0)>{}; };

  struct Step {  // sums over its rows, contiguous in memory
    std::int64_t s = 0, deviation = 0, w = 0;
    Row n = 0;
  };
  std::array<Step, 256> steps_;
  std::array<bool, 256> survives_;
  std::int64_t mean_ = 0;
};

}  // namespace spinney
