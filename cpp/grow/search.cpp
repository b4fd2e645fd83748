#include "grow/search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "base/draw.h"
#include "base/random.h"
#include "data/read.h"

namespace spinney {

namespace {

// The columns tried at a node that tries only some of them: those that are always tried, then a random choice of the
// others in random order. Each draw is undone at the end: creating a new list for each node would cost more than
// drawing a few of many columns.
class ColumnDraw {
 public:
  ColumnDraw(const Rules& rules, const OpenNode& node, TriedColumns& scratch)
      : order_(scratch.order), swapped_(scratch.swapped), random_(derive(node.key, 3)) {
    const GrowParams& params = rules.params;
    // columns known to be constant still count as tried, so the draw is from all columns
    n_first = params.always_try.size() + params.max_features;
    first_ = params.always_try.size();
    if (order_.empty()) list(rules);
    swapped_.clear();
    if (params.feature_weights.empty()) return;
    const std::span<std::uint32_t> others = std::span(order_).subspan(first_);
    shuffle_columns(others, others.size(), params.feature_weights, random_);
    first_ = order_.size();
    is_weighted_ = true;
  }
  ~ColumnDraw() {
    if (is_weighted_) order_.clear();
    for (std::size_t i = swapped_.size(); i-- > 0;) std::swap(order_[first_ + i], order_[swapped_[i]]);
  }
  ColumnDraw(const ColumnDraw&) = delete;
  ColumnDraw& operator=(const ColumnDraw&) = delete;

  std::size_t size() const { return order_.size(); }

  // Call it with i = 0, 1, …; makes the first draws of shuffle_columns, as many as are needed.
  std::uint32_t at(std::size_t i) {
    if (i >= first_ && i + 1 < order_.size()) {
      const std::size_t other = i + random_.below(order_.size() - i);
      std::swap(order_[i], order_[other]);
      swapped_.push_back(static_cast<std::uint32_t>(other));
    }
    return order_[i];
  }

  std::size_t n_first;  // tried together; the rest one by one, until a column can be split

 private:
  // Puts the columns that are always tried first.
  void list(const Rules& rules) {
    const std::vector<std::uint32_t>& always = rules.params.always_try;
    order_ = rules.params.columns;
    if (order_.empty()) {
      order_.resize(rules.n_columns());
      std::iota(order_.begin(), order_.end(), std::uint32_t{0});
    }
    if (always.empty()) return;
    std::erase_if(order_, [&](std::uint32_t f) { return std::binary_search(always.begin(), always.end(), f); });
    order_.insert(order_.begin(), always.begin(), always.end());
  }

