// The columns of a block whose nodes try few of many columns, for more than two classes: nothing is sorted or kept in
// order, ranks are read row by row and counted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "cells/class_counts.h"
#include "criterion/wide.h"
#include "grow/search.h"

namespace spinney {

template <class Criterion>
class RankedColumns {
 public:
  RankedColumns(const Rules& rules, const Bins& bins, Worker<Criterion>& worker)
      : rules_(rules), bins_(bins), worker_(worker), all_(bins.ranks), kernels_(kernels()) {}

  // Can the rows of this target be counted?
  static bool fits(const Target& target, std::span<const Row> rows) {
    if (!std::is_same_v<Criterion, Wide<ClassRows>> || target.input.n_outputs != 1) return false;
    std::int64_t most = 0, sum = 0;
    for (const Row r : rows) {
      most = std::max(most, target.fixed_weight_of(r));
      sum += target.fixed_weight_of(r);
    }
    return most <= ClassCounts::most_weight && sum <= INT32_MAX;
  }

  void start(const OpenNode&, std::span<Row> rows) {
    const TargetInput& input = rules_.target.input;
    rows_ = rows;
    std::size_t most_values = 0;
    for (const RowRanks::Place& place : all_.places) most_values = std::max<std::size_t>(most_values, place.n_values);
    counts_.start(input.n_classes[0], most_values + 1);
    packed_.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      packed_[i] = static_cast<std::uint32_t>(rules_.target.fixed_weight_of(rows[i])) << 8 |
                   static_cast<std::uint32_t>(input.codes[rows[i]]);
    spare_.resize(rows.size() + 16);
  }

  void search(const OpenNode& node, std::span<const std::uint32_t> columns, std::span<Candidate> candidates) {
    const bool is_small = node.n() <= small_rows;
    if (is_small) find_differences(node);
    read_.clear();
    for (std::size_t c = 0; c < columns.size(); ++c) {
      candidates[c].score = no_score;
      candidates[c].constant = is_small && !differs(columns[c]);
      if (!candidates[c].constant) read_.push_back(columns[c]);
    }
    if (read_.empty()) return;
    read_ranks(node, read_);
    const Totals total{node.n(), node.stat.data()};
    for (std::size_t c = 0, at = 0; c < columns.size(); ++c) {
      if (candidates[c].constant) continue;
      const std::span<const std::uint16_t> ranks(ranks_.data() + at * node.n(), node.n());
      candidates[c] = counts_.search(worker_.criterion, ranks, packed_.data() + node.begin,
                                     all_.places[columns[c]].n_values, total, rules_.limits(node, columns[c]));
      candidates[c].below = static_cast<std::uint32_t>(at++);
    }
  }

  // The ranks of the columns that were searched last are still here, and the chosen one is among them.
  std::size_t part(const OpenNode& node, const Choice& choice) {
    const Candidate& c = choice.candidate;
    std::uint16_t* ranks = ranks_.data() + c.below * node.n();
    const auto missing = static_cast<std::uint16_t>(all_.places[choice.feature].n_values);
    if (!c.missing_alone) find_neighbours(node, choice, ranks);
    if (c.missing_left) std::replace(ranks, ranks + node.n(), missing, std::uint16_t{0});
    const auto cut = static_cast<std::uint16_t>(c.missing_alone ? missing - 1 : c.code_below);
    kernels_.partition_by_rank(packed_.data() + node.begin, node.n(), ranks, cut, spare_.data());
    return node.begin + kernels_.partition_by_rank(rows_.data() + node.begin, node.n(), ranks, cut, spare_.data());
  }

  void add(std::size_t begin, std::size_t end, std::int64_t* stat) const {
    for (std::size_t i = begin; i < end; ++i) {
      stat[0] += packed_[i] >> 8;
      stat[1 + (packed_[i] & 0xff)] += packed_[i] >> 8;
    }
  }

  SplitRecord describe(const Choice& choice, bool left_heavier) const {
    SplitRecord split = describe_sides(rules_, choice, left_heavier, {});
    split.threshold = choice.candidate.missing_alone ? std::numeric_limits<double>::infinity()
                                                     : cut_of(rules_.params, choice.feature, below_, above_);
    return split;
  }

