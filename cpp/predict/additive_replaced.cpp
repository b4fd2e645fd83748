// Sums of trees for rows with some columns replaced by the values of many points.
#include <algorithm>
#include <array>
#include <vector>

#include "base/pool.h"
#include "predict/additive.h"

namespace spinney {

namespace {

constexpr std::size_t points_per_pass = 64;

struct alignas(64) RowLine {
  std::byte bytes[64];
};

}  // namespace

// Points that a tree sends the same way form a group, represented by one of them.
struct Additive::Replaced {
  std::size_t first, n;             // in the table of points
  std::vector<std::size_t> slots;   // of replaced columns
  std::vector<std::int8_t> codes;   // by slot, many_rows each
  std::vector<std::uint8_t> kind;   // by tree and point
  std::vector<std::uint8_t> stand;  // by tree and group: the representative point
  std::vector<std::uint8_t> n_kinds;
};

Additive::Replaced Additive::read_points(const Table& points, std::size_t first, std::size_t last,
                                         std::span<const std::uint32_t> columns) const {
  const std::size_t n = last - first, n_trees = forest_.n_trees();
  Replaced found{first, n, {}, std::vector<std::int8_t>(slots_.size() * many_rows), {}, {}, {}};
  std::vector<std::uint8_t> is_replaced(slots_.size(), 0);
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    is_replaced[s] = std::find(columns.begin(), columns.end(), slots_[s].column) != columns.end();
    if (is_replaced[s]) found.slots.push_back(s);
  }
  code_block(points, first, n, many_rows, found.codes.data());
  found.kind.resize(n_trees * points_per_pass, 0);
  found.stand.resize(n_trees * points_per_pass, 0);
  for (std::size_t t = 0; t < n_trees; ++t) {
    std::uint8_t* kind = found.kind.data() + t * points_per_pass;
    std::uint8_t* stand = found.stand.data() + t * points_per_pass;
    std::size_t n_kinds = 1;
    const MaskTree tree = mask_tree(t);
    const std::int8_t* table = tree.tables;
    for (std::size_t i = 0; i < tree.n_nodes; ++i) {
      const MaskNode& node = tree.nodes[i];
      const std::int8_t* own = node.is_category ? table : nullptr;
      if (node.is_category) table += 256;
      if (!is_replaced[node.slot]) continue;
      std::array<std::int16_t, 2 * points_per_pass> renumbered;
      renumbered.fill(-1);
      std::int16_t n_next = 0;
      for (std::size_t p = 0; p < n; ++p) {
        const std::int8_t code = found.codes[node.slot * many_rows + p];
        const bool right = (own != nullptr ? own[static_cast<std::uint8_t>(code)] : code) > node.cut;
        std::int16_t& id = renumbered[2 * std::size_t{kind[p]} + right];
        if (id < 0) {
          stand[n_next] = static_cast<std::uint8_t>(p);
          id = n_next++;
        }
        kind[p] = static_cast<std::uint8_t>(id);
      }
      n_kinds = static_cast<std::size_t>(n_next);
    }
    found.n_kinds.push_back(static_cast<std::uint8_t>(n_kinds));
  }
  return found;
}

void Additive::add_points(const Replaced& points, const Table& table, std::size_t begin, double* out) const {
  const std::size_t n = std::min(many_rows, table.n_rows - begin), n_lines = n_leaf_lines + n_places_ * lines_per_place;
  const std::size_t n_bytes = n_lines * line_rows + slots_.size() * many_rows;
  std::vector<RowLine> buffer(n_bytes / sizeof(RowLine));
  auto* lines = reinterpret_cast<std::uint8_t*>(buffer.data());
  auto* codes = reinterpret_cast<std::int8_t*>(lines + n_lines * line_rows);
  for (std::size_t k = 0; k < n_leaves_; ++k)
    std::fill_n(lines + k * line_rows, line_rows, static_cast<std::uint8_t>(k));
  code_block(table, begin, n, many_rows, codes);
  std::vector<double> sums(points.n * n_outputs_ * many_rows, 0.0), values(points_per_pass * many_rows);
  for (std::size_t t = 0; t < forest_.n_trees(); ++t) {
    const std::size_t n_kinds = points.n_kinds[t];
    std::fill_n(values.begin(), n_kinds * many_rows, 0.0);
    for (std::size_t c = 0; c < n_kinds; ++c) {
      for (const std::size_t s : points.slots)
        std::fill_n(codes + s * many_rows, many_rows,
                    points.codes[s * many_rows + points.stand[t * points_per_pass + c]]);
      mask_kernels().many(mask_tree(t), codes, lines, values.data() + c * many_rows);
    }
    for (std::size_t p = 0; p < points.n; ++p) {
      const double* value = values.data() + points.kind[t * points_per_pass + p] * many_rows;
      double* sum = sums.data() + (p * n_outputs_ + t % n_outputs_) * many_rows;
      for (std::size_t i = 0; i < many_rows; ++i) sum[i] += value[i];
    }
  }
  for (std::size_t p = 0; p < points.n; ++p)
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < n_outputs_; ++k)
        out[((points.first + p) * table.n_rows + begin + i) * n_outputs_ + k] +=
            sums[(p * n_outputs_ + k) * many_rows + i];
}

bool Additive::add_replaced(const Table& table, const Table& points, std::span<const std::uint32_t> columns,
                            int n_threads, Interrupt& interrupt, double* out) const {
  if (!is_masked_) return false;
  for (std::size_t first = 0; first < points.n_rows; first += points_per_pass) {
    const Replaced some = read_points(points, first, std::min(points.n_rows, first + points_per_pass), columns);
    const std::size_t n_blocks = (table.n_rows + many_rows - 1) / many_rows;
    const double estimated_ns = 15.0 * static_cast<double>(table.n_rows) * static_cast<double>(forest_.n_trees());
    parallel_for_if_worth(estimated_ns, n_blocks, n_threads, [&](std::size_t block, int) {
      interrupt.check();
      add_points(some, table, block * many_rows, out);
    });
  }
  return true;
}

}  // namespace spinney
