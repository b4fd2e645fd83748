// A lane that holds several columns with few codes: it has one code per combination that occurs.
#pragma once

#include <cstdint>
#include <vector>

#include "boost/codes.h"
#include "boost/kernels.h"

namespace spinney {

class CrossedLane {
 public:
  static constexpr std::uint32_t most_codes = 1024;

  // `codes` must stay valid until the last row is read.
  CrossedLane(const Coding& coding, const Codes& codes, std::uint32_t column);

  // Adds a column unless there would be more than `most` combinations; at most most_codes.
  bool add(std::uint32_t column, std::uint32_t most);

  const std::vector<std::uint32_t>& columns() const { return columns_; }
  std::uint32_t n_codes() const { return n_codes_; }

  // The lane's codes of some rows.
  void read(std::size_t begin, std::size_t end, std::uint16_t* out) const;
  void forget_rows() { rows_ = {}; }

  // The cells of the columns, one column after the other, as sums of the lane's cells.
  void sum_up(const Packed* lane, Packed* cells) const;

 private:
  // The effect of adding a column. New codes are ordered by the previous code, then by the column's code.
  struct AddedColumn {
    std::vector<std::uint16_t> ends;          // by previous code: one past the last new code derived from it
    std::vector<std::uint16_t> order;         // new codes, ordered by the column's code
    std::vector<std::uint16_t> ends_ordered;  // by code of the column: end of its range in `order`
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
  std::vector<AddedColumn> added_columns_;
  std::vector<std::uint16_t> rows_;  // codes by row; empty while there is one column
};

}  // namespace spinney
