#include "grow/surrogates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "data/read.h"
#include "grow/rounding.h"

namespace spinney {

// Retains the `most` best of entries that arrive one by one; the earlier of equals is better. rpart's bug, reproduced
// on request: in a full list of two, a new best entry pushes out both.
template <class Entry, class Better>
static void insert_ranked(std::vector<Entry>& list, Entry entry, std::size_t most, bool quirks, Better&& better) {
  if (most == 0) return;
  std::size_t at = 0;
  while (at < list.size() && !better(entry, list[at])) ++at;
  if (at == most) return;
  if (quirks && most == 2 && list.size() == 2 && at == 0) list.clear();
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), std::move(entry));
  if (list.size() > most) list.pop_back();
}

Ranking SurrogateSearch::rank(OpenNode& node, std::span<const Row> rows) {
  std::vector<Found> found(rules_.table.n_columns());
  TriedColumns& tried = workers_[0]->tried;
  search_drawn_columns(rules_, node, tried, [&](auto columns, auto candidates) {
    for_each_column(workers_, rows.size(), columns.size(), interrupt_, [&](std::size_t i, Worker& worker) {
      candidates[i] = search_present(worker, node, rows, columns[i], found[columns[i]]);
    });
  });
  if (params_.response != nullptr) round_ties(tried, rows, found);
  Ranking ranking;
  std::vector<std::size_t> order(tried.columns.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return tried.columns[a] < tried.columns[b]; });
  const auto entry = [&](std::size_t i) {
    const std::uint32_t f = tried.columns[i];
    const Choice choice{f, found[f].gain, rules_.per_cost(found[f].gain, f), tried.candidates[i]};
    return Ranking::Entry{choice, found[f].count, found[f].reversed, found[f].rounded};
  };
  const std::size_t first = params_.rpart ? SIZE_MAX : first_choice(tried, found);
  const std::size_t most = std::size_t{params_.max_competitors} + (params_.rpart ? 1 : 0);
  for (const std::size_t i : order) {
    if (i == first || !tried.candidates[i].found() || (params_.rpart && !(found[tried.columns[i]].gain > 0))) continue;
    insert_ranked(ranking.entries, entry(i), most, params_.quirks, is_better);
  }
  if (first < tried.columns.size()) ranking.entries.insert(ranking.entries.begin(), entry(first));
  if (params_.rpart) {  // rpart treats such a small gain as none
    const double least = ranking.entries.empty() ? 0 : 1e-10 * ranking.entries[0].choice.merit;
    std::erase_if(ranking.entries, [&](const auto& e) { return e.choice.merit <= least; });
  }
  return ranking;
}

void SurrogateSearch::mark(const SplitRecord& split, std::span<const Row> rows, std::vector<std::uint8_t>& side) const {
  const Column& column = rules_.table.columns[split.feature];
  const double threshold = open_cut(split.feature, split.threshold);
  side.resize(rows.size());
  read_rows(column, rows.data(), rows.size(), [&](std::size_t i, double v) {
    if (split.is_category)
      side[i] = category_side(split, v);
    else
      side[i] = v != v ? no_side : v <= threshold ? left_side : right_side;
  });
}

std::vector<RankedSplit> SurrogateSearch::surrogates(const OpenNode& node, const SplitRecord& split, bool reversed,
                                                     std::span<const Row> rows, std::span<const std::uint8_t> side) {
  std::vector<RankedSplit> best;
  if (params_.max_surrogates == 0) return best;
  std::vector<std::uint32_t> columns = node.features;
  if (rules_.params.random_ties) mix_columns(node, columns);
  std::vector<std::optional<RankedSplit>> found(columns.size());
  for_each_column(workers_, rows.size(), columns.size(), interrupt_, [&](std::size_t i, Worker& worker) {
    const std::uint32_t f = columns[i];
    // otherwise a row sent by a constrained column could violate the constraint
    const bool constrained = rules_.bounded() && rules_.params.monotonic_cst[f] != 0;
    if (f != split.feature && !constrained) found[i] = find_surrogate(worker, f, reversed, rows, side);
  });
  for (auto& surrogate : found)
    if (surrogate)
      insert_ranked(best, std::move(*surrogate), params_.max_surrogates, params_.quirks,
                    [](const RankedSplit& a, const RankedSplit& b) { return a.improve > b.improve; });
  return best;
}

