#include "boost/row_partitioner.h"

#include <algorithm>

#include "base/pool.h"

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

std::size_t RowPartitioner::part(const BoostSplit& split, Row* rows, std::size_t n, int n_threads, int worker) {
  std::vector<std::uint8_t>& marks = marks_[static_cast<std::size_t>(worker)];
  const bool is_listed = codes_.is_listed(split.feature);
  if (is_listed) mark(split, marks, [](bool goes_left) { return goes_left ? marked_left : marked_right; });
  const auto partition_rows = [&](Row* some, std::size_t m, int w) {
    return partition_serial(split, some, m, is_listed ? marks.data() : nullptr, w);
  };
  std::size_t n_left = 0;
  if (n_threads == 1 || n < 2 * chunk) {
    n_left = partition_rows(rows, n, worker);
  } else {
    std::vector<std::size_t> lefts((n + chunk - 1) / chunk), ends(lefts.size());
    parallel_for(lefts.size(), n_threads, [&](std::size_t c, int w) {
      ends[c] = std::min(n, (c + 1) * chunk);
      lefts[c] = partition_rows(rows + c * chunk, ends[c] - c * chunk, w);
    });
    n_left = join(rows, ends, lefts, n_threads);
  }
  if (is_listed) mark(split, marks, [](bool) { return unmarked; });
  return n_left;
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

std::size_t RowPartitioner::join(Row* rows, std::span<const std::size_t> ends, std::span<const std::size_t> n_left,
                                 int n_threads) {
  const std::size_t n_chunks = ends.size(), n = n_chunks == 0 ? 0 : ends.back();
  const auto begin_of = [&](std::size_t c) { return c == 0 ? 0 : ends[c - 1]; };
  std::size_t total = 0;
  for (const std::size_t k : n_left) total += k;
  if (joined_.size() < n) joined_.resize(n);
  std::vector<std::size_t> left_at(n_chunks), right_at(n_chunks);
  std::size_t l = 0, r = total;
  for (std::size_t c = 0; c < n_chunks; ++c) {
    left_at[c] = l;
    right_at[c] = r;
    l += n_left[c];
    r += ends[c] - begin_of(c) - n_left[c];
  }
  parallel_for(n_chunks, n_threads, [&](std::size_t c, int) {
    const Row* from = rows + begin_of(c);
    std::copy_n(from, n_left[c], joined_.data() + left_at[c]);
    std::copy(from + n_left[c], static_cast<const Row*>(rows) + ends[c], joined_.data() + right_at[c]);
  });
  parallel_for(n_chunks, n_threads, [&](std::size_t c, int) {
    std::copy_n(joined_.data() + begin_of(c), ends[c] - begin_of(c), rows + begin_of(c));
  });
  return total;
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
