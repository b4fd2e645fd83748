#include "margin/dual.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/pool.h"
#include "margin/row_cache.h"

namespace spinney {

namespace {

using Places = std::vector<std::uint32_t>;

constexpr std::size_t fewest_at_work = 64, most_at_work = 512;
constexpr std::size_t most_at_once = 256;  // rows of a problem that is a single working set
constexpr std::size_t least_tiles_per_task = 16, tiles_per_task = 64;
constexpr std::size_t rows_at_once = 64;
constexpr std::size_t steps_before_leaving_out = 2;  // per row: shrinking too early costs more than a short fit saves
constexpr std::size_t most_idle_rounds = 2;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double least_margin = 1e-5;  // relative to the radius: classes with a smaller margin count as inseparable

// Rows that were shrunk at the same time, and β at that time.
struct LeftOut {
  Places rows;
  std::vector<double> beta;
};

// A sixteenth of the rows: for a small problem the matrix of a large working set would cost more than all changed rows.
std::size_t at_work_of(std::size_t n) {
  return n <= most_at_once ? n : std::clamp(padded(n / 16), fewest_at_work, most_at_work);
}

template <class T>
class DualSolver {
 public:
  DualSolver(const KernelRows& kernel, const DualProblem& problem, const DualOptions& options, DualSolution start,
             int n_threads, Interrupt& interrupt)
      : kernel_(kernel),
        problem_(problem),
        options_(options),
        n_threads_(n_threads),
        interrupt_(interrupt),
        n_(problem.z.size()),
        n_at_work_(at_work_of(n_)),
        beta_(std::move(start.beta)),
        residual_(std::move(start.residual)),
        diagonal_(n_),
        cache_(n_, options.cache_bytes) {
    if (beta_.empty()) beta_.assign(n_, 0.0);
    for (std::size_t i = 0; i < n_; ++i) diagonal_[i] = kernel.diagonal(problem.rows[i]);
    if (residual_.empty()) {
      residual_ = problem.z;
      Places everyone(n_);
      std::iota(everyone.begin(), everyone.end(), 0u);
      bring_up_to_date(everyone, std::vector<double>(n_, 0.0));
    }
    take_all();
  }

  DualSolution solve() {
    std::size_t n_steps = 0, n_idle = 0;  // in a row: the small problem sees no step where kernel values overflow
    bool looked_again = false, is_bounded = true;
    for (;;) {
      interrupt_.check();
      const Levels levels = extremes();
      const double violation = levels.violation();
      const bool is_done =
          violation <= options_.tolerance || n_steps >= options_.most_steps || n_idle >= most_idle_rounds;
      if (active_.size() < n_ && (is_done || (!looked_again && violation <= 10 * options_.tolerance))) {
        looked_again = true;
        bring_back();
        continue;
      }
      if (is_done) return finish(levels, n_steps, is_bounded);
      if (options_.shrinking && n_steps >= steps_before_leaving_out * n_) leave_out(levels);
      choose(levels);
      const std::size_t n_new = work(violation, options_.most_steps - n_steps);
      n_steps += n_new, n_idle = n_new == 0 ? n_idle + 1 : 0;
      if (!is_separable()) {
        is_bounded = false;
        return finish(levels, n_steps, is_bounded);
      }
    }
  }

 private:
  // ---- candidate rows -----------------------------------------------------------------------------------------------

  double up(std::size_t i) const {
    if (!(beta_[i] < problem_.highest[i])) return -infinity;
    return residual_[i] + (beta_[i] >= 0 ? -problem_.insensitive : problem_.insensitive);
  }
  double down(std::size_t i) const {
    if (!(beta_[i] > problem_.lowest[i])) return infinity;
    return residual_[i] + (beta_[i] > 0 ? -problem_.insensitive : problem_.insensitive);
  }

  struct Extremes {
    double highest = -infinity, lowest = infinity;  // of the rows that may increase, and of those that may decrease
  };
  // For each side if the side sums are fixed; else for all rows, in the first element.
  struct Levels {
    Extremes of[2];