void SurrogateSearch::place(SplitRecord& split, std::vector<RankedSplit>& surrogates, bool reversed,
                            std::span<const Row> rows, std::vector<std::uint8_t>& side) const {
  const Agreement all = sum_sides(rows, side);
  const bool stops = params_.missing_fallback != SurrogateParams::Fallback::majority;
  const bool no_majority = params_.quirks && params_.max_surrogates == 0;  // as rpart does
  std::uint8_t fallback = all.left > all.right ? left_side : right_side;
  if (params_.rpart && all.left == all.right) fallback = stays;
  if (stops || no_majority) fallback = stays;
  if (params_.missing_fallback != SurrogateParams::Fallback::ignore)
    for (RankedSplit& surrogate : surrogates) place_by(surrogate, rows, side);
  for (std::uint8_t& s : side)
    if (s == no_side) s = fallback;
  const auto n_left = std::count(side.begin(), side.end(), left_side);
  const auto n_right = std::count(side.begin(), side.end(), right_side);
  split.stops = stops;
  split.alone = params_.missing_fallback == SurrogateParams::Fallback::ignore;
  split.missing_left = all.left > all.right;
  if (params_.rpart && params_.fold) {
    const bool go_right = no_majority || all.left == all.right;
    split.missing_left = go_right ? reversed : all.left > all.right;
  } else if (params_.rpart) {
    split.missing_left = n_left > n_right;
    split.stops = stops || n_left == n_right;
  }
  split.default_left = split.missing_left;  // an unseen category is treated as missing
}

// The column that the rules choose, which is not always the one with the largest gain.
std::size_t SurrogateSearch::first_choice(const TriedColumns& tried, const std::vector<Found>& found) const {
  std::vector<CutGain> gains;
  for (const std::uint32_t f : tried.columns) gains.push_back({found[f].gain, found[f].weight});
  return rules_.choose_by_gains(tried.columns, tried.candidates, gains);
}

bool SurrogateSearch::is_better(const Ranking::Entry& a, const Ranking::Entry& b) {
  const bool tie = a.rounded > 0 && b.rounded > 0 && is_near(a.choice.merit, b.choice.merit);
  return tie ? a.rounded > b.rounded : a.choice.merit > b.choice.merit;
}

// Rounds the merits of tied columns as rpart does.
void SurrogateSearch::round_ties(TriedColumns& tried, std::span<const Row> rows, std::vector<Found>& found) {
  std::vector<std::pair<double, std::size_t>> merits;
  for (std::size_t i = 0; i < tried.columns.size(); ++i)
    if (tried.candidates[i].found() && found[tried.columns[i]].gain > 0)
      merits.emplace_back(rules_.per_cost(found[tried.columns[i]].gain, tried.columns[i]), i);
  std::sort(merits.begin(), merits.end());
  for (std::size_t k = 0; k < merits.size(); ++k) {
    const auto [merit, i] = merits[k];
    const bool tie = (k > 0 && is_near(merit, merits[k - 1].first)) ||
                     (k + 1 < merits.size() && is_near(merit, merits[k + 1].first));
    const std::uint32_t f = tried.columns[i];
    if (!tie) continue;
    if (found[f].rounded == 0) round(*workers_[0], rows, present_rows(rows, f), f, tried.candidates[i], found[f]);
    if (!rules_.params.feature_costs.empty()) found[f].rounded /= rules_.params.feature_costs[f];
  }
}

void SurrogateSearch::round(Worker& worker, std::span<const Row> rows, std::span<const Row> present, std::uint32_t f,
                            Candidate& candidate, Found& found) const {
  found.rounded = RoundedSearch(rules_, rows, f).run(worker.sorter, present, candidate);
}

std::vector<Row> SurrogateSearch::present_rows(std::span<const Row> rows, std::uint32_t f) const {
  std::vector<Row> present;
  present.reserve(rows.size());
  read_rows(rules_.table.columns[f], rows.data(), rows.size(), [&](std::size_t i, double v) {
    if ((v == v || !params_.present_only) && rules_.target.weight_of(rows[i]) > 0) present.push_back(rows[i]);
  });
  return present;
}

Candidate SurrogateSearch::search_present(Worker& worker, const OpenNode& node, std::span<const Row> rows,
                                          std::uint32_t f, Found& found) {
  const std::vector<Row> present = present_rows(rows, f);
  OpenNode part;
  part.end = present.size();
  part.depth = node.depth;
  part.key = node.key;
  part.lower = node.lower;
  part.upper = node.upper;
  part.impurity = node.impurity;
  part.stat.assign(node.stat.size(), 0);
  worker.add(present, part.stat.data());
  if (present.size() < 2) return {};
  Candidate candidate = worker.search_column(rules_, bins_, part, present, f);
  worker.forget_rows();
  if (!candidate.found()) return candidate;
  find_neighbours(rules_, bins_, f, present, candidate);
  found.gain = gain_of(rules_.target, candidate.score, part.stat.data()) - candidate.charge;
  found.weight = static_cast<double>(part.stat[0]);
  found.count = static_cast<Row>(present.size());
  if (candidate.tied && found.gain > 0) round(worker, rows, present, f, candidate, found);
  if (params_.rpart && part.stat.size() > 1)  // medians have no sums
    found.reversed = is_reversed(worker, f, candidate, present, part.stat);
  return candidate;
}

