// Kernel machines and the perceptron, on every instruction set, compared with plain loops.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "base/interrupt.h"
#include "check.h"
#include "every_isa.h"
#include "margin/linear.h"
#include "margin/machines.h"
#include "margin/perceptron.h"

using namespace spinney;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Table {
  std::size_t n, d;
  std::vector<double> terms;  // term-major
  std::vector<double> side;

  double at(std::size_t i, std::size_t k) const { return terms[k * n + i]; }
};

// Two overlapping classes; some rows are equal.
Table two_classes(std::size_t n, std::size_t d, std::uint64_t seed) {
  std::mt19937_64 g(seed);
  std::normal_distribution<double> normal;
  Table table{n, d, std::vector<double>(n * d), std::vector<double>(n)};
  for (std::size_t i = 0; i < n; ++i) table.side[i] = i < n / 2 ? 1.0 : -1.0;
  for (std::size_t k = 0; k < d; ++k)
    for (std::size_t i = 0; i < n; ++i)
      table.terms[k * n + i] = std::round(4 * (normal(g) + (k == 0 ? table.side[i] : 0.0))) / 4;
  return table;
}

double plain_value(const Kernel& kernel, const Table& table, std::size_t i, std::size_t j) {
  double dot = 0, apart = 0;
  for (std::size_t k = 0; k < table.d; ++k) {
    dot += table.at(i, k) * table.at(j, k);
    apart += (table.at(i, k) - table.at(j, k)) * (table.at(i, k) - table.at(j, k));
  }
  if (kernel.kind == KernelKind::linear) return dot;
  if (kernel.kind == KernelKind::rbf) return std::exp(-kernel.gamma * apart);
  const double base = kernel.gamma * dot + kernel.coef0;
  return kernel.kind == KernelKind::sigmoid ? std::tanh(base) : std::pow(base, kernel.degree);
}

std::vector<double> plain_matrix(const Kernel& kernel, const Table& table) {
  std::vector<double> found(table.n * table.n);
  for (std::size_t i = 0; i < table.n; ++i)
    for (std::size_t j = 0; j < table.n; ++j) found[i * table.n + j] = plain_value(kernel, table, i, j);
  return found;
}

DualProblem problem_of(const Table& table, double penalty) {
  DualProblem problem;
  for (std::size_t i = 0; i < table.n; ++i) {
    problem.rows.push_back(static_cast<std::uint32_t>(i));
    problem.z.push_back(table.side[i]);
    problem.lowest.push_back(table.side[i] > 0 ? 0.0 : -penalty);
    problem.highest.push_back(table.side[i] > 0 ? penalty : 0.0);
  }
  return problem;
}

DualProblem value_problem(const Table& table, double penalty, double insensitive) {
  DualProblem problem = problem_of(table, penalty);
  for (std::size_t i = 0; i < table.n; ++i) {
    problem.z[i] = std::sin(table.at(i, 0)) + table.at(i, table.d - 1);
    problem.lowest[i] = -penalty, problem.highest[i] = penalty;
  }
  problem.insensitive = insensitive;
  return problem;
}

DualOptions options_of(double tolerance, bool is_double = true) {
  return {tolerance, std::size_t{1} << 24, std::size_t{1} << 40, true, is_double};
}

double objective(const DualProblem& p, const std::vector<double>& matrix, const std::vector<double>& beta) {
  double total = 0;
  const std::size_t n = beta.size();
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < n; ++j) sum += matrix[p.rows[i] * n + p.rows[j]] * beta[j];
    total += beta[i] * (sum / 2 - p.z[i]) + p.insensitive * std::abs(beta[i]);
  }
  return total;
}

