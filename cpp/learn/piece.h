// Rows of a table that is dealt out: what they answer to those who boost on all of them. See boost/rows.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "boost/rows.h"
#include "learn/leaf_setting.h"

namespace spinney {

// Begins at a multiple of `chunk_rows` of the table: sums are by chunk, and none is shared.
class Piece {
 public:
  // `rows` has a table without columns, whose codes are `coded`; `held_out` has the same, or none.
  Piece(BoostingRows rows, BoostingRows held_out, BoostingParams params, std::shared_ptr<const CodedTable> coded,
        const TablePlace& place);
  ~Piece();

  std::string answer(std::string_view question, Interrupt& interrupt);

  std::size_t first_row() const { return state_.place.first_row; }

 private:
  struct Room;      // memory that the trees of a score have in turn
  struct TreeRows;  // of a tree that is being grown

  void put_state(MessageWriter& to);
  void plant(MessageReader& from, MessageWriter& to, Interrupt& interrupt);
  void divide(MessageReader& from, MessageWriter& to, Interrupt& interrupt);
  void put_cells(TreeRows& tree, std::size_t begin, std::size_t end, MessageWriter& to, Interrupt& interrupt,
                 bool is_root = false);
  void leaf_sums(MessageReader& from, MessageWriter& to);
  void add(MessageReader& from, MessageWriter& to);
  void add_leaves(const std::vector<std::uint32_t>& names, const std::vector<double>& values, std::uint32_t k);
  void out_of_bag(MessageReader& from, MessageWriter& to);
  void put_scores(const std::vector<RowVector<double>>& scores, MessageWriter& to) const;
  TreeRows& tree_of(std::uint32_t k);

  BoostingState state_;
  Gradients gradients_;
  RowSample sample_;
  LeafSetting leaves_;
  std::vector<std::unique_ptr<Room>> rooms_;        // by score, once they are needed
  std::vector<std::unique_ptr<TreeRows>> growing_;  // by score, those that are being grown
  std::vector<RowVector<double>> kept_;             // scores of the rows held out, by score
  std::size_t n_out_of_bag_ = 0;                    // with a weight: these come first
};

}  // namespace spinney
