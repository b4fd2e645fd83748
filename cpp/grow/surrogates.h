// Competing splits and surrogates of a node: the best split of every column, and splits of other columns that mimic the
// chosen one where its column has no value (Breiman et al. 1984, section 5.3).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "grow/worker.h"

namespace spinney {

enum RowSide : std::uint8_t { right_side = 0, left_side = 1, no_side = 2, stays = 3 };

// The chosen split and its competitors, best first. `count` rows took part.
struct Ranking {
  struct Entry {
    Choice choice;
    Row count = 0;
    bool reversed = false;
    double rounded = 0;  // merit as rpart rounds it, for tied splits
  };
  std::vector<Entry> entries;
};

class SurrogateSearch {
 public:
  SurrogateSearch(Workers workers, const Rules& rules, const Bins& bins, Interrupt& interrupt)
      : workers_(workers), rules_(rules), bins_(bins), params_(rules.params.surrogate_params), interrupt_(interrupt) {}

  // Ranks the best split of each column.
  Ranking rank(OpenNode& node, std::span<const Row> rows);
  // The side of each row by the split alone; rows it cannot place have no_side.
  void mark(const SplitRecord& split, std::span<const Row> rows, std::vector<std::uint8_t>& side) const;
  // The surrogates of a split, best first.
  std::vector<RankedSplit> surrogates(const OpenNode& node, const SplitRecord& split, bool reversed,
                                      std::span<const Row> rows, std::span<const std::uint8_t> side);
  // Assigns a side to the rows that have none, and stores in `split` where such rows go in prediction.
  void place(SplitRecord& split, std::vector<RankedSplit>& surrogates, bool reversed, std::span<const Row> rows,
             std::vector<std::uint8_t>& side) const;

 private:
  struct Found {
    double gain = 0, weight = 0;
    Row count = 0;
    bool reversed = false;
    double rounded = 0;  // 0: not computed
  };
  struct Agreement {  // weights of the rows that agree, by side
    double left = 0, right = 0;
  };

  std::size_t first_choice(const TriedColumns& tried, const std::vector<Found>& found) const;
  static bool is_better(const Ranking::Entry& a, const Ranking::Entry& b);
  void round_ties(TriedColumns& tried, std::span<const Row> rows, std::vector<Found>& found);
  void round(Worker& worker, std::span<const Row> rows, std::span<const Row> present, std::uint32_t f,
             Candidate& candidate, Found& found) const;
  std::vector<Row> present_rows(std::span<const Row> rows, std::uint32_t f) const;
  Candidate search_present(Worker& worker, const OpenNode& node, std::span<const Row> rows, std::uint32_t f,
                           Found& found);
  bool is_reversed(const Worker& worker, std::uint32_t f, const Candidate& c, std::span<const Row> present,
                   const std::vector<std::int64_t>& total) const;
  double mean_index(const std::int64_t* stat, const std::int64_t* less) const;
  std::uint8_t category_side(const SplitRecord& split, double v) const;
  Agreement sum_sides(std::span<const Row> rows, std::span<const std::uint8_t> side) const;
  double open_cut(std::uint32_t f, double threshold) const;
  void place_by(RankedSplit& surrogate, std::span<const Row> rows, std::vector<std::uint8_t>& side) const;
  std::optional<RankedSplit> find_surrogate(Worker& worker, std::uint32_t f, bool reversed, std::span<const Row> rows,
                                            std::span<const std::uint8_t> side) const;
  double find_number_surrogate(Worker& worker, std::uint32_t f, std::span<const Row> rows,
                               std::span<const std::uint8_t> side, const Agreement& present, RankedSplit& split) const;
  double amount_of(Row r) const;
  bool ties_left(const Agreement& base, bool reversed) const;
  double find_category_surrogate(std::uint32_t f, bool ties_left, std::span<const Row> rows,
                                 std::span<const std::uint8_t> side, RankedSplit& split) const;

  Workers workers_;
  const Rules& rules_;
  const Bins& bins_;
  const SurrogateParams& params_;
  Interrupt& interrupt_;
};

}  // namespace spinney
