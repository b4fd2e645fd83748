#include "boost/row_partitioner.h"

#include <algorithm>

#include "base/near_tasks.h"

namespace spinney {

namespace {

constexpr std::size_t chunk = 1 << 13;

// In this order, so that a cut separates the marks whichever side the common code takes.
constexpr std::uint8_t marked_left = 0, unmarked = 1, marked_right = 2;

}  // namespace

RowPartitioner::RowPartitioner(const Coding& coding, const Codes& codes, int n_threads)
    : coding_(coding),
      codes_(codes),
      spare_(static_cast<std::size_t>(n_threads)),
      marks_(static_cast<std::size_t>(n_threads)) {}

void RowPartitioner::part(std::span<NodeRows> nodes, ThreadTeam team) {
  std::vector<Chunk> chunks;
  const std::size_t size = team.n_threads == 1 ? SIZE_MAX : chunk;
  const auto add_chunks = [&](std::size_t node) {
    for (std::size_t begin = 0, n = nodes[node].n; begin < n; begin += std::min(size, n - begin))
      chunks.push_back({node, begin, begin + std::min(size, n - begin), 0});
  };
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (!codes_.is_listed(nodes[i].split->feature)) add_chunks(i);
  part_chunks(nodes, chunks, nullptr, team);
  std::vector<std::uint8_t>& marks = marks_[static_cast<std::size_t>(team.worker)];
  for (std::size_t i = 0; i < nodes.size(); ++i) {  // marks are those of one split
    const BoostSplit& split = *nodes[i].split;
    if (!codes_.is_listed(split.feature)) continue;
    chunks.clear();
    add_chunks(i);
    mark(split, marks, [](bool goes_left) { return goes_left ? marked_left : marked_right; });
    part_chunks(nodes, chunks, marks.data(), team);
    mark(split, marks, [](bool) { return unmarked; });
  }
}

// Chunks of nodes that have several are partitioned in `joined_`.
void RowPartitioner::part_chunks(std::span<NodeRows> nodes, std::span<Chunk> chunks, const std::uint8_t* marks,
                                 ThreadTeam team) {
  const auto partition_rows = [&](Chunk& c, Row* rows, int worker) {
    c.n_left = partition_serial(*nodes[c.node].split, rows, c.end - c.begin, marks, worker);
  };
  if (team.n_threads == 1) {
    for (Chunk& c : chunks) {
      partition_rows(c, nodes[c.node].rows, team.worker);
      nodes[c.node].n_left = c.n_left;
    }
    return;
  }
  const std::vector<std::size_t> first = first_joined(nodes, chunks);
  parallel_for_near(chunks.size(), team.n_threads, [&](std::size_t i, int worker) {
    Chunk& c = chunks[i];
    Row* rows = nodes[c.node].rows + c.begin;
    if (first[c.node] != alone) rows = copy_to_joined(c, first[c.node], rows);
    partition_rows(c, rows, worker);
  });
  move_back(nodes, chunks, first, team.n_threads);
}

void RowPartitioner::join(std::span<NodeRows> nodes, std::span<const Chunk> chunks, int n_threads) {
  const std::vector<std::size_t> first = first_joined(nodes, chunks);
  parallel_for_near(chunks.size(), n_threads, [&](std::size_t i, int) {
    const Chunk& c = chunks[i];
    if (first[c.node] != alone) copy_to_joined(c, first[c.node], nodes[c.node].rows + c.begin);
  });
  move_back(nodes, chunks, first, n_threads);
}

// Assigns each node with several chunks a range of `joined_`, and returns the beginnings, or `alone`, by node.
std::vector<std::size_t> RowPartitioner::first_joined(std::span<const NodeRows> nodes, std::span<const Chunk> chunks) {
  std::vector<std::size_t> first(nodes.size(), alone);
  std::size_t n_joined = 0;
  for (const Chunk& c : chunks) {
    if (first[c.node] != alone || c.end - c.begin == nodes[c.node].n) continue;
    first[c.node] = n_joined;
    n_joined += nodes[c.node].n;
  }
  if (joined_.size() < n_joined) joined_.resize(n_joined);
  return first;
}

Row* RowPartitioner::copy_to_joined(const Chunk& chunk, std::size_t first, const Row* rows) {
  Row* to = joined_.data() + first + chunk.begin;
  std::copy_n(rows, chunk.end - chunk.begin, to);
  return to;
}

// Sums up `n_left`, and moves the parts of chunks to their places.
void RowPartitioner::move_back(std::span<NodeRows> nodes, std::span<const Chunk> chunks,
                               const std::vector<std::size_t>& first, int n_threads) {
  struct Move {
    const Chunk* chunk;
    std::size_t left_at, right_at;  // among the node's rows
  };
  for (const Chunk& c : chunks) nodes[c.node].n_left += c.n_left;
  std::vector<Move> moves;
  std::size_t left = 0, right = 0, previous = SIZE_MAX;
  for (const Chunk& c : chunks) {
    if (first[c.node] == alone) continue;
    if (c.node != previous) {
      previous = c.node;
      left = 0;
      right = nodes[c.node].n_left;
    }
    moves.push_back({&c, left, right});
    left += c.n_left;
    right += c.end - c.begin - c.n_left;
  }
  parallel_for_near(moves.size(), n_threads, [&](std::size_t i, int) {
    const Chunk& c = *moves[i].chunk;
    const Row* from = joined_.data() + first[c.node] + c.begin;
    Row* rows = nodes[c.node].rows;
    std::copy_n(from, c.n_left, rows + moves[i].left_at);
    std::copy_n(from + c.n_left, c.end - c.begin - c.n_left, rows + moves[i].right_at);
  });
}

// Listed columns are number columns.
bool RowPartitioner::goes_left(const BoostSplit& split, std::uint32_t code) const {
  const CodedColumn& column = coding_.columns[split.feature];
  return column.has_missing && code + 1 == column.n_codes ? split.missing_left : code <= split.cut;
}

// Marks the rows that a listed column sends to the other side than its common code.
template <class Side>
void RowPartitioner::mark(const BoostSplit& split, std::vector<std::uint8_t>& marks, Side&& side) const {
  if (marks.empty()) marks.assign(codes_.n_rows + 4, unmarked);
  const bool common_left = goes_left(split, codes_.lists[split.feature].common);
  const std::span<const Row> rows = codes_.rows_off(split.feature);
  const std::span<const std::uint16_t> off = codes_.codes_off(split.feature);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool is_left = goes_left(split, off[i]);
    if (is_left != common_left) marks[rows[i]] = side(is_left);
  }
}

