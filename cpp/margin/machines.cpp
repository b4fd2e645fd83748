#include "margin/machines.h"

#include <algorithm>
#include <cmath>

#include "base/pool.h"

namespace spinney {

namespace {

constexpr std::size_t rows_per_task = 64;

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
  std::vector<double> tiles(padded(n_vectors) * d, 0.0), squares(padded(n_vectors), 0.0);
  const auto square = [&](const double* row) {
    double sum = 0;
    for (std::size_t k = 0; k < d; ++k) sum += row[k] * row[k];
    return sum;
  };
  const bool is_given = machines.vectors == nullptr;
  for (std::size_t i = 0; !is_given && i < n_vectors; ++i) {
    const double* from = machines.vectors + i * d;
    for (std::size_t k = 0; k < d; ++k) tiles[(i / tile_rows * d + k) * tile_rows + i % tile_rows] = from[k];
    squares[i] = square(from);
  }
  const MarginKernels& kernels = margin_kernels();
  const std::size_t n_tasks = (n_rows + rows_per_task - 1) / rows_per_task, stride = padded(n_vectors);
  const double cost = static_cast<double>(n_rows * n_vectors) * (is_given ? 1.0 : 5.0);
  parallel_for_if_worth(cost, n_tasks, n_threads, [&](std::size_t task, int) {
    interrupt.check();
    const std::size_t first = task * rows_per_task, n = std::min(rows_per_task, n_rows - first);
    std::vector<double> values(is_given ? 0 : n * stride), own(n);
    std::vector<const double*> queries(n);
    std::vector<double*> to(n);
    for (std::size_t i = 0; i < n; ++i) {
      queries[i] = rows + (first + i) * (is_given ? n_vectors : d);
      if (is_given) continue;
      to[i] = values.data() + i * stride;
      own[i] = square(queries[i]);
    }
    if (!is_given)
      kernels.block_long({&machines.kernel, queries.data(), own.data(), n, d, tiles.data(), squares.data(),
                          stride / tile_rows, to.data()});
    for (std::size_t i = 0; i < n; ++i) {
      double* row = out + (first + i) * n_machines;
      const double* value = is_given ? queries[i] : to[i];
      std::fill(row, row + n_machines, 0.0);
      for (const MachinePart& part : machines.parts)
        row[part.machine] += kernels.dot(part.coefficients, value + part.first, part.n);
      for (std::size_t m = 0; m < n_machines; ++m) row[m] += machines.intercepts[m];
    }
  });
}

}  // namespace spinney