// Slow reference implementation: the first pair, in order, that gains from a step along the parabola of the objective;
// sweeps over all pairs until none gains.
std::vector<double> slow_solution(const DualProblem& p, const std::vector<double>& matrix) {
  const std::size_t n = p.z.size();
  std::vector<double> beta(n, 0.0), sums(n, 0.0);
  for (int sweep = 0; sweep < 4000; ++sweep) {
    double most = 0;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        if (i == j) continue;
        const double curvature = std::max(matrix[i * n + i] + matrix[j * n + j] - 2 * matrix[i * n + j], 1e-12);
        const double up = p.insensitive * (beta[i] >= 0 ? 1 : -1), down = p.insensitive * (beta[j] > 0 ? 1 : -1);
        const double slope = (p.z[i] - sums[i] - up) - (p.z[j] - sums[j] - down);
        double step = std::max(slope, 0.0) / curvature;
        step = std::min({step, p.highest[i] - beta[i], beta[j] - p.lowest[j]});
        if (p.insensitive > 0 && beta[i] < 0) step = std::min(step, -beta[i]);
        if (p.insensitive > 0 && beta[j] > 0) step = std::min(step, beta[j]);
        if (step <= 0) continue;
        beta[i] += step, beta[j] -= step;
        most = std::max(most, step * slope);
        for (std::size_t k = 0; k < n; ++k) sums[k] += step * (matrix[i * n + k] - matrix[j * n + k]);
      }
    if (most < 1e-13) break;
  }
  return beta;
}

// The largest gain per unit of a pair, from the matrix alone; within sides, if side sums are fixed.
double violation(const DualProblem& p, const std::vector<double>& matrix, const std::vector<double>& beta,
                 std::size_t n_rows) {
  double highest[2] = {-infinity, -infinity}, lowest[2] = {infinity, infinity};
  for (std::size_t i = 0; i < beta.size(); ++i) {
    double residual = p.z[i];
    for (std::size_t j = 0; j < beta.size(); ++j) residual -= matrix[p.rows[i] * n_rows + p.rows[j]] * beta[j];
    const int side = p.has_side_sums() && p.is_below(i);
    const double up = residual - p.insensitive * (beta[i] >= 0 ? 1 : -1);
    const double down = residual - p.insensitive * (beta[i] > 0 ? 1 : -1);
    if (beta[i] < p.highest[i]) highest[side] = std::max(highest[side], up);
    if (beta[i] > p.lowest[i]) lowest[side] = std::min(lowest[side], down);
  }
  return std::max(highest[0] - lowest[0], highest[1] - lowest[1]);
}

bool is_within(const DualProblem& p, const std::vector<double>& beta) {
  for (std::size_t i = 0; i < beta.size(); ++i)
    if (!(beta[i] >= p.lowest[i] && beta[i] <= p.highest[i])) return false;
  return true;
}

double sum_of_side(const DualProblem& p, const std::vector<double>& beta, bool is_below) {
  double sum = 0;
  for (std::size_t i = 0; i < beta.size(); ++i) sum += p.is_below(i) == is_below ? beta[i] : 0.0;
  return sum;
}

const std::vector<Kernel> all_kernels{{KernelKind::linear, 1.0, 0.0, 1},
                                      {KernelKind::polynomial, 0.3, 1.0, 2},
                                      {KernelKind::rbf, 0.4, 0.0, 1},
                                      {KernelKind::sigmoid, 0.1, 0.5, 1}};

}  // namespace

