// The columns of a block whose nodes try few of many columns, for more than two classes: nothing is sorted or kept in
// order, ranks are read row by row and counted. The rows of a node stay where they are: places stand for them, which point
// to the table's packed ranks or, in small nodes, to copies that lie side by side, and so in a near cache.
#pragma once

#include <algorithm>
#include <array>
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
    places_.assign(rows.begin(), rows.end());
    std::size_t most_values = 0;
    for (const RowRanks::Place& place : all_.places) most_values = std::max<std::size_t>(most_values, place.n_values);
    counts_.start(input.n_classes[0], most_values + 1, all_.n_flags);
    packed_.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      packed_[i] = static_cast<std::uint32_t>(rules_.target.fixed_weight_of(rows[i])) << 8 |
                   static_cast<std::uint32_t>(input.codes[rows[i]]);
    spare_.resize(rows.size() + 16);
    if (all_.row_bytes <= most_copied)
      for (std::size_t i = 0; i < copies_.size(); ++i)
        copies_[i].bits.resize(std::min(rows.size() * all_.row_bytes, copy_bytes[i]));
    if (all_.n_flags == 0) return;
    flags_.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) flags_[i] = all_.flags.data()[rows[i]];
    spare_flags_.resize(rows.size() + 16);
  }

  bool tells_constants(const OpenNode& node) const { return node.n() <= small_rows; }

  void search(const OpenNode& node, std::span<const std::uint32_t> columns, std::span<Candidate> candidates) {
    const bool is_small = tells_constants(node);
    draw_near(node);
    if (is_small) find_differences(node);
    read_.clear();
    std::uint64_t asked = 0;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const RowRanks::Place& place = all_.places[columns[c]];
      candidates[c].score = no_score;
      candidates[c].constant = is_small && !differs(place);
      if (candidates[c].constant) continue;
      if (place.is_flag())
        asked |= std::uint64_t{1} << place.flag;
      else
        read_.push_back(columns[c]);
    }
    if (asked != 0) counts_.count_flags(flags_.data() + node.begin, packed_.data() + node.begin, node.n(), asked);
    if (!read_.empty()) read_ranks(node, read_);
    const Totals total{node.n(), node.stat.data()};
    for (std::size_t c = 0, at = 0; c < columns.size(); ++c) {
      if (candidates[c].constant) continue;
      if (const RowRanks::Place& place = all_.places[columns[c]]; place.is_flag()) {
        candidates[c] = counts_.search_flag(worker_.criterion, place.flag, total, rules_.limits(node, columns[c]));
        continue;
      }
      const std::span<const std::uint16_t> ranks(ranks_.data() + at * node.n(), node.n());
      candidates[c] = counts_.search(worker_.criterion, ranks, packed_.data() + node.begin,
                                     all_.places[columns[c]].n_values, total, rules_.limits(node, columns[c]));
      candidates[c].below = static_cast<std::uint32_t>(at++);
    }
  }

  // The ranks of the columns that were searched last are still here, and the chosen one is among them.
  std::size_t part(const OpenNode& node, const Choice& choice) {
    const Candidate& c = choice.candidate;
    const RowRanks::Place& place = all_.places[choice.feature];
    if (place.is_flag()) read_flag(node, place.flag);
    std::uint16_t* ranks = ranks_.data() + c.below * node.n();
    const auto missing = static_cast<std::uint16_t>(place.n_values);
    if (!c.missing_alone) find_neighbours(node, choice, ranks);
    if (c.missing_left) std::replace(ranks, ranks + node.n(), missing, std::uint16_t{0});
    const auto cut = static_cast<std::uint16_t>(c.missing_alone ? missing - 1 : c.code_below);
    kernels_.partition_by_rank(packed_.data() + node.begin, node.n(), ranks, cut, spare_.data());
    if (!flags_.empty())
      kernels_.partition_flags_by_rank(flags_.data() + node.begin, node.n(), ranks, cut, spare_flags_.data());
    return node.begin + kernels_.partition_by_rank(places_.data() + node.begin, node.n(), ranks, cut, spare_.data());
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
  // Ranks of the rows of a subtree, once more.
  struct Copy {
    std::size_t begin = 0, end = 0;  // where the rows of the subtree lie
    std::vector<std::uint8_t> bits;
    std::vector<Row> rows;  // where ranks are bins
    bool holds(const OpenNode& node) const { return begin <= node.begin && node.end <= end; }
  };

  // Finds the nearest copy of the node's rows, or makes it: once for the second-level cache, once for the first.
  void draw_near(const OpenNode& node) {
    bits_ = all_.bits.data();
    source_ = nullptr;
    const std::size_t n_bytes = node.n() * all_.row_bytes;
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      const bool fits_next = i + 1 < copies_.size() && n_bytes <= copies_[i + 1].bits.size();
      if (!copies_[i].holds(node)) {
        if (n_bytes > copies_[i].bits.size()) return;
        if (fits_next) continue;
        copy_rows(node, copies_[i]);
      }
      bits_ = copies_[i].bits.data();
      source_ = &copies_[i];
    }
  }

  void copy_rows(const OpenNode& node, Copy& copy) {
    constexpr std::size_t ahead = 16;
    const std::size_t width = all_.row_bytes;
    const bool with_rows = !bins_.columns.empty();
    if (with_rows) copy.rows.resize(std::max<std::size_t>(copy.rows.size(), node.n()));
    std::uint32_t* const places = places_.data() + node.begin;
    std::uint8_t* out = copy.bits.data();
    for (std::size_t i = 0; i < node.n(); ++i, out += width) {
      if (i + ahead < node.n()) __builtin_prefetch(bits_ + places[i + ahead] * width);
      for (std::size_t byte = 0; byte < width; byte += 8) std::memcpy(out + byte, bits_ + places[i] * width + byte, 8);
      if (with_rows) copy.rows[i] = row_of(places[i]);
      places[i] = static_cast<std::uint32_t>(i);
    }
    copy.begin = node.begin;
    copy.end = node.end;
  }

  Row row_of(std::uint32_t place) const { return source_ == nullptr ? place : source_->rows[place]; }

  // The bits in which rows of the node differ from its first: a column without any is constant. Columns of few values
  // often are, in small nodes. A node whose search goes on has them already.
  void find_differences(const OpenNode& node) {
    if (compared_begin_ == node.begin && compared_end_ == node.end) return;
    compared_begin_ = node.begin;
    compared_end_ = node.end;
    flag_differences_ = 0;
    for (std::size_t i = node.begin; all_.n_flags > 0 && i < node.end; ++i)
      flag_differences_ |= flags_[node.begin] ^ flags_[i];
    differences_.resize(all_.row_bytes);
    const auto bits_at = [&](std::size_t i, std::size_t byte) {
      std::uint64_t bits;
      std::memcpy(&bits, bits_ + places_[i] * all_.row_bytes + byte, sizeof bits);
      return bits;
    };
    for (std::size_t byte = 0; byte < all_.row_bytes; byte += 8) {
      const std::uint64_t first = bits_at(node.begin, byte);
      std::uint64_t different = 0;
      for (std::size_t i = node.begin + 1; i < node.end; ++i) different |= first ^ bits_at(i, byte);
      std::memcpy(differences_.data() + byte, &different, sizeof different);
    }
  }

  bool differs(const RowRanks::Place& place) const {
    if (place.is_flag()) return (flag_differences_ >> place.flag & 1) != 0;
    std::uint32_t word;
    std::memcpy(&word, differences_.data() + place.byte, sizeof word);
    return (word >> place.shift & place.mask) != 0;
  }

  // As below, of a column that is a flag.
  void read_flag(const OpenNode& node, std::uint32_t flag) {
    ranks_.resize(std::max<std::size_t>(ranks_.size(), node.n()));
    const std::uint64_t* flags = flags_.data() + node.begin;
    for (std::size_t i = 0; i < node.n(); ++i) ranks_[i] = static_cast<std::uint16_t>(flags[i] >> flag & 1);
  }

  // Copies the node's ranks in these columns, one column after the other.
  void read_ranks(const OpenNode& node, std::span<const std::uint32_t> columns) {
    const std::size_t n = node.n();
    ranks_.resize(std::max(ranks_.size(), n * columns.size()));
    const std::uint32_t* places = places_.data() + node.begin;
    constexpr std::size_t chunk = 512;  // rows that stay in cache from one column to the next
    const std::size_t stride = all_.row_bytes / 8;
    for (std::size_t begin = 0; begin < n; begin += chunk) {
      const std::size_t n_here = std::min(chunk, n - begin), ahead = std::min(n, begin + 2 * chunk);
      for (std::size_t i = begin + chunk; source_ == nullptr && i < ahead; ++i)
        __builtin_prefetch(bits_ + places[i] * all_.row_bytes);
      for (std::size_t c = 0; c < columns.size(); ++c) {
        const RowRanks::Place& place = all_.places[columns[c]];
        kernels_.read_ranks(bits_ + place.byte, stride, places + begin, n_here, place.shift, place.mask,
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
      const double v = value_at(rules_.table.columns[f], row_of(places_[node.begin + i]));
      (ranks[i] == below ? below_ : above_) = ranks[i] == below ? std::max(below_, v) : std::min(above_, v);
    }
  }

  const Rules& rules_;
  const Bins& bins_;
  Worker<Criterion>& worker_;
  const RowRanks& all_;
  const Kernels& kernels_;
  ClassCounts counts_;
  std::vector<std::uint32_t> places_;  // of the block's rows, parted as nodes are split
  std::vector<std::uint32_t> packed_;  // weight and class, parted like places_
  std::vector<std::uint64_t> flags_;   // parted like places_; empty: no column is a flag
  std::vector<std::uint16_t> ranks_;   // of the node's rows, column by column
  std::vector<std::uint32_t> spare_;
  std::vector<std::uint64_t> spare_flags_;
  static constexpr std::size_t most_copied = 64;  // bytes of a row; nodes read few of those that longer rows have
  static constexpr std::array<std::size_t, 2> copy_bytes{std::size_t{1} << 19, std::size_t{1} << 14};
  std::array<Copy, 2> copies_;
  const std::uint8_t* bits_ = nullptr;  // what places point to: all rows, or a copy
  const Copy* source_ = nullptr;        // null: all rows
  static constexpr std::size_t small_rows = 64;
  std::vector<std::uint32_t> read_;        // columns of the search that are not known to be constant
  std::vector<std::uint8_t> differences_;  // bits, laid out as a row
  std::uint64_t flag_differences_ = 0;
  std::size_t compared_begin_ = 0, compared_end_ = 0;  // the node that they are of
  double below_ = 0, above_ = 0;                       // the values next to the cut that was made last
};

}  // namespace spinney
