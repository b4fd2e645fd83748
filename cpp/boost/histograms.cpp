#include "boost/histograms.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>

#include "base/near_tasks.h"

namespace spinney {

namespace {

// One node per worker, searched independently.
std::vector<SearchedNode> copies(const SearchedNode& node, int n_threads) {
  return std::vector<SearchedNode>(static_cast<std::size_t>(n_threads), node);
}

void choose(SearchedNode& node, std::vector<SearchedNode>& searched) {
  for (SearchedNode& s : searched) node.consider(std::move(s.best));
}

}  // namespace

Histogram HistogramPool::take(int worker) {
  const std::lock_guard lock(mutex_);
  std::vector<Histogram>* from = &free_[static_cast<std::size_t>(worker)];
  for (std::size_t w = 0; from->empty() && w < free_.size(); ++w) from = &free_[w];
  if (from->empty()) return Histogram(new Packed[n_cells_]);
  Histogram histogram = std::move(from->back());
  from->pop_back();
  return histogram;
}

void HistogramPool::give_back(Histogram histogram, int worker) {
  if (!histogram) return;
  const std::lock_guard lock(mutex_);
  free_[static_cast<std::size_t>(worker)].push_back(std::move(histogram));
}

void SearchedNode::consider(BoostSplit split) {
  if (split.gain > best.gain || (split.gain == best.gain && split.gain > 0 && split.feature < best.feature))
    best = std::move(split);
}

HistogramScratch::HistogramScratch(std::size_t cells, int n_threads)
    : n_cells(cells),
      search(static_cast<std::size_t>(n_threads)),
      parts(cells, n_threads),
      drawn(static_cast<std::size_t>(n_threads)) {}

HistogramSearch::HistogramSearch(const Tiles& tiles, const SplitSearch& search, const std::vector<std::uint8_t>& in_use,
                                 const Packed* pairs, HistogramScratch& scratch, Interrupt& interrupt)
    : tiles_(tiles), search_(search), pairs_(pairs), scratch_(scratch), interrupt_(interrupt) {
  tiles.find_in_use(in_use, tiles_in_use_, lanes_in_use_);
}

void HistogramSearch::fill_tile(std::uint32_t tile, Packed* histogram, const Row* rows, std::size_t n) const {
  const auto [first, last] = tiles_.cells_of_tile(tile);
  std::memset(histogram + first, 0, (last - first) * sizeof(Packed));
  add_rows(tile, histogram, rows, n, Tiles::Operation::add);
}

void HistogramSearch::add_rows(std::uint32_t tile, Packed* histogram, const Row* rows, std::size_t n,
                               Tiles::Operation operation) const {
  constexpr std::size_t between_checks = 1 << 20;
  for (std::size_t begin = 0; begin < n; begin += between_checks) {
    interrupt_.check();
    tiles_.add_rows(tile, pairs_, rows + begin, std::min(between_checks, n - begin), histogram, operation);
  }
}

void HistogramSearch::subtract_lane(std::uint32_t lane, Packed* large, const Packed* small) const {
  for (const auto [first, last] : {tiles_.cells_of_lane(lane), tiles_.cells_of_columns(lane)})
    boost_kernels().subtract(large + first, small + first, last - first);
}

void HistogramSearch::search_lane(std::uint32_t lane, SearchedNode& node, SplitScratch& scratch) const {
  if (node.columns.empty()) return;
  if (tiles_.is_of_flags(lane)) {
    const auto [first, end] = tiles_.cells_of_lane(lane);  // the first cell holds the rows without a flag
    if (!search_.may_split_flags(node.histogram + first + 1, end - first - 1, node.terms, node.best.score)) return;
  }
  for (const std::uint32_t f : tiles_.columns(lane))
    if (node.columns[f])
      search_column(f, tiles_.cells(f, node.histogram, packed(node.terms.total), scratch.cells), node, scratch);
}

void HistogramSearch::search_column(std::uint32_t f, const Packed* cells, SearchedNode& node, SplitScratch& scratch,
                                    const Counts* counts) const {
  if (search_.is_flag(f) && !search_.may_split_flags(cells, 1, node.terms, node.best.score)) return;
  const Row* known = counts == nullptr || (*counts)[f].empty() ? nullptr : (*counts)[f].data();
  node.consider(search_.search(f, cells, node.terms, node.best.score, scratch, known));
}

// Searches listed columns begin … end - 1, or all of them if the node has no histogram of them.
void HistogramSearch::search_listed(std::size_t begin, std::size_t end, SearchedNode& node, SplitScratch& scratch,
                                    const Counts* counts) const {
  if (node.columns.empty()) return;
  const Packed total = packed(node.terms.total);
  const auto search = [&](std::uint32_t f, const Packed* cells) {
    if (node.columns[f]) search_column(f, cells, node, scratch, counts);
  };
  if (node.listed != nullptr)
    tiles_.listed().visit(begin, end, node.listed, total, node.terms.least, search);
  else
    tiles_.listed().visit_rows(pairs_, node.rows, node.terms.n_rows, total, node.terms.least, scratch.listed, search);
}

void HistogramSearch::search_counted(SearchedNode& node, const Counts& counts, int worker) const {
  SplitScratch& scratch = scratch_.search[static_cast<std::size_t>(worker)];
  for (std::uint32_t f = 0; f < node.columns.size(); ++f)
    if (node.columns[f] && tiles_.has_lane(f))
      search_column(f, tiles_.cells(f, node.histogram, packed(node.terms.total), scratch.cells), node, scratch,
                    &counts);
  if (!tiles_.listed().empty()) search_listed(0, tiles_.listed().n_columns(), node, scratch, &counts);
}

// With full histograms a tree adds the rows of its root to all lanes and about as many again in the smaller children;
// without, it adds a fraction of the lanes at each level and has no cells to clear and subtract. For 1,000 rows, 60
// columns and 20 classes the time ratio is 0.85 with a fraction of 0.2, 1 with 0.35 and 1.08 with 0.5.
bool HistogramSearch::are_few(std::size_t n_rows, double fraction) const {
  constexpr std::size_t most_rows = 1 << 14;  // close enough in memory to be read lane by lane
  return n_rows <= most_rows && fraction <= 0.3 && tiles_.listed().empty() && !lanes_in_use_.empty();
}

// The gradient sums of a node's rows.
Packed HistogramSearch::read_pairs(const SearchedNode& node, int worker) const {
  std::vector<Packed>& pairs = scratch_.drawn[static_cast<std::size_t>(worker)].pairs;
  const std::size_t n = node.terms.n_rows;
  if (pairs.size() < n) pairs.resize(n);
  Packed sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += pairs[i] = pairs_[node.rows[i]];
  return sum;
}

// Calls of_lane(lane) when its cells hold the sums of the node, whose pairs have been read.
template <class OfLane>
void HistogramSearch::for_each_drawn(SearchedNode& node, int worker, OfLane&& of_lane) const {
  HistogramScratch::Drawn& mine = scratch_.drawn[static_cast<std::size_t>(worker)];
  if (!mine.cells) mine.cells.reset(new Packed[scratch_.n_cells]);
  node.histogram = mine.cells.get();
  for (const std::uint32_t t : tiles_in_use_) {
    const std::span<const std::uint32_t> lanes = tiles_.lanes(t);
    mine.at.clear();
    for (std::uint32_t j = 0; j < lanes.size(); ++j) {
      const auto columns = tiles_.columns(lanes[j]);
      if (std::none_of(columns.begin(), columns.end(), [&](std::uint32_t f) { return node.columns[f]; })) continue;
      const auto [first, end] = tiles_.cells_of_lane(lanes[j]);
      std::memset(node.histogram + first, 0, (end - first) * sizeof(Packed));
      mine.at.push_back(j);
    }
    tiles_.add_lanes(t, mine.at, mine.pairs.data(), node.rows, node.terms.n_rows, node.histogram);
    for (const std::uint32_t j : mine.at) {
      tiles_.sum_up(lanes[j], node.histogram);
      of_lane(lanes[j]);
    }
  }
}

void HistogramSearch::fill_drawn(SearchedNode& node, int worker) const {
  read_pairs(node, worker);
  for_each_drawn(node, worker, [](std::uint32_t) {});
}

void HistogramSearch::search_drawn(SearchedNode& node, int worker) const {
  interrupt_.check();
  read_pairs(node, worker);
  SplitScratch& scratch = scratch_.search[static_cast<std::size_t>(worker)];
  for_each_drawn(node, worker, [&](std::uint32_t lane) { search_lane(lane, node, scratch); });
}

void HistogramSearch::init_drawn_root(SearchedNode& root) const {
  const Packed sum = read_pairs(root, 0);
  root.terms = search_.terms({gradient_of(sum), hessian_of(sum)}, root.terms.n_rows, root.terms.bounds);
  if (root.columns.empty()) return;
  for_each_drawn(root, 0, [&](std::uint32_t lane) { search_lane(lane, root, scratch_.search[0]); });
}

double HistogramSearch::estimated_ns(double n_rows, double n_small) const {
  const ListedColumns& listed = tiles_.listed();
  const double ns =
      0.5 * static_cast<double>(lanes_in_use_.size()) * n_small + 2.0 * static_cast<double>(scratch_.n_cells);
  if (listed.empty()) return ns;
  const double ns_large = listed.is_worth_cells(n_rows - n_small) ? 0.5 * static_cast<double>(listed.n_cells())
                                                                  : 4 * listed.n_entries(n_rows - n_small);
  return ns + 4 * listed.n_entries(n_small) + ns_large + 2.0 * static_cast<double>(listed.n_columns());
}

// Calls body(lane, worker), with a few lanes per task.
template <class Body>
void HistogramSearch::for_each_lane(int n_threads, Body&& body) const {
  const std::size_t n = lanes_in_use_.size(),
                    n_tasks = std::min<std::size_t>(n, 2 * static_cast<std::size_t>(n_threads));
  parallel_for(n_tasks, n_threads, [&](std::size_t task, int worker) {
    for (std::size_t i = task * n / n_tasks; i < (task + 1) * n / n_tasks; ++i) body(lanes_in_use_[i], worker);
  });
}

// Workers take chunks of rows, those of few nodes each. The first worker of a node adds to its histogram, others to
// private sums.
void HistogramSearch::fill(std::span<FilledNode> nodes, int n_threads) const {
  struct Chunk {
    std::size_t node, begin, end;
  };
  const auto threads = static_cast<std::size_t>(n_threads);
  const std::size_t least = 1024, most = nodes.size() == 1 ? 8192 : SIZE_MAX;
  std::size_t n_rows = 0;
  for (const FilledNode& node : nodes) n_rows += node.n_rows;
  const std::size_t size = std::clamp(n_rows / (8 * threads), least, most);
  std::vector<Chunk> chunks;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (std::size_t begin = 0; begin == 0 || begin < nodes[i].n_rows; begin += size)
      chunks.push_back({i, begin, std::min(nodes[i].n_rows, begin + size)});
  std::vector<Histogram> parts(nodes.size() * threads);
  std::vector<Packed*> sums(nodes.size() * threads, nullptr);  // by node and worker
  std::vector<std::atomic<bool>> has_worker(nodes.size());
  const auto fill_chunk = [&](const Chunk& chunk, int worker) {
    const FilledNode& node = nodes[chunk.node];
    const std::size_t at = chunk.node * threads + static_cast<std::size_t>(worker);
    if (sums[at] == nullptr) {
      const bool is_first = !has_worker[chunk.node].exchange(true);
      if (!is_first) parts[at] = scratch_.parts.take(worker);
      sums[at] = is_first ? node.histogram : parts[at].get();
      for (const std::uint32_t t : tiles_in_use_) fill_tile(t, sums[at], nullptr, 0);
    }
    for (const std::uint32_t t : tiles_in_use_)
      add_rows(t, sums[at], node.rows + chunk.begin, chunk.end - chunk.begin, Tiles::Operation::add);
  };
  parallel_for_near(chunks.size(), n_threads, [&](std::size_t i, int worker) { fill_chunk(chunks[i], worker); });
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i]) nodes[i / threads].parts.push_back(std::move(parts[i]));
}

