#include "boost/tiles.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "base/near_tasks.h"
#include "boost/accumulate.h"

namespace spinney {

struct Tiles::Sparse {
  std::uint32_t column = 0, common = 0;
  std::vector<std::uint64_t> off = {};  // bit by row: not at the common code
  std::span<const Row> rows_off = {};   // the same for a listed column

  bool meets(const std::vector<std::uint64_t>& others) const {
    for (std::size_t i = 0; i < off.size(); ++i)
      if (off[i] & others[i]) return true;
    return std::any_of(rows_off.begin(), rows_off.end(), [&](Row r) { return others[r / 64] >> r % 64 & 1; });
  }
  void join(std::vector<std::uint64_t>& others) const {
    for (std::size_t i = 0; i < off.size(); ++i) others[i] |= off[i];
    for (const Row r : rows_off) others[r / 64] |= std::uint64_t{1} << r % 64;
  }
};

namespace {

constexpr std::uint32_t most_shared = 64;  // maximum number of codes of a column that shares a lane
constexpr std::size_t fill_block = 1024;

// Rows by code, with four counters per code so that equal consecutive codes do not wait for each other.
std::array<std::size_t, most_shared> count_codes(const std::uint8_t* codes, std::size_t n) {
  std::array<std::array<std::uint32_t, most_shared>, 4> counts{};
  std::size_t r = 0;
  for (; r + 4 <= n; r += 4)
    for (std::size_t i = 0; i < 4; ++i) ++counts[i][codes[r + i]];
  for (; r < n; ++r) ++counts[0][codes[r]];
  std::array<std::size_t, most_shared> sums{};
  for (const auto& some : counts)
    for (std::size_t code = 0; code < most_shared; ++code) sums[code] += some[code];
  return sums;
}

// A bit mask of the rows with another code, for eight rows at a time.
std::vector<std::uint64_t> bits_unlike(const std::uint8_t* codes, std::size_t n, std::uint8_t common) {
  constexpr std::uint64_t each = 0x0101010101010101, low = 0x7f7f7f7f7f7f7f7f;
  std::vector<std::uint64_t> bits((n + 63) / 64, 0);
  std::size_t r = 0;
  for (; r + 8 <= n; r += 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, codes + r, 8);
    word ^= each * common;
    const std::uint64_t unlike = (((word & low) + low) | word) >> 7 & each;  // 1 in each byte that differs
    bits[r / 64] |= (unlike * 0x0102040810204080 >> 56) << (r % 64);
  }
  for (; r < n; ++r) bits[r / 64] |= static_cast<std::uint64_t>(codes[r] != common) << (r % 64);
  return bits;
}

}  // namespace

Tiles::Tiles(const Coding& coding, const Codes& codes, int n_threads, Interrupt& interrupt)
    : coding_(coding), spill_(codes.spill) {
  places_.resize(coding.columns.size());
  share_lanes(codes, n_threads);
  list_columns(codes);
  cross_lanes(codes, interrupt);
  add_lanes_of_one();
  arrange();
  fill(codes, n_threads, interrupt);
}

std::vector<Tiles::Sparse> Tiles::sparse_columns(const Codes& codes, int n_threads) const {
  std::vector<Sparse> found(coding_.columns.size());
  const double estimated_ns = static_cast<double>(codes.n_rows) * static_cast<double>(found.size());
  parallel_for_if_worth(estimated_ns, found.size(), n_threads, [&](std::size_t f, int) {
    const std::uint32_t n_codes = coding_.columns[f].n_codes;
    if (n_codes < 2 || n_codes > most_shared) return;
    if (codes.is_listed(static_cast<std::uint32_t>(f))) {
      const auto column = static_cast<std::uint32_t>(f);
      found[f] = {column, codes.lists[f].common, {}, codes.rows_off(column)};
      return;
    }
    if (spill_) spill_->touch(codes.n_rows);
    const std::uint8_t* code = codes.narrow(static_cast<std::uint32_t>(f));
    const std::array<std::size_t, most_shared> counts = count_codes(code, codes.n_rows);
    const auto common = static_cast<std::uint32_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
    if (counts[common] * 2 < codes.n_rows) return;
    Sparse& s = found[f];
    s.column = static_cast<std::uint32_t>(f);
    s.common = common;
    s.off = bits_unlike(code, codes.n_rows, static_cast<std::uint8_t>(common));
  });
  std::erase_if(found, [](const Sparse& s) { return s.off.empty() && s.rows_off.empty(); });
  return found;
}

