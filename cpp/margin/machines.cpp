#include "margin/machines.h"

#include <algorithm>
#include <cmath>

#include "base/pool.h"

namespace spinney {

namespace {

constexpr std::size_t rows_per_task = 64;
constexpr std::size_t near_numbers = std::size_t{1} << 15;  // of tiles that stay in the second-level cache

// Some support vectors, interleaved in tiles, and their squared lengths.
struct Tiles {
  Tiles(const Machines& machines, std::size_t first, std::size_t n)
      : n_tiles(n), terms(n * machines.n_terms * tile_rows, 0.0), squares(n * tile_rows, 0.0) {
    const std::size_t d = machines.n_terms;
    for (std::size_t tile = 0; tile < n; ++tile) {
      const std::size_t from = (first + tile) * tile_rows, n_lanes = std::min(tile_rows, machines.n_vectors - from);
      const double* vectors = machines.vectors + from * d;
      double *to = terms.data() + tile * d * tile_rows, *square = squares.data() + tile * tile_rows;
      for (std::size_t k = 0; k < d; ++k)
        for (std::size_t lane = 0; lane < n_lanes; ++lane) {
          const double number = vectors[lane * d + k];
          to[k * tile_rows + lane] = number;
          square[lane] += number * number;
        }
    }
  }
  std::size_t n_tiles;
  std::vector<double> terms, squares;
};

DualProblem with_penalty(const DualProblem& unit, double penalty) {
  DualProblem problem = unit;
  for (auto* bounds : {&problem.lowest, &problem.highest})
    for (double& bound : *bounds) bound = bound == 0 ? 0.0 : bound * penalty;  // the penalty may be infinite
  if (problem.has_side_sums()) problem.side_sum *= penalty;
  return problem;
}

// With fixed side sums: the first rows of each side start at their bounds, as many as the sum requires.
DualSolution first_start(const DualProblem& problem) {
  DualSolution start;
  if (!problem.has_side_sums()) return start;
  double left[] = {problem.side_sum, problem.side_sum};
  for (std::size_t i = 0; i < problem.z.size(); ++i) {
    const bool is_below = problem.is_below(i);
    const double size = std::min(is_below ? -problem.lowest[i] : problem.highest[i], left[is_below]);
    left[is_below] -= size;
    start.beta.push_back(is_below ? -size : size);
  }
  return start;
}

// A solution times a factor satisfies bounds scaled by it, and z - K beta follows.
DualSolution scaled(const DualSolution& from, const DualProblem& unit, double factor) {
  DualSolution start;
  for (std::size_t i = 0; i < from.beta.size(); ++i) {
    start.beta.push_back(from.beta[i] * factor);
    start.residual.push_back(unit.z[i] - (unit.z[i] - from.residual[i]) * factor);
  }
  return start;
}

// Rounding may move a scaled solution slightly beyond a bound.
void clip_to_bounds(DualSolution& start, const DualProblem& problem) {
  for (std::size_t i = 0; i < start.beta.size(); ++i)
    start.beta[i] = std::clamp(start.beta[i], problem.lowest[i], problem.highest[i]);
}

std::vector<DualSolution> fit_path(const KernelRows& kernel, const DualProblem& unit, std::span<const double> penalties,
                                   const DualOptions& options, int n_threads, Interrupt& interrupt) {
  std::vector<DualSolution> found;
  for (std::size_t k = 0; k < penalties.size(); ++k) {
    const DualProblem problem = with_penalty(unit, penalties[k]);
    DualSolution start = first_start(problem);
    if (k > 0 && std::isfinite(penalties[k])) {
      start = scaled(found.back(), unit, penalties[k] / penalties[k - 1]);
      clip_to_bounds(start, problem);
    }
    found.push_back(solve_dual(kernel, problem, options, std::move(start), n_threads, interrupt));
  }
  return found;
}

}  // namespace

std::vector<std::vector<DualSolution>> fit_machines(const KernelRows& kernel, const std::vector<DualProblem>& problems,
                                                    std::span<const double> penalties, const DualOptions& options,
                                                    int n_threads, Interrupt& interrupt) {
  std::vector<std::vector<DualSolution>> found(problems.size());
  if (problems.size() == 1) {  // not as a task, inside which nothing runs in parallel
    found[0] = fit_path(kernel, problems[0], penalties, options, n_threads, interrupt);
    return found;
  }
  DualOptions own = options;
  own.cache_bytes /=
      std::max<std::size_t>(1, std::min<std::size_t>(problems.size(), static_cast<std::size_t>(n_threads)));
  parallel_for(problems.size(), n_threads, [&](std::size_t m, int) {
    found[m] = fit_path(kernel, problems[m], penalties, own, n_threads, interrupt);
  });
  return found;
}

void decide(const Machines& machines, const double* rows, std::size_t n_rows, int n_threads, Interrupt& interrupt,
            double* out) {
  const std::size_t n_vectors = machines.n_vectors, d = machines.n_terms, n_machines = machines.intercepts.size();
  const bool is_given = machines.vectors == nullptr;
  const std::size_t n_tasks = (n_rows + rows_per_task - 1) / rows_per_task, stride = padded(n_vectors);
  // Tasks share all tiles; a single task makes the few that it needs at a time, which memory need not hold.
  const std::size_t n_tiles = is_given ? 0 : stride / tile_rows, n_near = near_numbers / (tile_rows * (d + 1)) + 1;
  const Tiles shared(machines, 0, n_tasks > 1 ? n_tiles : 0);
  const MarginKernels& kernels = margin_kernels();
  const double cost = static_cast<double>(n_rows * n_vectors) * (is_given ? 1.0 : 5.0);
  parallel_for_if_worth(cost, n_tasks, n_threads, [&](std::size_t task, int) {
    interrupt.check();
    const std::size_t first = task * rows_per_task, n = std::min(rows_per_task, n_rows - first);
    std::vector<double> values(is_given ? 0 : n * stride), own(n);
    std::vector<const double*> queries(n);
    std::vector<double*> to(n);
    for (std::size_t i = 0; i < n; ++i) {
      queries[i] = rows + (first + i) * (is_given ? n_vectors : d);
      for (std::size_t k = 0; !is_given && k < d; ++k) own[i] += queries[i][k] * queries[i][k];
    }
    const auto fill = [&](const Tiles& tiles, std::size_t first_tile) {
      for (std::size_t i = 0; i < n; ++i) to[i] = values.data() + i * stride + first_tile * tile_rows;
      kernels.block_long({&machines.kernel, queries.data(), own.data(), n, d, tiles.terms.data(), tiles.squares.data(),
                          tiles.n_tiles, to.data()});
    };
    if (shared.n_tiles > 0) {
      fill(shared, 0);
    } else {
      for (std::size_t tile = 0; tile < n_tiles; tile += n_near)
        fill(Tiles(machines, tile, std::min(n_near, n_tiles - tile)), tile);
    }
    for (std::size_t i = 0; i < n; ++i) {
      double* row = out + (first + i) * n_machines;
      const double* value = is_given ? queries[i] : values.data() + i * stride;
      std::fill(row, row + n_machines, 0.0);
      for (const MachinePart& part : machines.parts)
        row[part.machine] += kernels.dot(part.coefficients, value + part.first, part.n);
      for (std::size_t m = 0; m < n_machines; ++m) row[m] += machines.intercepts[m];
    }
  });
}

}  // namespace spinney