void HistogramSearch::add_parts(std::uint32_t lane, const FilledNode& node) const {
  const auto [first, last] = tiles_.cells_of_lane(lane);
  for (const Histogram& part : node.parts)
    for (std::size_t i = first; i < last; ++i) node.histogram[i] += part[i];
}

void HistogramSearch::give_back(std::span<FilledNode> nodes) const {
  for (FilledNode& node : nodes)
    for (std::size_t i = 0; i < node.parts.size(); ++i) scratch_.parts.give_back(std::move(node.parts[i]), 0);
}

void HistogramSearch::init_root(SearchedNode& root, const Packed* known, int n_threads) const {
  const Row* rows = root.rows;
  const std::size_t n = root.terms.n_rows;
  FilledNode filled{root.histogram, rows, n};
  if (known != nullptr)
    std::copy_n(known, tiles_.n_cells(), root.histogram);
  else if (splits_tile_work(n_threads) || n_threads == 1)
    parallel_for(tiles_in_use_.size(), n_threads,
                 [&](std::size_t i, int) { fill_tile(tiles_in_use_[i], root.histogram, rows, n); });
  else
    fill({&filled, 1}, n_threads);
  Packed sum = 0;
  if (lanes_in_use_.empty()) {
    for (std::size_t i = 0; i < n; ++i) sum += pairs_[rows[i]];
  } else {  // each row is in one cell of every lane
    const auto [first, last] = tiles_.cells_of_lane(lanes_in_use_[0]);
    sum = std::accumulate(root.histogram + first, root.histogram + last, sum);
    for (const Histogram& part : filled.parts) sum = std::accumulate(part.get() + first, part.get() + last, sum);
  }
  root.terms = search_.terms({gradient_of(sum), hessian_of(sum)}, static_cast<Row>(n), root.terms.bounds);
  std::vector<SearchedNode> roots = copies(root, n_threads);
  for_each_lane(n_threads, [&](std::uint32_t lane, int worker) {
    const auto w = static_cast<std::size_t>(worker);
    add_parts(lane, filled);
    tiles_.sum_up(lane, root.histogram);
    search_lane(lane, roots[w], scratch_.search[w]);
  });
  give_back({&filled, 1});
  choose(root, roots);
  init_listed_root(root, n_threads);
}