// Returns whether rpart would draw the right side first. Its left side has the lower mean, rate or mean class; on a
// tie, the values below the cut go right.
bool SurrogateSearch::is_reversed(const Worker& worker, std::uint32_t f, const Candidate& c,
                                  std::span<const Row> present, const std::vector<std::int64_t>& total) const {
  const Column& column = rules_.table.columns[f];
  std::vector<Row> left_rows;
  if (column.is_category()) {
    std::vector<std::uint32_t> codes = c.left_codes;
    std::sort(codes.begin(), codes.end());
    read_rows(column, present.data(), present.size(), [&](std::size_t i, double v) {
      if (std::binary_search(codes.begin(), codes.end(), static_cast<std::uint32_t>(v)))
        left_rows.push_back(present[i]);
    });
  } else {
    const double below = value_at(column, c.below);
    read_rows(column, present.data(), present.size(), [&](std::size_t i, double v) {
      if (v <= below) left_rows.push_back(present[i]);
    });
  }
  std::vector<std::int64_t> left(total.size(), 0);
  worker.add(left_rows, left.data());
  const double l = mean_index(left.data(), nullptr), r = mean_index(total.data(), left.data());
  return column.is_category() && !rules_.target.is_scalar() ? l > r
                                                            : l >= r;  // in that case the moved levels are on the right
}

// Mean of the target, or of the class index, over `stat` minus `less`.
double SurrogateSearch::mean_index(const std::int64_t* stat, const std::int64_t* less) const {
  const auto at = [&](std::size_t k) { return static_cast<double>(less ? stat[k] - less[k] : stat[k]); };
  if (rules_.target.is_scalar()) return at(1) / at(0);
  double sum = 0;
  for (std::size_t k = 1; k <= rules_.target.value_width(); ++k) sum += static_cast<double>(k) * at(k);
  return sum / at(0);
}

std::uint8_t SurrogateSearch::category_side(const SplitRecord& split, double v) const {
  if (v != v) return no_side;
  const auto code = static_cast<std::uint32_t>(v);
  if (std::binary_search(split.left_codes.begin(), split.left_codes.end(), code)) return left_side;
  if (std::binary_search(split.right_codes.begin(), split.right_codes.end(), code)) return right_side;
  return params_.rpart ? stays : no_side;  // only rows of weight 0 have it
}

SurrogateSearch::Agreement SurrogateSearch::sum_sides(std::span<const Row> rows,
                                                      std::span<const std::uint8_t> side) const {
  Agreement sum;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (side[i] == left_side) sum.left += rules_.case_weight(rows[i]);
    if (side[i] == right_side) sum.right += rules_.case_weight(rows[i]);
  }
  return sum;
}

// Where the tree predicts x <= cut, rpart still partitions the training rows by x < cut: a value that only rows of
// weight 0 have may equal the cut.
double SurrogateSearch::open_cut(std::uint32_t f, double threshold) const {
  const bool closed = params_.rpart && !params_.fold && params_.closed_cuts[f];
  return closed ? std::nextafter(threshold, -std::numeric_limits<double>::infinity()) : threshold;
}

void SurrogateSearch::place_by(RankedSplit& surrogate, std::span<const Row> rows,
                               std::vector<std::uint8_t>& side) const {
  SplitList list;
  RankedSplit open = surrogate;
  if (!open.is_category) open.threshold = open_cut(open.feature, open.threshold);
  add(list, open);
  read_rows(rules_.table.columns[surrogate.feature], rows.data(), rows.size(), [&](std::size_t i, double v) {
    if (side[i] != no_side) return;
    const SplitList::Side s = list.side_of(0, v);
    if (s == SplitList::Side::unknown) return;
    side[i] = s == SplitList::Side::left ? left_side : right_side;
    ++surrogate.count;
  });
}

std::optional<RankedSplit> SurrogateSearch::find_surrogate(Worker& worker, std::uint32_t f, bool reversed,
                                                           std::span<const Row> rows,
                                                           std::span<const std::uint8_t> side) const {
  RankedSplit split;
  split.role = SplitList::surrogate;
  split.feature = f;
  split.is_category = rules_.table.columns[f].is_category();
  Agreement present;
  read_rows(rules_.table.columns[f], rows.data(), rows.size(), [&](std::size_t i, double v) {
    if (v != v) return;
    if (side[i] == left_side) present.left += rules_.case_weight(rows[i]);
    if (side[i] == right_side) present.right += rules_.case_weight(rows[i]);
  });
  const Agreement base = params_.absent_disagrees ? sum_sides(rows, side) : present;
  const double total = base.left + base.right;
  if (!(total > 0)) return std::nullopt;
  const double agreeing = split.is_category ? find_category_surrogate(f, ties_left(base, reversed), rows, side, split)
                                            : find_number_surrogate(worker, f, rows, side, present, split);
  const double majority = std::max(base.left, base.right) / total;
  split.improve = agreeing / total;
  split.adjusted = majority < 1 ? (split.improve - majority) / (1 - majority) : 0;
  if (!(split.adjusted > 1e-10)) return std::nullopt;
  return split;
}