    double violation() const { return std::max(of[0].highest - of[0].lowest, of[1].highest - of[1].lowest); }
  };
  std::size_t side(std::size_t i) const { return problem_.has_side_sums() && problem_.is_below(i) ? 1 : 0; }

  Levels extremes() const {
    Levels found;
    for (const std::uint32_t i : active_) {
      Extremes& own = found.of[side(i)];
      own.highest = std::max(own.highest, up(i));
      own.lowest = std::min(own.lowest, down(i));
    }
    return found;
  }

  // ---- the working set ----------------------------------------------------------------------------------------------

  // The n rows with the largest key; ties go to the last.
  template <class Key>
  static void first_by(Places& rows, std::size_t n, Key key) {
    const auto before = [&](std::uint32_t a, std::uint32_t b) { return key(a) != key(b) ? key(a) > key(b) : a > b; };
    n = std::min(n, rows.size());
    std::nth_element(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(n), rows.end(), before);
    rows.resize(n);
    std::sort(rows.begin(), rows.end(), before);
  }

  // The n rows of a side with the largest violations, alternating between those to increase and to decrease.
  Places violators(const Levels& levels, std::size_t which, std::size_t n) const {
    const Extremes& own = levels.of[which];
    Places rising, falling, found;
    for (const std::uint32_t i : active_) {
      if (side(i) != which) continue;
      if (up(i) > own.lowest) rising.push_back(i);
      if (down(i) < own.highest) falling.push_back(i);
    }
    first_by(rising, n / 2, [&](std::uint32_t i) { return up(i); });
    first_by(falling, n / 2, [&](std::uint32_t i) { return -down(i); });
    for (std::size_t k = 0; k < std::max(rising.size(), falling.size()); ++k) {
      if (k < rising.size()) found.push_back(rising[k]);
      if (k < falling.size()) found.push_back(falling[k]);
    }
    return found;
  }

  void choose(const Levels& levels) {
    if (active_.size() <= n_at_work_) {
      at_work_ = active_;
      return;
    }
    const std::size_t most_new = n_at_work_ / 2;
    std::vector<Places> fresh;
    if (problem_.has_side_sums())
      fresh = {violators(levels, 0, most_new / 2), violators(levels, 1, most_new / 2)};
    else
      fresh = {violators(levels, 0, most_new)};
    std::vector<bool>& is_in = is_in_;
    is_in.assign(n_, false);
    Places chosen;
    const auto add = [&](std::uint32_t i) {
      if (chosen.size() < n_at_work_ && !is_in[i]) {
        is_in[i] = true;
        chosen.push_back(i);
      }
    };
    for (const Places& rows : fresh)
      for (const std::uint32_t i : rows) add(i);
    for (const std::uint32_t i : at_work_)
      if (is_free(i) && is_active_[i]) add(i);
    for (const std::uint32_t i : at_work_)
      if (is_active_[i]) add(i);
    at_work_ = std::move(chosen);
  }

  bool is_free(std::size_t i) const {
    return beta_[i] < problem_.highest[i] && beta_[i] > problem_.lowest[i] && beta_[i] != 0;
  }

  // Assigns the working set to positions in the small problem: with fixed side sums one side after the other, each
  // starting at a tile. Positions in between repeat a row that cannot move there.
  void seat() {
    seats_ = at_work_;
    split_ = padded(seats_.size());
    first_spare_ = split_;
    if (!problem_.has_side_sums()) return;
    const auto below =
        std::stable_partition(seats_.begin(), seats_.end(), [&](std::uint32_t i) { return side(i) == 0; });
    first_spare_ = static_cast<std::size_t>(below - seats_.begin());
    split_ = padded(first_spare_);
    seats_.insert(below, split_ - first_spare_, seats_[0]);
  }
  bool is_spare(std::size_t seat) const { return seat >= first_spare_ && seat < split_; }