void HistogramSearch::init_listed_root(SearchedNode& root, int n_threads) const {
  const ListedColumns& listed = tiles_.listed();
  if (listed.empty()) return;
  if (root.listed != nullptr) fill_listed(root);
  const std::size_t n = listed.n_columns(), n_ranges = ranges_of_listed(root, n_threads);
  std::vector<SearchedNode> roots = copies(root, n_threads);
  parallel_for(n_ranges, n_ranges == 1 ? 1 : n_threads, [&](std::size_t p, int worker) {
    const auto w = static_cast<std::size_t>(worker);
    search_listed(p * n / n_ranges, (p + 1) * n / n_ranges, roots[w], scratch_.search[w]);
  });
  choose(root, roots);
}

void HistogramSearch::fill_listed(SearchedNode& node) const {
  tiles_.listed().clear(node.listed);
  tiles_.listed().add_rows(pairs_, node.rows, node.terms.n_rows, node.listed);
}

// The number of tasks for searching a node's listed columns.
std::size_t HistogramSearch::ranges_of_listed(const SearchedNode& node, int n_threads) const {
  if (node.listed == nullptr || n_threads == 1) return 1;
  return std::min<std::size_t>(tiles_.listed().n_columns(), 4 * static_cast<std::size_t>(n_threads));
}

