// The columns of a block of at most 65,535 rows, sorted once.
//
// Each column is an array of 32-bit words, (rank << 16 | position in the block), sorted by rank. A split partitions
// every array stably, so the words of a node stay contiguous and sorted, and nothing is sorted again. The block fits in
// cache; memory is bounded by the block, not by the table.
//
//      column j   | …… left child …… | …… right child …… |      the same ranges in every column
//
// Where nodes try few of the columns, the ranks are also stored row by row: a small node sorts the columns it tries,
// which costs less than keeping all columns partitioned.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cells/categories.h"
#include "cells/kernels.h"
#include "cells/sorted.h"
#include "cells/user.h"
#include "grow/block.h"

namespace spinney {

// The part that does not depend on the criterion.
class SortedBlock : public BlockColumns {
 public:
  static constexpr std::size_t max_rows = 0xffff;

  SortedBlock(const Rules& rules, const Bins& bins, ColumnSorter& sorter)
      : rules_(rules), kernels_(kernels()), bins_(bins), sorter_(sorter) {}

  void start(const OpenNode& root, std::span<Row> rows) override;
  std::size_t partition(const OpenNode& node, const Choice& choice) override;
  SplitRecord describe(const Choice& choice, bool left_heavier) override;
  // Sets the threshold of the split described last, whose values have been prefetched by now.
  void cut_later(const Choice& choice, Tree& tree, std::size_t node) override;
  // Call it once at the end.
  void cut_now(Tree& tree) override;
  // Partitions the words for children that will be searched.
  void follow(const OpenNode& node, const OpenNode& left, const OpenNode& right) override;

 protected:
  virtual void copy_target(std::span<const Row> rows) = 0;  // target of the block's rows, contiguous

  std::uint32_t* words(std::uint32_t feature) { return words_.data() + slot_[feature] * stride_; }

  bool is_small(const OpenNode& node) const { return samples_ && node.n() <= small_rows; }

  // The sorted words of a node in a column. Those of a small node are valid until the next call.
  [[gnu::always_inline]] const std::uint32_t* sorted_words(const OpenNode& node, std::uint32_t feature) {
    if (!is_small(node)) return words(feature) + node.begin;
    const std::uint16_t* ranks = ranks_.data() + slot_[feature];
    for (std::size_t i = 0; i < node.n(); ++i) {
      const std::uint32_t position = positions_[node.begin + i];
      small_words_[i] = std::uint32_t{ranks[position * n_slots_]} << 16 | position;
    }
    kernels_.sort_few(small_words_.data(), node.n());
    return small_words_.data();
  }

  const Rules& rules_;
  const Kernels& kernels_;
  std::vector<std::uint16_t> positions_;  // partitioned like rows_
  bool cuts_compare_ = false;             // cuts of different columns can be compared by their squared errors alone

 private:
  struct LateCut {
    std::size_t node = 0;
    std::uint32_t feature = 0;
    Row below = 0, above = 0;
  };

  void set_threshold(const LateCut& cut, Tree& tree) const;
  void sort_columns(const OpenNode& root);
  void keep_ranks(std::size_t n_slots);
  // Returns whether a column is read together with others before sorting. In files columns are stored separately.
  bool is_read_ahead(std::uint32_t f) const {
    return !presorted_ && !rules_.table.spill && !bins_.has(rules_.table, f) &&
           ColumnSorter::has_plain_floats(rules_.table.columns[f]);
  }
  void read_ahead(std::span<const std::uint32_t> columns);
  void sort_column(std::uint32_t f);
  void read_presorted(std::uint32_t f);
  void use_presorted();
  std::vector<std::uint32_t> mark_sides(const OpenNode& node, const Choice& choice);
  void find_neighbours(const Choice& choice, const std::uint32_t* first, std::size_t n_present);
  // `goes_left` returns 1 or 0 by position. Both sides are written and one counter advances, which avoids a branch.
  template <class GoesLeft>
  std::size_t partition_rows(const OpenNode& node, GoesLeft&& goes_left);