Row* RowPartitioner::spare(std::size_t n, int worker) {
  std::vector<Row>& spare = spare_[static_cast<std::size_t>(worker)];
  if (spare.size() < n + 16) spare.resize(n + 16);
  return spare.data();
}

std::size_t RowPartitioner::partition_serial(const BoostSplit& split, Row* rows, std::size_t n,
                                             const std::uint8_t* marks, int worker) {
  codes_.touch({rows, n});
  if (marks == nullptr) return partition_by(codes_.narrow(split.feature), split, rows, n, worker);
  const bool common_left = goes_left(split, codes_.lists[split.feature].common);
  return boost_kernels().part(rows, n, marks, common_left ? unmarked : marked_left, UINT32_MAX, spare(n, worker));
}

std::size_t RowPartitioner::partition_by(const std::uint8_t* codes, const BoostSplit& split, Row* rows, std::size_t n,
                                         int worker) {
  const CodedColumn& column = coding_.columns[split.feature];
  if (column.is_category || column.is_wide) return partition_by_bits(codes, split, rows, n, spare(n, worker));
  return boost_kernels().part(rows, n, codes, split.cut, split.missing_left ? column.n_codes - 1 : UINT32_MAX,
                              spare(n, worker));
}

std::size_t RowPartitioner::partition_by_bits(const std::uint8_t* codes, const BoostSplit& split, Row* rows,
                                              std::size_t n, Row* spare) const {
  const CodedColumn& column = coding_.columns[split.feature];
  std::vector<std::uint32_t> bits(std::max<std::size_t>(16, column.n_codes / 32 + 1), 0);
  const auto set = [&](std::uint32_t code) { bits[code / 32] |= 1u << code % 32; };
  if (column.is_category)
    for (const std::uint32_t code : split.left_codes) set(code);
  else
    for (std::uint32_t code = 0; code <= split.cut; ++code) set(code);
  if (column.has_missing && split.missing_left) set(column.n_codes - 1);
  if (column.is_wide)
    return boost_kernels().partition_wide_by_bits(rows, n, reinterpret_cast<const std::uint16_t*>(codes), bits.data(),
                                                  column.n_codes, spare);
  return boost_kernels().partition_by_bits(rows, n, codes, bits.data(), column.n_codes, spare);
}

}  // namespace spinney