 private:
  // The bits in which rows of the node differ from its first: a column without any is constant. Columns of few values
  // often are, in small nodes. A node whose search goes on has them already.
  void find_differences(const OpenNode& node) {
    if (compared_begin_ == node.begin && compared_end_ == node.end) return;
    compared_begin_ = node.begin;
    compared_end_ = node.end;
    differences_.resize(all_.row_bytes);
    const auto bits_at = [&](std::size_t i, std::size_t byte) {
      std::uint64_t bits;
      std::memcpy(&bits, all_.of_row(rows_[i]) + byte, sizeof bits);
      return bits;
    };
    for (std::size_t byte = 0; byte < all_.row_bytes; byte += 8) {
      const std::uint64_t first = bits_at(node.begin, byte);
      std::uint64_t different = 0;
      for (std::size_t i = node.begin + 1; i < node.end; ++i) different |= first ^ bits_at(i, byte);
      std::memcpy(differences_.data() + byte, &different, sizeof different);
    }
  }

  bool differs(std::uint32_t column) const {
    const RowRanks::Place& place = all_.places[column];
    std::uint32_t word;
    std::memcpy(&word, differences_.data() + place.byte, sizeof word);
    return (word >> place.shift & place.mask) != 0;
  }

  // Copies the node's ranks in these columns, one column after the other.
  void read_ranks(const OpenNode& node, std::span<const std::uint32_t> columns) {
    const std::size_t n = node.n();
    ranks_.resize(std::max(ranks_.size(), n * columns.size()));
    const Row* rows = rows_.data() + node.begin;
    constexpr std::size_t chunk = 512;  // rows that stay in cache from one column to the next
    const std::size_t stride = all_.row_bytes / 8;
    for (std::size_t begin = 0; begin < n; begin += chunk) {
      const std::size_t n_here = std::min(chunk, n - begin), ahead = std::min(n, begin + 2 * chunk);
      for (std::size_t i = begin + chunk; i < ahead; ++i) __builtin_prefetch(all_.of_row(rows[i]));
      for (std::size_t c = 0; c < columns.size(); ++c) {
        const RowRanks::Place& place = all_.places[columns[c]];
        kernels_.read_ranks(all_.bits.data() + place.byte, stride, rows + begin, n_here, place.shift, place.mask,
                            ranks_.data() + c * n + begin);
      }
    }
  }

  // The values next to the cut. The rows of a bin have one rank and several values.
  void find_neighbours(const OpenNode& node, const Choice& choice, const std::uint16_t* ranks) {
    const std::uint32_t f = choice.feature, below = choice.candidate.code_below, above = choice.candidate.above;
    if (!bins_.has(rules_.table, f)) {
      below_ = all_.values[f][below];
      above_ = all_.values[f][above];
      return;
    }
    below_ = -std::numeric_limits<double>::infinity();
    above_ = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < node.n(); ++i) {
      if (ranks[i] != below && ranks[i] != above) continue;
      const double v = value_at(rules_.table.columns[f], rows_[node.begin + i]);
      (ranks[i] == below ? below_ : above_) = ranks[i] == below ? std::max(below_, v) : std::min(above_, v);
    }
  }

  const Rules& rules_;
  const Bins& bins_;
  Worker<Criterion>& worker_;
  const RowRanks& all_;
  const Kernels& kernels_;
  ClassCounts counts_;
  std::span<Row> rows_;                // row index of the block
  std::vector<std::uint32_t> packed_;  // weight and class, parted like rows_
  std::vector<std::uint16_t> ranks_;   // of the node's rows, column by column
  std::vector<std::uint32_t> spare_;
  static constexpr std::size_t small_rows = 64;
  std::vector<std::uint32_t> read_;                    // columns of the search that are not known to be constant
  std::vector<std::uint8_t> differences_;              // bits, laid out as a row
  std::size_t compared_begin_ = 0, compared_end_ = 0;  // the node that they are of
  double below_ = 0, above_ = 0;                       // the values next to the cut that was made last
};

}  // namespace spinney