TEST(kernel_values_are_those_of_plain_loops_on_every_instruction_set) {
  const Table table = two_classes(43, 5, 1);
  std::vector<std::uint32_t> rows(table.n);
  for (std::uint32_t i = 0; i < table.n; ++i) rows[i] = i;
  for (const Kernel& kernel : all_kernels) {
    const KernelRows values(table.terms.data(), table.n, table.d, kernel);
    const KernelColumns columns = values.columns(rows);
    std::vector<double> by_row(table.n * table.d), squares(table.n, 0.0);
    std::vector<const double*> queries;
    for (std::size_t i = 0; i < table.n; ++i) {
      for (std::size_t k = 0; k < table.d; ++k) {
        by_row[i * table.d + k] = table.at(i, k);
        squares[i] += table.at(i, k) * table.at(i, k);
      }
      queries.push_back(by_row.data() + i * table.d);
    }
    const std::size_t width = padded(table.n);
    std::vector<std::vector<double>> found;
    std::vector<std::vector<float>> found_short;
    for (const MarginKernels* kernels : of_every_isa([](auto isa) { return &margin_kernels_of(isa); })) {
      std::vector<double>& out = found.emplace_back(table.n * width);
      std::vector<float>& out_short = found_short.emplace_back(table.n * width);
      std::vector<double*> to;
      std::vector<float*> to_short;
      for (std::size_t i = 0; i < table.n; ++i) to.push_back(out.data() + i * width);
      for (std::size_t i = 0; i < table.n; ++i) to_short.push_back(out_short.data() + i * width);
      kernels->block_long({&kernel, queries.data(), squares.data(), table.n, table.d, columns.tiles.data(),
                           columns.squares.data(), columns.n_tiles(), to.data()});
      kernels->block_short({&kernel, queries.data(), squares.data(), table.n, table.d, columns.tiles.data(),
                            columns.squares.data(), columns.n_tiles(), to_short.data()});
      CHECK(out == found[0] && out_short == found_short[0]);
    }
    for (std::size_t i = 0; i < table.n; ++i)
      for (std::size_t j = 0; j < table.n; ++j) {
        const double plain = plain_value(kernel, table, i, j), size = 1 + std::abs(plain);
        CHECK_NEAR(found[0][i * width + j], plain, 1e-12 * size);
        CHECK_NEAR(static_cast<double>(found_short[0][i * width + j]), plain, 1e-7 * size);
        CHECK_EQ(found[0][i * width + j], found[0][j * width + i]);
      }
  }
}

TEST(small_problems_reach_the_optimum_of_the_reference) {
  Interrupt interrupt;
  for (const std::size_t n : {2, 3, 9, 40})
    for (const Kernel& kernel : all_kernels) {
      if (kernel.kind == KernelKind::sigmoid) continue;  // it has several optima
      const Table table = two_classes(n, 3, n);
      const KernelRows rows(table.terms.data(), table.n, table.d, kernel);
      const std::vector<double> matrix = plain_matrix(kernel, table);
      for (const double penalty : {0.1, 5.0})
        for (const DualProblem& problem : {problem_of(table, penalty), value_problem(table, penalty, 0.2)}) {
          const DualSolution found = solve_dual(rows, problem, options_of(1e-9), {}, 1, interrupt);
          const double best = objective(problem, matrix, slow_solution(problem, matrix));
          CHECK_NEAR(objective(problem, matrix, found.beta), best, 1e-6 * (1 + std::abs(best)));
          CHECK(is_within(problem, found.beta));
          CHECK(violation(problem, matrix, found.beta, n) <= 1e-8);
          CHECK(found.violation <= 1e-9);
        }
    }
}

TEST(large_problems_are_optimal_with_any_cache_and_shrinking) {
  Interrupt interrupt;
  const Table table = two_classes(300, 4, 7);
  const Kernel kernel{KernelKind::rbf, 0.3, 0.0, 1};
  const KernelRows rows(table.terms.data(), table.n, table.d, kernel);
  const std::vector<double> matrix = plain_matrix(kernel, table);
  for (const DualProblem& problem : {problem_of(table, 10.0), value_problem(table, 10.0, 0.05)}) {
    DualOptions options = options_of(1e-6);
    const DualSolution first = solve_dual(rows, problem, options, {}, 1, interrupt);
    const double best = objective(problem, matrix, first.beta);
    CHECK(violation(problem, matrix, first.beta, table.n) <= 1e-5);
    CHECK(first.beta == solve_dual(rows, problem, options, {}, 4, interrupt).beta);
    options.cache_bytes = 1 << 17;  // a few dozen rows
    CHECK(first.beta == solve_dual(rows, problem, options, {}, 1, interrupt).beta);
    options.shrinking = false;
    const DualSolution unshrunk = solve_dual(rows, problem, options, {}, 1, interrupt);
    CHECK_NEAR(objective(problem, matrix, unshrunk.beta), best, 1e-7 * std::abs(best));
    const DualSolution given = solve_dual(KernelRows(matrix.data(), table.n), problem, options, {}, 2, interrupt);
    CHECK_NEAR(objective(problem, matrix, given.beta), best, 1e-7 * std::abs(best));
    options.is_double = false;
    options.tolerance = 1e-3;
    const DualSolution single = solve_dual(rows, problem, options, {}, 1, interrupt);
    CHECK(violation(problem, matrix, single.beta, table.n) <= 2e-3);
  }
}