// Each column that may share goes to the first lane where it never collides with another. Listed columns share a lane
// only if that has more rows off their common codes than a lane costs.
void Tiles::share_lanes(const Codes& codes, int n_threads) {
  constexpr std::size_t most_open = 16, least_rows_an_entry = 8;
  struct Open {
    std::vector<std::uint64_t> off;
    std::vector<Sparse*> members;
    std::uint32_t n_codes = 1;
    std::size_t n_listed = 0;  // entries
    bool is_listed = true;
  };
  std::vector<Open> open;
  std::vector<Sparse> sparse = sparse_columns(codes, n_threads);
  for (Sparse& s : sparse) {
    const std::uint32_t n_more = coding_.columns[s.column].n_codes - 1;
    auto at = std::find_if(open.begin(), open.end(),
                           [&](const Open& o) { return o.n_codes + n_more <= 256 && !s.meets(o.off); });
    if (at == open.end()) {
      if (open.size() == most_open) continue;
      open.push_back({std::vector<std::uint64_t>((codes.n_rows + 63) / 64, 0), {}});
      at = open.end() - 1;
    }
    s.join(at->off);
    at->members.push_back(&s);
    at->n_codes += n_more;
    at->n_listed += s.rows_off.size();
    at->is_listed &= s.off.empty();
  }
  for (const Open& o : open) {
    if (o.members.size() < 2 || (o.is_listed && o.n_listed * least_rows_an_entry < codes.n_rows)) continue;
    Lane& lane = lanes_.emplace_back();
    for (const Sparse* s : o.members) {
      places_[s->column] = {Place::Kind::shared, static_cast<std::uint32_t>(lanes_.size() - 1), lane.n_codes,
                            s->common};
      lane.n_codes += coding_.columns[s->column].n_codes - 1;
      lane.columns.push_back(s->column);
    }
    lane.is_of_flags = std::all_of(lane.columns.begin(), lane.columns.end(), [&](std::uint32_t f) {
      const CodedColumn& column = coding_.columns[f];
      return column.n_codes == 2 && !column.has_missing && !column.is_category;
    });
  }
}

void Tiles::list_columns(const Codes& codes) {
  std::vector<std::uint32_t> columns;
  for (std::uint32_t f = 0; f < places_.size(); ++f) {
    if (places_[f].kind != Place::Kind::nowhere || !codes.is_listed(f) || coding_.columns[f].n_codes < 2) continue;
    places_[f].kind = Place::Kind::listed;
    columns.push_back(f);
  }
  listed_ = ListedColumns(coding_, codes, std::move(columns));
}