// A small child without a histogram is one more task.
void HistogramSearch::divide_listed(SearchedNode& small, SearchedNode& large, int n_threads, int worker) const {
  const ListedColumns& listed = tiles_.listed();
  if (listed.empty()) return;
  if (small.listed != nullptr)
    fill_listed(small);
  else if (large.listed != nullptr)
    listed.take_rows(pairs_, small.rows, small.terms.n_rows, large.listed);
  const std::size_t n = listed.n_columns(), n_ranges = ranges_of_listed(large, n_threads);
  const auto divide_range = [&](std::size_t p, SearchedNode& a, SearchedNode& b, SplitScratch& scratch) {
    if (p == n_ranges) return search_listed(0, n, a, scratch);
    const std::size_t begin = p * n / n_ranges, end = (p + 1) * n / n_ranges;
    if (small.listed != nullptr) {
      listed.subtract(begin, end, large.listed, small.listed);
      search_listed(begin, end, a, scratch);
    }
    search_listed(begin, end, b, scratch);
  };
  const std::size_t n_tasks = n_ranges + (small.listed == nullptr);
  if (n_threads == 1) {
    for (std::size_t p = 0; p < n_tasks; ++p)
      divide_range(p, small, large, scratch_.search[static_cast<std::size_t>(worker)]);
    return;
  }
  std::vector<SearchedNode> smalls = copies(small, n_threads), larges = copies(large, n_threads);
  parallel_for(n_tasks, n_threads, [&](std::size_t p, int w) {
    const auto mine = static_cast<std::size_t>(w);
    divide_range(p, smalls[mine], larges[mine], scratch_.search[mine]);
  });
  choose(small, smalls);
  choose(large, larges);
}