TEST(sides_keep_their_sums) {
  Interrupt interrupt;
  for (const std::size_t n : {10, 60, 280}) {
    const Table table = two_classes(n, 3, n + 1);
    const Kernel kernel{KernelKind::rbf, 0.3, 0.0, 1};
    const KernelRows rows(table.terms.data(), table.n, table.d, kernel);
    const std::vector<double> matrix = plain_matrix(kernel, table);
    for (const double fraction : {0.1, 0.5, 1.0})
      for (const bool of_values : {false, true}) {
        DualProblem problem = of_values ? value_problem(table, 1.0, 0.0) : problem_of(table, 1.0);
        if (of_values)  // each row again, on the other side
          for (std::size_t i = 0; i < n; ++i) {
            problem.rows.push_back(problem.rows[i]), problem.z.push_back(problem.z[i]);
            problem.lowest[i] = 0.0, problem.lowest.push_back(-1.0), problem.highest.push_back(0.0);
          }
        else
          problem.z.assign(n, 0.0);
        problem.side_sum = fraction * static_cast<double>(n / 2);
        const std::vector<double> penalties{1.0};
        const auto found = fit_machines(rows, {problem}, penalties, options_of(1e-6), 1, interrupt)[0][0];
        CHECK(is_within(problem, found.beta));
        CHECK_NEAR(sum_of_side(problem, found.beta, false), problem.side_sum, 1e-9 * problem.side_sum);
        CHECK_NEAR(sum_of_side(problem, found.beta, true), -problem.side_sum, 1e-9 * problem.side_sum);
        CHECK(violation(problem, matrix, found.beta, n) <= 1e-5);
        CHECK(of_values ? found.half_width > -1e-5 : found.half_width < 1e-5);
        CHECK(found.beta == fit_machines(rows, {problem}, penalties, options_of(1e-6), 3, interrupt)[0][0].beta);
      }
  }
}

TEST(a_hard_margin_is_found_or_reported_as_missing) {
  Interrupt interrupt;
  const Table apart{4, 1, {1.0, 2.0, -1.0, -3.0}, {1, 1, -1, -1}};
  const Kernel kernel{KernelKind::linear, 1.0, 0.0, 1};
  const DualProblem problem = problem_of(apart, infinity);
  const DualSolution found =
      solve_dual(KernelRows(apart.terms.data(), 4, 1, kernel), problem, options_of(1e-9), {}, 1, interrupt);
  CHECK(found.is_bounded);
  CHECK_NEAR(found.beta[0], 0.5, 1e-9);
  CHECK_NEAR(found.beta[2], -0.5, 1e-9);
  CHECK_NEAR(found.intercept, 0.0, 1e-9);
  const Table mixed{3, 1, {0.0, 2.0, 1.0}, {1, 1, -1}};
  const DualSolution none = solve_dual(KernelRows(mixed.terms.data(), 3, 1, kernel), problem_of(mixed, infinity),
                                       options_of(1e-9), {}, 1, interrupt);
  CHECK(!none.is_bounded);
}

