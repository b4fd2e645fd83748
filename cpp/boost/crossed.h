// A lane of several columns of few codes, with one for each combination of theirs that occurs.
#pragma once

#include <cstdint>
#include <vector>

#include "boost/codes.h"
#include "boost/kernels.h"

namespace spinney {

class CrossedLane {
 public:
  static constexpr std::uint32_t most_codes = 1024;

  // `codes` are needed until the last row is read.
  CrossedLane(const Coding& coding, const Codes& codes, std::uint32_t column);

  // Takes one more column unless there were more than `most` combinations then; at most most_codes.
  bool add(std::uint32_t column, std::uint32_t most);

  const std::vector<std::uint32_t>& columns() const { return columns_; }
  std::uint32_t n_codes() const { return n_codes_; }

  // The lane's codes of some rows.
  void read(std::size_t begin, std::size_t end, std::uint16_t* out) const;
  void forget_rows() { rows_ = {}; }

  // The columns' cells, one column after the other, as sums of those of the lane.
  void sum_up(const Packed* lane, Packed* cells) const;

 private:
  // What adding a column did. Codes are numbered by the code that there was before, then by the column's.
  struct Addition {
    std::vector<std::uint16_t> ends;          // by code before: the last of those that it has become, plus one
    std::vector<std::uint16_t> order;         // codes, by the column's
    std::vector<std::uint16_t> ends_ordered;  // by code of the column
  };

  std::uint32_t n_codes_of(std::uint32_t column) const { return coding_->columns[column].n_codes; }
  void read_column(std::uint32_t column, std::size_t begin, std::size_t end, std::uint16_t* out) const;
  template <class Body>
  void for_each_key(std::uint32_t column, Body&& body) const;
  bool may_be_few(std::uint32_t column, std::uint32_t most) const;
  std::vector<std::uint8_t> find_keys(std::uint32_t column, std::uint32_t most) const;

  const Coding* coding_;
  const Codes* codes_;
  std::vector<std::uint32_t> columns_;
  std::uint32_t n_codes_;
  std::vector<Addition> additions_;
  std::vector<std::uint16_t> rows_;  // codes by row; empty while there is one column
};

}  // namespace spinney