  const Bins& bins_;
  ColumnSorter& sorter_;
  std::span<Row> rows_;          // row index of the block, partitioned like the words
  std::vector<Row> block_rows_;  // row by position in the block, constant
  std::vector<std::uint32_t> words_, spare_;
  bool samples_ = false;  // nodes try few of the columns
  static constexpr std::size_t small_rows = 64;
  std::vector<std::uint16_t> ranks_;  // by position and slot
  static constexpr std::uint32_t absent = UINT32_MAX;
  bool presorted_ = false;
  std::vector<std::uint32_t> position_of_;  // by row of the table
  std::size_t n_slots_ = 0;
  std::array<std::uint32_t, small_rows + 16> small_words_{};  // kernels read past the last word
  std::size_t stride_ = 0;
  std::vector<std::size_t> slot_;  // by column
  std::vector<std::vector<std::uint32_t>> dictionary_;
  struct Neighbours {
    std::uint32_t below = 0, above = 0;  // positions
  } neighbours_;                         // of the last cut
  std::array<LateCut, 16> late_cuts_{};  // cut i is at index i mod 16
  std::size_t n_late_ = 0;
  std::vector<std::uint8_t> side_;    // by position; 1: left
  std::vector<std::uint32_t> codes_;  // categories in the node that was partitioned last
  std::vector<std::uint16_t> right_positions_;
};

// The same with a criterion.
template <class Criterion>
class SortedColumns final : public SortedBlock {
 public:
  SortedColumns(const Rules& rules, const Bins& bins, const Criterion& criterion, ColumnSorter& sorter,
                ScanBuffers& buffers)
      : SortedBlock(rules, bins, sorter), criterion_(criterion), buffers_(buffers) {}

  void search(const OpenNode& node, std::span<const std::uint32_t> columns, std::span<Candidate> candidates) override {
    if constexpr (requires(Criterion c) { c.rows.value(0); })
      if (node.n() <= SmallCuts::max_rows && cuts_compare_) return search_small(node, columns, candidates);
    for (std::size_t c = 0; c < columns.size(); ++c) candidates[c] = search(node, columns[c]);
  }

  void add(std::size_t begin, std::size_t end, std::int64_t* stat) const override {
    for (std::size_t i = begin; i < end; ++i) local_criterion_->add(positions_[i], stat);
  }

 private:
  void copy_target(std::span<const Row> rows) override {
    local_criterion_.emplace(criterion_.on(local_.fill(criterion_.rows, rows)));
  }

  Candidate search(const OpenNode& node, std::uint32_t f) {
    const Totals total{node.n(), node.stat.data()};
    const Limits limits = rules_.limits(node, f);
    const std::uint32_t* first = sorted_words(node, f);
    if constexpr (std::is_same_v<Criterion, UserSplits>) local_criterion_->look_at(rules_.table.columns[f]);
    if (!rules_.table.columns[f].is_category())
      return scan_numbers<ShortWord>(*local_criterion_, first, total, limits, buffers_);
    Candidate best = scan_categories<ShortWord>(*local_criterion_, first, total, limits);
    rules_.charge(node, best);
    return best;
  }

  // Of the columns whose cuts are scored together, only the best has a candidate.
  void search_small(const OpenNode& node, std::span<const std::uint32_t> columns, std::span<Candidate> candidates) {
    const std::size_t n = node.n();
    SmallCuts cuts({node.n(), node.stat.data()}, decltype(local_criterion_->rows)::sums_are_weights);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::uint32_t f = columns[c];
      const std::uint32_t* words = sorted_words(node, f);
      if (rules_.table.columns[f].is_category() || ShortWord::code(words[n - 1]) == ShortWord::missing) {
        cuts.settle(buffers_);  // the search of one column uses the same buffers
        candidates[c] = search(node, f);
        continue;
      }
      candidates[c].score = no_score;
      candidates[c].constant = ShortWord::code(words[0]) == ShortWord::code(words[n - 1]);
      const bool is_known =
          n == 2 && !cuts.empty();  // with two rows, the cut between them is equally good in every column
      if (!candidates[c].constant && !is_known)
        cuts.add<ShortWord>(local_criterion_->rows, words, c, rules_.params.min_samples_leaf, buffers_);
    }
    cuts.settle(buffers_);
    if (cuts.found()) candidates[cuts.column()] = cuts.candidate<ShortWord>(sorted_words(node, columns[cuts.column()]));
  }

  const Criterion& criterion_;
  ScanBuffers& buffers_;
  typename Criterion::Local local_;
  std::optional<Criterion> local_criterion_;
};

}  // namespace spinney