TEST(edges_of_duals) {
  Interrupt interrupt;
  const Kernel kernel{KernelKind::rbf, 1.0, 0.0, 1};
  const Table one{1, 1, {3.0}, {1.0}};  // a single row of a single class
  const DualSolution alone =
      solve_dual(KernelRows(one.terms.data(), 1, 1, kernel), problem_of(one, 1.0), options_of(1e-6), {}, 1, interrupt);
  CHECK_EQ(alone.beta[0], 0.0);
  CHECK_EQ(alone.intercept, 1.0);
  const Table same{6, 2, std::vector<double>(12, 1.0), {1, 1, 1, -1, -1, -1}};  // identical rows of both classes
  const DualSolution level = solve_dual(KernelRows(same.terms.data(), 6, 2, kernel), problem_of(same, 2.0),
                                        options_of(1e-6), {}, 1, interrupt);
  CHECK(is_within(problem_of(same, 2.0), level.beta));
  CHECK(std::isfinite(level.intercept));
  DualOptions stopped = options_of(1e-9);
  stopped.most_steps = 1;
  const Table table = two_classes(30, 2, 3);
  const DualSolution early =
      solve_dual(KernelRows(table.terms.data(), 30, 2, kernel), problem_of(table, 1.0), stopped, {}, 1, interrupt);
  CHECK_EQ(early.n_steps, 1u);
  CHECK(early.violation > 1e-9);
  const KernelRows none(nullptr, 5, 0, kernel);  // no terms: all rows are equal
  CHECK_EQ(none.diagonal(2), 1.0);
}

TEST(paths_end_where_single_penalties_do) {
  Interrupt interrupt;
  const Table table = two_classes(120, 3, 11);
  const KernelRows rows(table.terms.data(), table.n, table.d, {KernelKind::rbf, 0.2, 0.0, 1});
  const std::vector<double> penalties{0.1, 1.0, 10.0};
  const std::vector<DualProblem> problems{problem_of(table, 1.0), value_problem(table, 1.0, 0.1)};
  const auto path = fit_machines(rows, problems, penalties, options_of(1e-8), 2, interrupt);
  const std::vector<double> matrix = plain_matrix({KernelKind::rbf, 0.2, 0.0, 1}, table);
  for (std::size_t m = 0; m < 2; ++m)
    for (std::size_t p = 0; p < 3; ++p) {
      const double own[] = {penalties[p]};
      const auto alone = fit_machines(rows, {problems[m]}, own, options_of(1e-8), 1, interrupt)[0][0];
      const double best = objective(problems[m], matrix, alone.beta);
      CHECK_NEAR(objective(problems[m], matrix, path[m][p].beta), best, 1e-8 * std::abs(best));
    }
}

TEST(decisions_are_sums_over_support_vectors) {
  Interrupt interrupt;
  const Table table = two_classes(90, 3, 5);
  const Kernel kernel{KernelKind::polynomial, 0.5, 1.0, 3};
  std::vector<double> by_row(table.n * table.d), coefficients(table.n);
  for (std::size_t i = 0; i < table.n; ++i) {
    coefficients[i] = std::sin(static_cast<double>(i));
    for (std::size_t k = 0; k < table.d; ++k) by_row[i * table.d + k] = table.at(i, k);
  }
  const std::vector<double> intercepts{0.5, -1.0};
  Machines machines{kernel, table.d, table.n, by_row.data(), {}, intercepts};
  machines.parts = {{0, 0, 50, coefficients.data()}, {1, 30, 60, coefficients.data() + 30}};
  std::vector<double> out(2 * table.n), again(2 * table.n);
  decide(machines, by_row.data(), table.n, 1, interrupt, out.data());
  decide(machines, by_row.data(), table.n, 3, interrupt, again.data());
  CHECK(out == again);
  for (std::size_t i = 0; i < table.n; ++i) {
    double first = 0.5, second = -1.0;
    for (std::size_t j = 0; j < 50; ++j) first += coefficients[j] * plain_value(kernel, table, i, j);
    for (std::size_t j = 30; j < 90; ++j) second += coefficients[j] * plain_value(kernel, table, i, j);
    CHECK_NEAR(out[2 * i], first, 1e-9 * (1 + std::abs(first)));
    CHECK_NEAR(out[2 * i + 1], second, 1e-9 * (1 + std::abs(second)));
  }
}