// Cuts leave at least the weight of the two lightest rows on each side (rpart: two rows of positive weight); the first
// of equally good cuts is taken.
double SurrogateSearch::find_number_surrogate(Worker& worker, std::uint32_t f, std::span<const Row> rows,
                                              std::span<const std::uint8_t> side, const Agreement& present,
                                              RankedSplit& split) const {
  const Column& column = rules_.table.columns[f];
  const std::span<const Entry> entries = worker.sorter.sort(column, rows, true);
  const auto amount = [&](std::uint32_t i) { return side[i] <= left_side ? amount_of(rows[i]) : 0.0; };
  double on_left = 0, on_right = 0;
  for (const Entry e : entries)
    if (code_of(e) != missing_code) on_right += amount(row_of(e));
  Agreement below;
  double best = 0;
  const double least = rules_.two_lightest();
  std::uint32_t cut_below = 0, cut_above = 0;
  for (std::size_t k = 0; k < entries.size() && code_of(entries[k]) != missing_code && on_right >= least; ++k) {
    const std::uint32_t i = row_of(entries[k]);
    if (on_left >= least && code_of(entries[k]) != code_of(entries[k - 1])) {
      const double alike = below.left + (present.right - below.right);
      const double opposite = below.right + (present.left - below.left);
      if (std::max(alike, opposite) > best) {
        split.reversed = opposite > alike;
        best = std::max(alike, opposite);
        cut_below = row_of(entries[k - 1]);
        cut_above = i;
      }
    }
    if (side[i] == left_side) below.left += rules_.case_weight(rows[i]);
    if (side[i] == right_side) below.right += rules_.case_weight(rows[i]);
    on_left += amount(i);
    on_right -= amount(i);
  }
  if (best > 0)
    split.threshold = cut_of(rules_.params, f, value_at(column, rows[cut_below]), value_at(column, rows[cut_above]));
  return best;
}

// The amount a row adds to the minimum size of a side: rpart counts rows, others their weights.
double SurrogateSearch::amount_of(Row r) const {
  const double weight = rules_.case_weight(r);
  return params_.rpart ? weight > 0 : weight;
}

// Categories with equal weight on both sides follow the majority; without a majority, rpart's right side.
bool SurrogateSearch::ties_left(const Agreement& base, bool reversed) const {
  if (base.left != base.right) return base.left > base.right;
  return !params_.rpart || reversed;
}

// Each category goes where most of its weight goes.
double SurrogateSearch::find_category_surrogate(std::uint32_t f, bool ties_left, std::span<const Row> rows,
                                                std::span<const std::uint8_t> side, RankedSplit& split) const {
  struct Cell {
    Agreement weight, amount;
  };
  const Column& column = rules_.table.columns[f];
  std::vector<Cell> cells(column.n_categories + std::size_t{1});
  read_rows(column, rows.data(), rows.size(), [&](std::size_t i, double v) {
    if (v != v || side[i] > left_side) return;
    Cell& cell = cells[static_cast<std::size_t>(v)];
    const double w = rules_.case_weight(rows[i]);
    (side[i] == left_side ? cell.weight.left : cell.weight.right) += w;
    (side[i] == left_side ? cell.amount.left : cell.amount.right) += amount_of(rows[i]);
  });
  const double least = rules_.two_lightest();
  double agreeing = 0;
  double on_left = 0, on_right = 0, disagree = 0;
  for (std::uint32_t code = 0; code < cells.size(); ++code) {
    const Cell& cell = cells[code];
    if (!(cell.weight.left + cell.weight.right > 0)) continue;
    const bool left = ties_left ? cell.weight.left >= cell.weight.right : cell.weight.left > cell.weight.right;
    (left ? split.left_codes : split.right_codes).push_back(code);
    (left ? on_left : on_right) += cell.amount.left + cell.amount.right;
    disagree += left ? cell.amount.right : cell.amount.left;
    agreeing += left ? cell.weight.left : cell.weight.right;
  }
  spread_pool(column, split.left_codes, split.right_codes);
  // rpart intends to require two rows on each side, but requires two that disagree; its behaviour is reproduced
  const bool two_disagree = params_.rpart && disagree >= 2;
  const bool enough = two_disagree || (!params_.quirks && on_left >= least && on_right >= least);
  return enough ? agreeing : 0;
}

}  // namespace spinney