  std::vector<std::uint32_t>&order_, &swapped_;
  RandomStream random_;
  std::size_t first_ = 0;  // columns before this one are not moved
  bool is_weighted_ = false;
};

// A bin holds rows of several values: finds the values next to the cut among the node's rows, as sorting by value
// would.
void find_neighbours(const Column& column, const BinnedColumn& binned, std::span<const Row> rows, Candidate& c) {
  double below = 0, above = 0;
  bool any_below = false, any_above = false;
  read_rows(column, rows.data(), rows.size(), [&](std::size_t i, double v) {
    if (v != v) return;
    if (binned.code(rows[i]) <= c.code_below) {
      if (any_below && v <= below) return;
      any_below = true;
      below = v;
      c.below = rows[i];
    } else if (!any_above || v < above) {
      any_above = true;
      above = v;
      c.above = rows[i];
    }
  });
}

}  // namespace

std::span<const Entry> sort_rows(ColumnSorter& sorter, const Table& table, const Bins& bins, std::uint32_t f,
                                 std::span<const Row> rows, bool local) {
  if (!bins.has(table, f)) return sorter.sort(table.columns[f], rows, local);
  const BinnedColumn& binned = bins.columns[f];
  auto& entries = sorter.entries();
  entries.resize(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::uint32_t code = binned.code(rows[i]);
    entries[i] = entry_of(code == binned.n_bins ? missing_code : code, local ? static_cast<Row>(i) : rows[i]);
  }
  return sorter.sort_entries();
}

void mix_columns(const OpenNode& node, std::vector<std::uint32_t>& columns) {
  RandomStream random(derive(node.key, 5));
  const std::size_t n = columns.size();
  // two positions from each random number: a bias of n / 2^32 is harmless here, and small nodes need many positions
  for (std::size_t i = 0; i + 1 < n; i += 2) {
    const std::uint64_t drawn = random.next();
    std::swap(columns[i], columns[i + ((drawn & UINT32_MAX) * (n - i) >> 32)]);
    std::swap(columns[i + 1], columns[i + 1 + ((drawn >> 32) * (n - i - 1) >> 32)]);
  }
}

// Searches the drawn columns until one can be split.
static void search_draw(const Rules& rules, const OpenNode& node, TriedColumns& found,
                        FunctionRef<SearchColumns> search, bool unlisted) {
  auto& [tried, candidates, order, swapped, live] = found;
  ColumnDraw draw(rules, node, found);
  const bool all_live = unlisted || node.features.size() == rules.table.n_columns();
  if (!all_live) {
    live.assign(rules.table.n_columns(), 0);
    for (const std::uint32_t f : node.features) live[f] = 1;
  }
  tried.clear();
  bool any_found = false;
  for (std::size_t begin = 0, end = draw.n_first; begin < draw.size() && !any_found; begin = end, end = end + 1) {
    const std::size_t first = tried.size();
    for (std::size_t i = begin; i < end; ++i)
      if (const std::uint32_t f = draw.at(i); all_live || live[f]) tried.push_back(f);
    if (begin == 0 && rules.params.random_ties && !rules.params.always_try.empty()) mix_columns(node, tried);
    candidates.resize(std::max(candidates.size(), tried.size()));
    search(std::span<const std::uint32_t>(tried).subspan(first),
           std::span(candidates).subspan(first, tried.size() - first));
    for (std::size_t i = first; i < tried.size(); ++i) any_found = any_found || candidates[i].found();
  }
  candidates.resize(tried.size());
}

void search_drawn_columns(const Rules& rules, OpenNode& node, TriedColumns& found, FunctionRef<SearchColumns> search,
                          bool finds_constants) {
  auto& [tried, candidates, order, swapped, live] = found;
  const bool unlisted = is_unlisted(rules, finds_constants);
  if (rules.draws_columns()) {
    search_draw(rules, node, found, search, unlisted);
  } else {
    tried = node.features;
    if (rules.params.random_ties) mix_columns(node, tried);
    candidates.resize(tried.size());
    if (!tried.empty()) search(tried, candidates);
  }
  const bool any_constant = std::any_of(candidates.begin(), candidates.end(), [](auto& c) { return c.constant; });
  if (!any_constant || unlisted) return;
  live.assign(rules.table.n_columns(), 1);
  for (std::size_t i = 0; i < tried.size(); ++i) live[tried[i]] = !candidates[i].constant;
  std::erase_if(node.features, [&](std::uint32_t f) { return !live[f]; });
}

void find_neighbours(const Rules& rules, const Bins& bins, std::uint32_t f, std::span<const Row> rows, Candidate& c) {
  if (!bins.has(rules.table, f) || !c.found() || c.missing_alone || rules.params.random_cuts) return;
  rules.table.touch(rows, 1);
  find_neighbours(rules.table.columns[f], bins.columns[f], rows, c);
}

double cut_of(const GrowParams& params, std::uint32_t feature, double below, double above) {
  if (!params.surrogate_params.rpart) return cut_between(below, above);
  if (!params.surrogate_params.fold && params.surrogate_params.closed_cuts[feature]) return (below + above) / 2;
  return std::nextafter((below + above) / 2, -std::numeric_limits<double>::infinity());  // x < middle goes left
}

void spread_pool(const Column& column, std::vector<std::uint32_t>& left, std::vector<std::uint32_t>& right) {
  if (column.pooled == nullptr) return;
  for (auto* codes : {&left, &right}) {
    if (!std::binary_search(codes->begin(), codes->end(), column.pooled->front())) continue;
    std::vector<std::uint32_t> all;
    std::set_union(codes->begin(), codes->end(), column.pooled->begin(), column.pooled->end(), std::back_inserter(all));
    *codes = std::move(all);
  }
}

void place_unknown(const Rules& rules, const Choice& choice, bool left_heavier, SplitRecord& split) {
  const Candidate& c = choice.candidate;
  const auto* pooled = rules.table.columns[choice.feature].pooled;
  const auto has_pool = [&](const std::vector<std::uint32_t>& codes) {
    return pooled != nullptr && std::binary_search(codes.begin(), codes.end(), pooled->front());
  };
  const bool left = has_pool(split.left_codes) || (left_heavier && !has_pool(split.right_codes));
  split.default_left = c.missing_alone || left;
  split.missing_left = c.has_missing ? c.missing_left : left;
}

SplitRecord describe_sides(const Rules& rules, const Choice& choice, bool left_heavier,
                           const std::vector<std::uint32_t>& codes) {
  const Candidate& c = choice.candidate;
  SplitRecord split;
  split.feature = choice.feature;
  split.is_category = rules.table.columns[choice.feature].is_category();
  if (split.is_category) {
    split.left_codes = c.missing_alone ? codes : c.left_codes;
    std::sort(split.left_codes.begin(), split.left_codes.end());
    std::set_difference(codes.begin(), codes.end(), split.left_codes.begin(), split.left_codes.end(),
                        std::back_inserter(split.right_codes));
    spread_pool(rules.table.columns[choice.feature], split.left_codes, split.right_codes);
  }
  place_unknown(rules, choice, left_heavier, split);
  return split;
}

SplitRecord describe_split(const Rules& rules, const Choice& choice, bool left_heavier,
                           const std::vector<std::uint32_t>& codes) {
  const Candidate& c = choice.candidate;
  const Column& column = rules.table.columns[choice.feature];
  SplitRecord split = describe_sides(rules, choice, left_heavier, codes);
  if (split.is_category) return split;
  if (c.missing_alone)
    split.threshold = std::numeric_limits<double>::infinity();
  else if (rules.params.random_cuts)
    split.threshold = c.threshold;
  else
    split.threshold = cut_of(rules.params, choice.feature, value_at(column, c.below), value_at(column, c.above));
  return split;
}

void mark_sides(const Rules& rules, const Choice& choice, std::span<const Row> rows, std::vector<std::uint8_t>& side,
                std::vector<std::uint32_t>& codes) {
  const Column& column = rules.table.columns[choice.feature];
  rules.table.touch(rows, 1);
  side.resize(rows.size());
  codes.clear();
  if (column.is_category()) {
    std::vector<std::uint32_t> left = choice.candidate.left_codes;
    std::sort(left.begin(), left.end());
    // with many rows each category is recorded once, with few the rows' categories
    std::vector<std::uint8_t> in_node(rows.size() > column.n_categories ? column.n_categories + std::size_t{1} : 0, 0);
    read_rows(column, rows.data(), rows.size(), [&](std::size_t i, double v) {
      const auto code = static_cast<std::uint32_t>(v == v ? v : 0);
      if (v == v && in_node.empty()) codes.push_back(code);
      if (v == v && !in_node.empty()) in_node[code] = 1;
      side[i] = v != v ? choice.candidate.missing_left : std::binary_search(left.begin(), left.end(), code);
    });
    for (std::uint32_t code = 0; code < in_node.size(); ++code)
      if (in_node[code]) codes.push_back(code);
    std::sort(codes.begin(), codes.end());
    codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
    return;
  }
  const double threshold = describe_split(rules, choice, false, {}).threshold;
  const bool missing_left = choice.candidate.missing_left;
  read_rows(column, rows.data(), rows.size(),
            [&](std::size_t i, double v) { side[i] = v <= threshold || (v != v && missing_left); });
}

void mark_sides(const Rules& rules, const CoarseTiles& tiles, const Choice& choice, std::span<const Row> rows,
                std::vector<std::uint8_t>& side) {
  const Candidate& c = choice.candidate;
  const std::uint8_t* const codes = tiles.lane(tiles.lane_of[choice.feature]);
  const auto code_of_row = [codes](Row r) { return codes[std::size_t{r} * CoarseTiles::lanes]; };
  std::array<std::uint8_t, 256> goes_left{};
  const std::size_t last = c.missing_alone ? n_coarse - 1 : code_of_row(c.below);
  std::fill_n(goes_left.begin(), last + 1, std::uint8_t{1});
  goes_left[coarse_missing] = c.missing_left;
  side.resize(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) side[i] = goes_left[code_of_row(rows[i])];
  if (c.missing_alone || code_of_row(c.above) != last) return;
  const Column& column = rules.table.columns[choice.feature];
  const double threshold = describe_split(rules, choice, false, {}).threshold;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (code_of_row(rows[i]) == last) side[i] = value_at(column, rows[i]) <= threshold;
}

}  // namespace spinney