// Each column with few codes goes to the first lane with enough free codes, large ones first: a row then needs fewer
// additions. Summing over the other columns of a lane costs a node as much as some rows, so small tables have no such
// lanes.
void Tiles::cross_lanes(const Codes& codes, Interrupt& interrupt) {
  constexpr int most_refusals = 16;  // of a lane, because each attempt takes time
  const auto most = static_cast<std::uint32_t>(std::min<std::size_t>(CrossedLane::most_codes, codes.n_rows / 128));
  const auto n_codes = [&](std::uint32_t f) { return coding_.columns[f].n_codes; };
  std::vector<std::uint32_t> order;
  for (std::uint32_t f = 0; f < places_.size(); ++f)
    if (places_[f].kind == Place::Kind::nowhere && n_codes(f) > 1 && n_codes(f) <= most / 2) order.push_back(f);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return n_codes(a) > n_codes(b); });
  struct Open {
    CrossedLane lane;
    int n_refused = 0;
  };
  std::vector<Open> open;
  for (const std::uint32_t f : order) {
    const auto takes = [&](Open& o) {
      if (o.lane.n_codes() * n_codes(f) > most && o.n_refused >= most_refusals) return false;
      interrupt.check();
      const bool taken = o.lane.add(f, most);
      o.n_refused += !taken;
      return taken;
    };
    if (std::none_of(open.begin(), open.end(), takes)) open.push_back({CrossedLane(coding_, codes, f)});
  }
  for (Open& o : open) {
    const std::vector<std::uint32_t>& columns = o.lane.columns();
    if (columns.size() < 2) continue;
    for (const std::uint32_t f : columns)
      places_[f] = {Place::Kind::crossed, static_cast<std::uint32_t>(lanes_.size())};
    const std::uint32_t n = o.lane.n_codes();
    lanes_.push_back({.columns = columns, .n_codes = n, .is_wide = n > 256, .crossed = std::move(o.lane)});
  }
}

void Tiles::add_lanes_of_one() {
  for (std::uint32_t f = 0; f < places_.size(); ++f) {
    if (places_[f].kind != Place::Kind::nowhere) continue;
    places_[f] = {Place::Kind::alone, static_cast<std::uint32_t>(lanes_.size())};
    lanes_.push_back({.columns = {f}, .n_codes = coding_.columns[f].n_codes, .is_wide = coding_.columns[f].is_wide});
  }
}

// Narrow tiles hold lanes of similar size, or others where rows have spare bytes. A lane with one code needs no
// position.
std::vector<Tiles::Tile> Tiles::arranged(bool all_wide) const {
  constexpr std::size_t most_lanes = 32, most_cells = 1 << 14;  // cells: at most half a megabyte, usually far less
  constexpr std::uint32_t least_shift = 4;
  const auto shift_of = [&](std::uint32_t l) {
    return std::max(least_shift, static_cast<std::uint32_t>(std::bit_width(lanes_[l].n_codes - 1)));
  };
  std::vector<std::uint32_t> order;
  for (std::uint32_t l = 0; l < lanes_.size(); ++l)
    if (lanes_[l].n_codes > 1) order.push_back(l);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return shift_of(a) > shift_of(b); });
  std::vector<Tile> tiles;
  const auto fits = [&](const Lane& lane, std::uint32_t shift) {
    if (tiles.empty() || tiles.back().lanes.size() == most_lanes) return false;
    const Tile& tile = tiles.back();
    if (tile.is_wide != (all_wide || lane.is_wide)) return false;
    if (tile.is_wide) return tile.n_cells + lane.n_codes <= most_cells;
    return tile.shift <= shift + 2 || !std::has_single_bit(tile.lanes.size());
  };
  for (const std::uint32_t l : order) {
    const Lane& lane = lanes_[l];
    if (!fits(lane, shift_of(l))) {
      Tile& tile = tiles.emplace_back();
      tile.is_wide = all_wide || lane.is_wide;
      tile.shift = shift_of(l);
    }
    Tile& tile = tiles.back();
    tile.lanes.push_back(l);
    tile.n_cells += tile.is_wide ? lane.n_codes : std::size_t{1} << tile.shift;
  }
  return tiles;
}