void HistogramSearch::divide(DividedNode& node, int worker) const {
  SplitScratch& scratch = scratch_.search[static_cast<std::size_t>(worker)];
  if (node.is_filled)
    for (const std::uint32_t lane : lanes_in_use_) divide_lane(lane, node.small, node.large, scratch);
  else
    for (const std::uint32_t t : tiles_in_use_) divide_tile(t, node.small, node.large, scratch);
  divide_listed(node.small, node.large, 1, worker);
}

void HistogramSearch::divide(std::span<DividedNode> nodes, int n_threads) const {
  if (n_threads > 1 && splits_tile_work(n_threads) && std::ranges::none_of(nodes, &DividedNode::is_filled))
    divide_sections(nodes, tiles_in_use_.size(), n_threads,
                    [&](std::size_t, std::size_t section, DividedNode& node, SplitScratch& scratch) {
                      divide_tile(tiles_in_use_[section], node.small, node.large, scratch);
                    });
  else if (n_threads > 1)
    divide_rows(nodes, n_threads);
  for (DividedNode& node : nodes) n_threads > 1 ? divide_listed(node.small, node.large, n_threads, 0) : divide(node, 0);
}

// Calls body(node index, section, node, scratch) with a node of the task's own for every node and section.
template <class Body>
void HistogramSearch::divide_sections(std::span<DividedNode> nodes, std::size_t n_sections, int n_threads,
                                      Body&& body) const {
  struct Found {
    BoostSplit small, large;
  };
  std::vector<Found> found(nodes.size() * n_sections);
  parallel_for(found.size(), n_threads, [&](std::size_t task, int worker) {
    interrupt_.check();
    DividedNode node = nodes[task / n_sections];
    body(task / n_sections, task % n_sections, node, scratch_.search[static_cast<std::size_t>(worker)]);
    found[task] = {std::move(node.small.best), std::move(node.large.best)};
  });
  for (std::size_t task = 0; task < found.size(); ++task) {
    nodes[task / n_sections].small.consider(std::move(found[task].small));
    nodes[task / n_sections].large.consider(std::move(found[task].large));
  }
}

void HistogramSearch::divide_rows(std::span<DividedNode> nodes, int n_threads) const {
  std::vector<FilledNode> filled;
  for (const DividedNode& node : nodes)
    if (!node.is_filled) filled.push_back({node.small.histogram, node.small.rows, node.small.terms.n_rows});
  if (!filled.empty()) fill(filled, n_threads);
  const std::size_t n_lanes = lanes_in_use_.size(), most = 2 * static_cast<std::size_t>(n_threads) / nodes.size();
  const std::size_t n_sections = std::min(n_lanes, std::max<std::size_t>(1, most));
  divide_sections(
      nodes, n_sections, n_threads, [&](std::size_t i, std::size_t section, DividedNode& node, SplitScratch& scratch) {
        for (std::size_t j = section * n_lanes / n_sections; j < (section + 1) * n_lanes / n_sections; ++j) {
          if (!filled.empty()) add_parts(lanes_in_use_[j], filled[i]);
          divide_lane(lanes_in_use_[j], node.small, node.large, scratch);
        }
      });
  give_back(filled);
}

void HistogramSearch::divide_lane(std::uint32_t lane, SearchedNode& small, SearchedNode& large,
                                  SplitScratch& scratch) const {
  tiles_.sum_up(lane, small.histogram);
  subtract_lane(lane, large.histogram, small.histogram);
  search_lane(lane, small, scratch);
  search_lane(lane, large, scratch);
}

// Lane by lane, while the cells are in cache. A child that is not searched needs no histogram: its rows are subtracted
// from the parent's.
void HistogramSearch::divide_tile(std::uint32_t tile, SearchedNode& small, SearchedNode& large,
                                  SplitScratch& scratch) const {
  const Row* rows = small.rows;
  const std::size_t n = small.terms.n_rows;
  const bool is_small_searched = !small.columns.empty();
  if (is_small_searched)
    fill_tile(tile, small.histogram, rows, n);
  else
    add_rows(tile, large.histogram, rows, n, Tiles::Operation::take);
  for (const std::uint32_t lane : tiles_.lanes(tile)) {
    tiles_.sum_up(lane, is_small_searched ? small.histogram : large.histogram);
    if (is_small_searched) subtract_lane(lane, large.histogram, small.histogram);
    search_lane(lane, small, scratch);
    search_lane(lane, large, scratch);
  }
}

}  // namespace spinney
