// Some rows of a table that is partitioned among processes: they answer the messages of whoever boosts on all of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "learn/leaf_setting.h"
#include "learn/partition_rows.h"

namespace spinney {

// Begins at a multiple of `chunk_rows` of the table: sums are by chunk, and none is shared.
class Partition {
 public:
  // `rows` has a table without columns, whose codes are `coded`; `held_out` has the same, or none.
  Partition(BoostingRows rows, BoostingRows held_out, BoostingParams params, std::shared_ptr<const CodedTable> coded,
            const TablePlace& place);

  std::string answer(std::string_view request, Interrupt& interrupt);

 private:
  void put_state(MessageWriter& to);
  void add(MessageReader& from, MessageWriter& to);
  void out_of_bag(MessageReader& from, MessageWriter& to);
  void put_scores(const std::vector<RowVector<double>>& scores, MessageWriter& to) const;

  BoostingState state_;
  Gradients gradients_;
  RowSample sample_;
  LeafSetting leaves_;
  PartitionRows local_;
  std::vector<RowVector<double>> kept_;  // scores of the rows held out, by score
};

}  // namespace spinney