// Wide tiles take twice the memory and pay if there are fewer of them: the cost per row is by tile rather than by lane.
void Tiles::arrange() {
  tiles_ = arranged(false);
  std::vector<Tile> all_wide = arranged(true);
  if (all_wide.size() < tiles_.size()) tiles_ = std::move(all_wide);
  for (Tile& tile : tiles_) {
    tile.stride = std::max<std::size_t>(4, std::bit_ceil(tile.lanes.size()));  // no row crosses a cache line
    tile.first_cell = n_cells_;
    for (const std::uint32_t l : tile.lanes) {
      lanes_[l].first_cell = n_cells_;
      n_cells_ += tile.is_wide ? lanes_[l].n_codes : std::size_t{1} << tile.shift;
    }
    for (const std::uint32_t l : tile.lanes) {
      lanes_[l].first_column_cell = n_cells_;
      if (!lanes_[l].crossed) continue;
      for (const std::uint32_t f : lanes_[l].columns) {
        places_[f].first_cell = n_cells_;
        n_cells_ += coding_.columns[f].n_codes;
      }
    }
    tile.end_cell = n_cells_;
  }
}

template <class Code>
void Tiles::fill_lane(const Codes& codes, const Lane& lane, std::size_t first_cell, std::size_t begin, std::size_t end,
                      Code* out, std::size_t stride) const {
  if (lane.crossed) {
    std::array<std::uint16_t, fill_block> ours;
    lane.crossed->read(begin, end, ours.data());
    for (std::size_t r = begin; r < end; ++r) out[r * stride] = static_cast<Code>(first_cell + ours[r - begin]);
    return;
  }
  for (std::size_t r = begin; r < end; ++r) out[r * stride] = static_cast<Code>(first_cell);
  for (const std::uint32_t f : lane.columns) {
    const Place& place = places_[f];
    if (codes.is_listed(f)) {
      const std::span<const Row> rows = codes.rows_off(f);
      const std::span<const std::uint16_t> off = codes.codes_off(f);
      for (auto i = static_cast<std::size_t>(std::lower_bound(rows.begin(), rows.end(), begin) - rows.begin());
           i < rows.size() && rows[i] < end; ++i)
        out[rows[i] * stride] = static_cast<Code>(first_cell + place.first + off[i] - (off[i] > place.common));
      continue;
    }
    const std::uint8_t* from = codes.narrow(f);
    if (place.kind == Place::Kind::shared) {
      for (std::size_t r = begin; r < end; ++r) {
        const std::uint32_t code = from[r];
        if (code == place.common) continue;
        out[r * stride] = static_cast<Code>(first_cell + place.first + code - (code > place.common));
      }
    } else if (coding_.columns[f].is_wide) {
      const std::uint16_t* wide = codes.wide(f);
      for (std::size_t r = begin; r < end; ++r) out[r * stride] = static_cast<Code>(first_cell + wide[r]);
    } else {
      for (std::size_t r = begin; r < end; ++r) out[r * stride] = static_cast<Code>(first_cell + from[r]);
    }
  }
}

void Tiles::fill(const Codes& codes, int n_threads, Interrupt& interrupt) {
  constexpr std::size_t block = fill_block;
  for (Tile& tile : tiles_)
    tile.bytes = LargeArray<std::uint8_t>(codes.n_rows * tile.stride * (tile.is_wide ? 2 : 1) + 8, spill_);
  const std::size_t n_tile_bytes = std::accumulate(tiles_.begin(), tiles_.end(), std::size_t{0},
                                                   [](auto n, auto& t) { return n + t.stride * (t.is_wide ? 2 : 1); });
  const double estimated_ns = static_cast<double>(codes.n_rows) * static_cast<double>(lanes_.size());
  parallel_for_near_if_worth(estimated_ns, (codes.n_rows + block - 1) / block, n_threads, [&](std::size_t b, int) {
    interrupt.check();
    const std::size_t begin = b * block, end = std::min(codes.n_rows, begin + block);
    if (spill_) spill_->touch((end - begin) * (n_tile_bytes + 2 * coding_.columns.size()));
    for (Tile& tile : tiles_)
      for (std::size_t j = 0; j < tile.lanes.size(); ++j) {
        const Lane& lane = lanes_[tile.lanes[j]];
        std::uint8_t* bytes = tile.bytes.data();
        if (tile.is_wide)
          fill_lane(codes, lane, lane.first_cell - tile.first_cell, begin, end,
                    reinterpret_cast<std::uint16_t*>(bytes) + j, tile.stride);
        else
          fill_lane(codes, lane, 0, begin, end, bytes + j, tile.stride);
      }
  });
  for (Lane& lane : lanes_)
    if (lane.crossed) lane.crossed->forget_rows();
  for (const Tile& tile : tiles_) tile.bytes.seal();
}