TEST(the_perceptron_matches_a_plain_loop) {
  Interrupt interrupt;
  const Table table = two_classes(50, 3, 9);
  std::vector<double> by_row(table.n * table.d), steps(table.n, 1.0);
  for (std::size_t i = 0; i < table.n; ++i)
    for (std::size_t k = 0; k < table.d; ++k) by_row[i * table.d + k] = table.at(i, k);
  PerceptronOptions options;
  options.rate = 0.5, options.squared_radius = 4.0, options.max_epochs = 7, options.averaged = true;
  std::vector<double> plane(4, 0.0), sum(4, 0.0);
  std::size_t n_updates = 0, n_seen = 0;
  for (int epoch = 0; epoch < 7; ++epoch)
    for (std::size_t i = 0; i < table.n; ++i, ++n_seen) {
      double score = plane[3];
      for (std::size_t k = 0; k < 3; ++k) score += plane[k] * table.at(i, k);
      if (table.side[i] * score <= 0) {
        for (std::size_t k = 0; k < 3; ++k) plane[k] += 0.5 * table.side[i] * table.at(i, k);
        plane[3] += 0.5 * table.side[i] * 4.0;
        ++n_updates;
      }
      for (std::size_t k = 0; k < 4; ++k) sum[k] += plane[k];
    }
  const PerceptronEnd end = fit_perceptron(by_row.data(), table.n, table.d, table.side, steps, options, interrupt);
  CHECK_EQ(end.n_updates, n_updates);
  CHECK_EQ(end.n_epochs, 7u);
  for (std::size_t k = 0; k < 4; ++k) CHECK_NEAR(end.weights[k], sum[k] / static_cast<double>(n_seen), 1e-9);
  const double line[] = {1.0, 2.0, -1.0, -2.0}, sides[] = {1, 1, -1, -1};  // linearly separable
  options = {};
  options.squared_radius = 4.0, options.max_epochs = 100, options.shuffles = true, options.seed = 3;
  const PerceptronEnd clean = fit_perceptron(line, 4, 1, sides, std::span(steps).first(4), options, interrupt);
  CHECK(clean.is_clean);
  for (std::size_t i = 0; i < 4; ++i) CHECK(sides[i] * (clean.weights[0] * line[i] + clean.weights[1]) > 0);
}

TEST(a_perceptron_continues_from_the_weights_and_the_radius_of_earlier_rows) {
  Interrupt interrupt;
  const Table table = two_classes(60, 3, 5);
  std::vector<double> by_row(table.n * table.d), steps(table.n, 1.0);
  for (std::size_t i = 0; i < table.n; ++i)
    for (std::size_t k = 0; k < table.d; ++k) by_row[i * table.d + k] = table.at(i, k);
  PerceptronOptions options;
  options.squared_radius = 0.0, options.max_epochs = 1, options.grows_radius = true;
  const PerceptronEnd whole = fit_perceptron(by_row.data(), table.n, table.d, table.side, steps, options, interrupt);
  double radius = 0;
  for (std::size_t i = 0; i < table.n; ++i) {
    double square = 0;
    for (std::size_t k = 0; k < table.d; ++k) square += table.at(i, k) * table.at(i, k);
    radius = std::max(radius, square);
  }
  CHECK_NEAR(whole.squared_radius, radius, 1e-12);
  std::size_t n_updates = 0;
  for (const std::size_t first : {std::size_t{0}, std::size_t{25}}) {
    const std::size_t n = first == 0 ? 25 : table.n - 25;
    const PerceptronEnd part =
        fit_perceptron(by_row.data() + first * table.d, n, table.d, std::span(table.side).subspan(first, n),
                       std::span(steps).first(n), options, interrupt);
    options.start = part.last, options.squared_radius = part.squared_radius;
    n_updates += part.n_updates;
  }
  CHECK_EQ(n_updates, whole.n_updates);
  for (std::size_t k = 0; k <= table.d; ++k) CHECK_EQ(options.start[k], whole.weights[k]);
}