  // Solves the problem of the working set, and brings the pulls of all active rows up to date.
  std::size_t work(double violation, std::size_t most_steps) {
    seat();
    const std::size_t n = seats_.size(), stride = padded(n);
    const bool is_whole = at_work_.size() == n_;
    fill_matrix(n, stride);
    std::vector<double> numbers(7 * stride, 0.0);
    double *beta = numbers.data(), *residual = beta + stride, *up = residual + stride, *down = up + stride,
           *lowest = down + stride, *highest = lowest + stride, *diagonal = highest + stride;
    for (std::size_t k = 0; k < n; ++k) {
      if (is_spare(k)) continue;
      const std::uint32_t i = seats_[k];
      beta[k] = beta_[i], residual[k] = residual_[i];
      lowest[k] = problem_.lowest[i], highest[k] = problem_.highest[i], diagonal[k] = diagonal_[i];
    }
    const auto take_over = [&] {  // for all rows
      for (std::size_t k = 0; k < n; ++k)
        if (!is_spare(k)) beta_[seats_[k]] = beta[k], residual_[seats_[k]] = residual[k];
    };
    const double tolerance = is_whole ? options_.tolerance : std::max(0.1 * violation, 0.5 * options_.tolerance);
    std::size_t n_steps = 0;
    for (;;) {
      const std::size_t most = std::min(most_steps - n_steps, std::size_t{10'000});
      const SmallDualEnd end =
          solve_of<T>(margin_kernels())({n, stride, split_, matrix_.data(), diagonal, lowest, highest, beta, residual,
                                         problem_.insensitive, tolerance, up, down, most});
      n_steps += end.n_steps;
      interrupt_.check();
      if (end.n_steps < most || n_steps >= most_steps) break;
      if (!is_whole && n_steps >= 50 * n) break;
      if (is_whole && std::isinf(problem_.highest[0]) != std::isinf(problem_.lowest[0])) {
        take_over();
        if (!is_separable()) return n_steps;
      }
    }
    if (is_whole) {
      take_over();
      return n_steps;
    }
    Places changed;
    std::vector<double> steps;
    for (std::size_t k = 0; k < n; ++k) {
      if (is_spare(k) || beta[k] == beta_[seats_[k]]) continue;
      changed.push_back(seats_[k]);
      steps.push_back(beta[k] - beta_[seats_[k]]);
      beta_[seats_[k]] = beta[k];
    }
    follow(changed, steps);
    return n_steps;
  }

  void fill_matrix(std::size_t n, std::size_t stride) {
    matrix_.assign(n * stride, T{0});
    Places unknown, rows;
    std::vector<T*> out;
    for (std::size_t k = 0; k < n; ++k) {
      T* to = matrix_.data() + k * stride;
      if (cache_.has(seats_[k])) {
        const T* from = cache_.values(seats_[k]);
        for (std::size_t m = 0; m < n; ++m) to[m] = from[place_[seats_[m]]];
      } else {
        unknown.push_back(problem_.rows[seats_[k]]);
        out.push_back(to);
      }
    }
    if (unknown.empty()) return;
    for (const std::uint32_t i : seats_) rows.push_back(problem_.rows[i]);
    const KernelColumns columns = kernel_.columns(rows);
    const std::size_t n_tasks = (unknown.size() + rows_at_once - 1) / rows_at_once;
    parallel_for_if_worth(
        5.0 * static_cast<double>(unknown.size() * n), n_tasks, n_threads_, [&](std::size_t task, int) {
          const std::size_t first = task * rows_at_once, m = std::min(rows_at_once, unknown.size() - first);
          kernel_.fill<T>(std::span(unknown).subspan(first, m), columns, 0, columns.n_tiles(), out.data() + first);
        });
  }

  // ---- residuals of all other rows ----------------------------------------------------------------------------------

  void follow(const Places& changed, const std::vector<double>& steps) {
    Places fresh;
    for (const std::uint32_t i : changed)
      if (!cache_.has(i)) fresh.push_back(i);
    cache_.make_room(changed, fresh);
    std::vector<bool> is_fresh(changed.size());  // its values are not computed yet
    std::size_t k = 0;
    for (std::size_t c = 0; c < changed.size(); ++c)
      is_fresh[c] = k < fresh.size() && fresh[k] == changed[c] ? (++k, true) : false;
    double* residual = active_residual_.data();
    for (std::size_t i = 0; i < active_.size(); ++i) residual[i] = residual_[active_[i]];
    subtract(columns_, changed, steps, residual, &is_fresh);
    for (std::size_t i = 0; i < active_.size(); ++i) residual_[active_[i]] = residual[i];
  }

  // to -= Σ steps K(changed, columns). is_fresh: the columns are the active ones, and the cache is used.
  void subtract(const KernelColumns& columns, const Places& changed, const std::vector<double>& steps, double* to,
                const std::vector<bool>* is_fresh) {
    const std::size_t n_tiles = columns.n_tiles(), n_even = n_tiles / (4 * static_cast<std::size_t>(n_threads_));
    const std::size_t per_task = std::clamp(n_even, least_tiles_per_task, tiles_per_task);
    const std::size_t n_tasks = (n_tiles + per_task - 1) / per_task;
    const double work_ns = 5.0 * static_cast<double>(columns.n * changed.size());
    parallel_for_if_worth(work_ns, n_tasks, n_threads_, [&](std::size_t task, int) {
      interrupt_.check();
      const std::size_t first = task * per_task, n = std::min(per_task, n_tiles - first);
      std::vector<T> scratch(rows_at_once * n * tile_rows);
      for (std::size_t c = 0; c < changed.size(); c += rows_at_once) {
        const std::size_t m = std::min(rows_at_once, changed.size() - c);
        const T* values[rows_at_once];
        T* out[rows_at_once];
        std::uint32_t wanted[rows_at_once];
        std::size_t n_wanted = 0;
        for (std::size_t k = 0; k < m; ++k) {
          const std::uint32_t i = changed[c + k];
          T* own = is_fresh != nullptr && cache_.has(i) ? cache_.values(i) + first * tile_rows
                                                        : scratch.data() + k * n * tile_rows;
          if (is_fresh == nullptr || (*is_fresh)[c + k]) {
            wanted[n_wanted] = problem_.rows[i];
            out[n_wanted++] = own;
          }
          values[k] = own;
        }
        kernel_.fill<T>({wanted, n_wanted}, columns, first, n, out);
        subtract_of<T>(margin_kernels())(values, steps.data() + c, m, n * tile_rows, to + first * tile_rows);
      }
    });
  }

  // ---- shrinking ----------------------------------------------------------------------------------------------------

  void take_all() {
    active_.resize(n_);
    std::iota(active_.begin(), active_.end(), 0u);
    is_active_.assign(n_, true);
    place_ = active_;
    left_out_.clear();
    set_columns();
    cache_.clear(padded(n_));
  }

  void set_columns() {
    Places rows;
    if (n_ <= n_at_work_) return;
    for (const std::uint32_t i : active_) rows.push_back(problem_.rows[i]);
    columns_ = kernel_.columns(rows);
    active_residual_.assign(padded(active_.size()), 0.0);
  }

  // At a bound, and further on its side than any violating row of the other side.
  bool is_firm(std::size_t i, const Levels& levels) const {
    const auto [highest, lowest] = levels.of[side(i)];
    const bool may_rise = beta_[i]<problem_.highest[i], may_fall = beta_[i]> problem_.lowest[i];
    if (may_rise && may_fall && (beta_[i] != 0 || problem_.insensitive == 0)) return false;
    return (!may_rise || up(i) < lowest) && (!may_fall || down(i) > highest);
  }

  void leave_out(const Levels& levels) {
    if (n_ <= n_at_work_) return;
    std::size_t n_firm = 0;
    for (const std::uint32_t i : active_) n_firm += is_firm(i, levels);
    if (n_firm * 5 < active_.size() || active_.size() - n_firm < n_at_work_) return;
    LeftOut left{{}, beta_};
    Places retained, places;
    for (std::size_t k = 0; k < active_.size(); ++k) {
      if (is_firm(active_[k], levels)) {
        left.rows.push_back(active_[k]);
        is_active_[active_[k]] = false;
      } else {
        place_[active_[k]] = static_cast<std::uint32_t>(retained.size());
        retained.push_back(active_[k]);
        places.push_back(static_cast<std::uint32_t>(k));
      }
    }
    left_out_.push_back(std::move(left));
    active_ = std::move(retained);
    set_columns();
    cache_.retain_places(places, padded(active_.size()), n_threads_);
  }

  void bring_back() {
    for (const LeftOut& left : left_out_) bring_up_to_date(left.rows, left.beta);
    take_all();
  }

  // Updates the residuals of some rows from an earlier β.
  void bring_up_to_date(const Places& places, const std::vector<double>& beta_then) {
    Places changed, rows;
    std::vector<double> steps;
    for (std::uint32_t i = 0; i < n_; ++i)
      if (beta_[i] != beta_then[i]) {
        changed.push_back(i);
        steps.push_back(beta_[i] - beta_then[i]);
      }
    if (changed.empty()) return;
    for (const std::uint32_t i : places) rows.push_back(problem_.rows[i]);
    const KernelColumns columns = kernel_.columns(rows);
    std::vector<double> residual(padded(rows.size()));
    for (std::size_t k = 0; k < rows.size(); ++k) residual[k] = residual_[places[k]];
    subtract(columns, changed, steps, residual.data(), nullptr);
    for (std::size_t k = 0; k < rows.size(); ++k) residual_[places[k]] = residual[k];
  }

  // ---- result -------------------------------------------------------------------------------------------------------

  // Without bounds, β diverges if no margin separates the rows. The weighted points of the two convex hulls are at
  // least twice the margin apart, so a short distance between them reveals it.
  bool is_separable() const {
    if (!std::isinf(problem_.highest[0]) && !std::isinf(problem_.lowest[0])) return true;
    double square = 0, total = 0, radius = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      square += beta_[i] * (problem_.z[i] - residual_[i]);
      total += std::abs(beta_[i]);
      radius = std::max(radius, diagonal_[i]);
    }
    return std::sqrt(std::max(square, 0.0)) > least_margin * total * std::sqrt(radius);
  }

  // The common residual of a side's free rows.
  double level(const Levels& levels, std::size_t which) const {
    const auto [highest, lowest] = levels.of[which];
    double sum = 0;
    std::size_t n_free = 0;
    for (std::size_t i = 0; i < n_; ++i)
      if (side(i) == which && is_free(i)) {
        sum += up(i);
        ++n_free;
      }
    if (!std::isfinite(highest)) return std::isfinite(lowest) ? lowest : 0.0;  // all rows are at one side's bounds
    if (!std::isfinite(lowest)) return highest;
    return n_free > 0 ? sum / static_cast<double>(n_free) : (highest + lowest) / 2;
  }

  DualSolution finish(const Levels& levels, std::size_t n_steps, bool is_bounded) {
    double intercept = level(levels, 0), half_width = 0.0;
    if (problem_.has_side_sums()) {
      const double below = level(levels, 1);
      half_width = (intercept - below) / 2;
      intercept = (intercept + below) / 2;
    }
    return {std::move(beta_), std::move(residual_), intercept, levels.violation(), half_width, n_steps, is_bounded};
  }

  const KernelRows& kernel_;
  const DualProblem& problem_;
  const DualOptions& options_;
  const int n_threads_;
  Interrupt& interrupt_;
  const std::size_t n_, n_at_work_;
  std::vector<double> beta_, residual_, diagonal_;
  Places active_, place_, at_work_, seats_;
  std::size_t split_ = 0, first_spare_ = 0;
  std::vector<bool> is_active_, is_in_;
  KernelColumns columns_;
  std::vector<double> active_residual_;
  std::vector<T> matrix_;
  std::vector<LeftOut> left_out_;
  RowCache<T> cache_;
};

}  // namespace

DualSolution solve_dual(const KernelRows& kernel, const DualProblem& problem, const DualOptions& options,
                        DualSolution start, int n_threads, Interrupt& interrupt) {
  if (options.is_double)
    return DualSolver<double>(kernel, problem, options, std::move(start), n_threads, interrupt).solve();
  return DualSolver<float>(kernel, problem, options, std::move(start), n_threads, interrupt).solve();
}

}  // namespace spinney