void Tiles::unshare(const Place& place, std::uint32_t n_codes, const Packed* lane, Packed total, Packed* cells) {
  for (std::uint32_t code = 0; code < n_codes; ++code) {
    if (code == place.common) continue;
    cells[code] = lane[place.first + code - (code > place.common)];
    total -= cells[code];
  }
  cells[place.common] = total;
}

const Packed* Tiles::cells(std::uint32_t column, const Packed* histogram, Packed total,
                           std::vector<Packed>& buffer) const {
  const Place& place = places_[column];
  const Packed* lane = histogram + lanes_[place.lane].first_cell;
  if (place.kind == Place::Kind::alone) return lane;
  if (place.kind == Place::Kind::crossed) return histogram + place.first_cell;
  const std::uint32_t n_codes = coding_.columns[column].n_codes;
  buffer.resize(std::max<std::size_t>(buffer.size(), n_codes));
  unshare(place, n_codes, lane, total, buffer.data());
  return buffer.data();
}

void Tiles::find_in_use(const std::vector<std::uint8_t>& in_use, std::vector<std::uint32_t>& tiles,
                        std::vector<std::uint32_t>& lanes) const {
  for (std::uint32_t t = 0; t < n_tiles(); ++t) {
    const std::size_t n_before = lanes.size();
    for (const std::uint32_t l : tiles_[t].lanes) {
      const std::vector<std::uint32_t>& columns = lanes_[l].columns;
      if (std::any_of(columns.begin(), columns.end(), [&](std::uint32_t f) { return in_use[f]; })) lanes.push_back(l);
    }
    if (lanes.size() > n_before) tiles.push_back(t);
  }
}

Tiles::Cells Tiles::cells_of_tile(std::uint32_t tile) const {
  const Tile& t = tiles_[tile];
  return {t.first_cell, t.end_cell};
}

Tiles::Cells Tiles::cells_of_lane(std::uint32_t lane) const {
  return {lanes_[lane].first_cell, lanes_[lane].first_cell + lanes_[lane].n_codes};
}

Tiles::Cells Tiles::cells_of_columns(std::uint32_t lane) const {
  const Lane& l = lanes_[lane];
  std::size_t end = l.first_column_cell;
  if (l.crossed)
    for (const std::uint32_t f : l.columns) end += coding_.columns[f].n_codes;
  return {l.first_column_cell, end};
}

void Tiles::sum_up(std::uint32_t lane, Packed* histogram) const {
  const Lane& l = lanes_[lane];
  if (l.crossed) l.crossed->sum_up(histogram + l.first_cell, histogram + l.first_column_cell);
}

// Announces reads of rows of a tile that is in a file.
void Tiles::touch(const Tile& tile, const Row* rows, std::size_t n) const {
  if (spill_ && n > 0)
    spill_->touch_some(n, tile.stride * (tile.is_wide ? 2 : 1) * (std::size_t{rows[n - 1]} - rows[0] + 1));
}

// `bytes` are the codes from row 0 on.
void Tiles::add(const Tile& tile, const std::uint8_t* bytes, const Packed* pairs, const Row* rows, std::size_t n,
                Packed* histogram, Operation operation) {
  static constexpr decltype(&add_narrow<8>) by_shift[] = {add_narrow<4>, add_narrow<5>, add_narrow<6>, add_narrow<7>,
                                                          add_narrow<8>};
  Packed* cells = histogram + tile.first_cell;
  const std::size_t n_lanes = tile.lanes.size();
  if (tile.is_wide)
    add_wide(reinterpret_cast<const std::uint16_t*>(bytes), tile.stride, n_lanes, pairs, rows, n, operation, cells);
  else
    by_shift[tile.shift - 4](bytes, tile.stride, n_lanes, pairs, rows, n, operation, cells);
}