TEST(a_perceptron_with_penalties_follows_the_plain_rule_and_ends_when_the_loss_settles) {
  Interrupt interrupt;
  const Table table = two_classes(80, 2, 7);
  std::vector<double> by_row(table.n * 2), steps(table.n, 1.0);
  for (std::size_t i = 0; i < table.n; ++i)
    for (std::size_t k = 0; k < 2; ++k) by_row[i * 2 + k] = table.at(i, k);
  PerceptronOptions options;
  options.rate = 0.5, options.squared_radius = 0.0, options.max_epochs = 4;
  options.l1 = 0.01, options.l2 = 0.02;
  double plane[2] = {0, 0}, paid[2] = {0, 0}, owed = 0;
  for (int epoch = 0; epoch < 4; ++epoch)
    for (std::size_t i = 0; i < table.n; ++i) {
      const double score = plane[0] * table.at(i, 0) + plane[1] * table.at(i, 1);
      owed += 0.5 * 0.01;
      for (std::size_t k = 0; k < 2; ++k) {
        plane[k] *= 1 - 0.5 * 0.02;
        if (table.side[i] * score <= 0) plane[k] += 0.5 * table.side[i] * table.at(i, k);
        const double before = plane[k];
        if (before > 0) plane[k] = std::max(0.0, before - (owed + paid[k]));
        if (before < 0) plane[k] = std::min(0.0, before + (owed - paid[k]));
        paid[k] += plane[k] - before;
      }
    }
  const PerceptronEnd end = fit_perceptron(by_row.data(), table.n, 2, table.side, steps, options, interrupt);
  CHECK_EQ(end.n_epochs, 4u);
  CHECK(!end.is_settled);
  for (std::size_t k = 0; k < 2; ++k) CHECK_NEAR(end.weights[k], plane[k], 1e-9);
  options.max_epochs = 1000, options.tolerance = 1e3, options.patience = 3;
  const PerceptronEnd settled = fit_perceptron(by_row.data(), table.n, 2, table.side, steps, options, interrupt);
  CHECK(settled.is_settled);
  CHECK_EQ(settled.n_epochs, 4u);  // the first is below infinity
}

TEST(sums_of_terms_are_those_of_plain_loops_for_any_number_of_threads) {
  Interrupt interrupt;
  const Table table = two_classes(5000, 3, 13);
  const TermTable terms{table.terms.data(), table.n, table.d};
  const std::vector<double> sums = term_sums(terms, table.side.data(), 1, interrupt);
  std::vector<double> products = term_products(terms, std::vector<double>(table.n, 2.0).data(), 1, interrupt);
  for (std::size_t k = 0; k < 4; ++k)
    for (std::size_t l = 0; l < 4; ++l) {
      double sum = 0, product = 0;
      for (std::size_t i = 0; i < table.n; ++i) {
        sum += (k < 3 ? table.at(i, k) : 1.0) * table.side[i];
        product += (k < 3 ? table.at(i, k) : 1.0) * (l < 3 ? table.at(i, l) : 1.0) * 2.0;
      }
      CHECK_NEAR(sums[k], sum, 1e-9 * (1 + std::abs(sum)));
      CHECK_NEAR(products[k * 4 + l], product, 1e-9 * (1 + std::abs(product)));
    }
  CHECK(sums == term_sums(terms, table.side.data(), 4, interrupt));
  const std::vector<double> wanted{1.0, -2.0, 0.5, 3.0};
  std::vector<double> right(4, 0.0), scores(table.n);
  for (std::size_t k = 0; k < 4; ++k)
    for (std::size_t l = 0; l < 4; ++l) right[k] += products[k * 4 + l] * wanted[l];
  CHECK(solve_positive(products, 4, right.data(), 1));
  for (std::size_t k = 0; k < 4; ++k) CHECK_NEAR(right[k], wanted[k], 1e-9);
  std::vector<double> indefinite{1.0, 2.0, 2.0, 1.0}, side{1.0, 1.0};
  CHECK(!solve_positive(indefinite, 2, side.data(), 1));
  weighted_terms(terms, wanted.data(), 2, interrupt, scores.data());
  CHECK_NEAR(scores[17], table.at(17, 0) - 2 * table.at(17, 1) + 0.5 * table.at(17, 2) + 3.0, 1e-12);
}