void Tiles::add_rows(std::uint32_t t, const Packed* pairs, const Row* rows, std::size_t n, Packed* histogram,
                     Operation operation) const {
  const Tile& tile = tiles_[t];
  const std::size_t chunk = spill_ ? std::size_t{1} << 16 : n;  // pages may be released between chunks
  for (std::size_t begin = 0; begin < n; begin += chunk) {
    const std::size_t m = std::min(chunk, n - begin);
    touch(tile, rows + begin, m);
    add(tile, tile.bytes.data(), pairs, rows + begin, m, histogram, operation);
  }
}

void Tiles::add_rows(std::uint32_t t, const std::uint8_t* codes, std::size_t first, const Packed* pairs,
                     const Row* rows, std::size_t n, Packed* histogram) const {
  add(tiles_[t], from_row_0(codes, first * bytes_a_row(t)), pairs, rows, n, histogram, Operation::add);
}

template <class Code>
void Tiles::add_some(const Tile& tile, const Code* codes, std::span<const std::uint32_t> at, const Packed* pairs,
                     const Row* rows, std::size_t n, Packed* histogram) const {
  static constexpr decltype(&add_some_lanes<1, Code>) by_number[] = {add_some_lanes<1, Code>, add_some_lanes<2, Code>,
                                                                     add_some_lanes<3, Code>, add_some_lanes<4, Code>};
  constexpr std::size_t most = std::size(by_number);
  for (std::size_t begin = 0; begin < at.size(); begin += most) {
    const std::size_t n_lanes = std::min(most, at.size() - begin);
    std::array<Packed*, most> cells{};
    for (std::size_t j = 0; j < n_lanes; ++j)  // wide codes are cell numbers within the tile
      cells[j] = histogram + (tile.is_wide ? tile.first_cell : lanes_[tile.lanes[at[begin + j]]].first_cell);
    by_number[n_lanes - 1](codes, tile.stride, at.data() + begin, cells.data(), pairs, rows, n);
  }
}

void Tiles::add_lanes(std::uint32_t t, std::span<const std::uint32_t> at, const Packed* pairs, const Row* rows,
                      std::size_t n, Packed* histogram) const {
  const Tile& tile = tiles_[t];
  const std::uint8_t* bytes = tile.bytes.data();
  if (tile.is_wide)
    add_some(tile, reinterpret_cast<const std::uint16_t*>(bytes), at, pairs, rows, n, histogram);
  else
    add_some(tile, bytes, at, pairs, rows, n, histogram);
}

void Tiles::read(std::uint32_t t, std::size_t begin, std::size_t end, std::uint8_t* to) const {
  tiles_[t].bytes.read(begin * bytes_a_row(t), (end - begin) * bytes_a_row(t), to);
}

void Tiles::fetch_ahead(std::uint32_t t, std::size_t begin, std::size_t end) const {
  tiles_[t].bytes.fetch_ahead(begin * bytes_a_row(t), (end - begin) * bytes_a_row(t));
}

void Tiles::add_eights(std::uint32_t t, const Packed* pairs, const Row* rows, std::size_t n, Packed* eights) const {
  const Tile& tile = tiles_[t];
  const BoostKernels& kernels = boost_kernels();
  Packed* cells = eights + 8 * tile.first_cell;
  const std::uint8_t* bytes = tile.bytes.data();
  touch(tile, rows, n);
  if (tile.is_wide)
    kernels.add_wide_eights(reinterpret_cast<const std::uint16_t*>(bytes), tile.stride, tile.lanes.size(), 0, rows, n,
                            pairs, cells);
  else
    kernels.add_eights(bytes, tile.stride, tile.lanes.size(), std::size_t{1} << tile.shift, rows, n, pairs, cells);
}

}  // namespace spinney
