// Kernel machines: their dual problems and predictions.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "arrays.h"
#include "base/threads.h"
#include "interrupt.h"
#include "margin/linear.h"
#include "margin/machines.h"
#include "margin/perceptron.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

static Kernel kernel_named(const std::string& name, double gamma, double coef0, int degree) {
  if (name == "linear") return {KernelKind::linear, gamma, coef0, degree};
  if (name == "poly") return {KernelKind::polynomial, gamma, coef0, degree};
  if (name == "rbf") return {KernelKind::rbf, gamma, coef0, degree};
  if (name == "sigmoid") return {KernelKind::sigmoid, gamma, coef0, degree};
  throw nb::value_error(("Unknown kernel: " + name).c_str());
}

static std::vector<DualProblem> read_problems(const Numbers1& rows, const Numbers1& ends, const Doubles1& z,
                                              const Doubles1& lowest, const Doubles1& highest, double insensitive,
                                              const Doubles1& side_sums, std::size_t n_rows) {
  std::vector<DualProblem> problems;
  std::size_t first = 0;
  if (z.size() != rows.size() || lowest.size() != rows.size() || highest.size() != rows.size())
    throw nb::value_error("rows, z and bounds have different lengths.");
  if (side_sums.size() != ends.size()) throw nb::value_error("side_sums must have one number for each machine.");
  for (std::size_t m = 0; m < ends.size(); ++m) {
    const std::size_t end = ends.data()[m];
    if (end <= first || end > rows.size()) throw nb::value_error("A machine has no rows.");
    const auto part = [&](const auto* from) { return std::vector(from + first, from + end); };
    problems.push_back({part(rows.data()), part(z.data()), part(lowest.data()), part(highest.data()), insensitive,
                        side_sums.data()[m]});
    for (const std::uint32_t row : problems.back().rows)
      if (row >= n_rows) throw nb::value_error("A machine has a row that does not exist.");
    first = end;
  }
  return problems;
}

static nb::list fit(const Doubles2& terms, const std::string& kernel, double gamma, double coef0, int degree,
                    const Numbers1& rows, const Numbers1& ends, const Doubles1& z, const Doubles1& lowest,
                    const Doubles1& highest, double insensitive, const Doubles1& side_sums, const Doubles1& penalties,
                    double tolerance, double cache_size, long long max_iter, bool shrinking, bool is_double,
                    int n_jobs) {
  const bool is_given = kernel == "precomputed";
  const std::size_t n_rows = terms.shape(1);
  if (is_given && terms.shape(0) != n_rows) throw nb::value_error("The kernel matrix is not square.");
  const Kernel chosen = is_given ? Kernel{} : kernel_named(kernel, gamma, coef0, degree);
  const std::vector<DualProblem> problems =
      read_problems(rows, ends, z, lowest, highest, insensitive, side_sums, n_rows);
  const DualOptions options{tolerance, static_cast<std::size_t>(cache_size * 1048576.0),
                            max_iter < 0 ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(max_iter),
                            shrinking, is_double};
  const int n_threads = resolve_threads(n_jobs);
  auto found = run_interruptible([&](Interrupt& interrupt) {
    const KernelRows table =
        is_given ? KernelRows(terms.data(), n_rows) : KernelRows(terms.data(), n_rows, terms.shape(0), chosen);
    return fit_machines(table, problems, {penalties.data(), penalties.size()}, options, n_threads, interrupt);
  });
  nb::list machines;
  for (auto& path : found) {
    nb::list solutions;
    for (DualSolution& s : path)
      solutions.append(nb::make_tuple(own(std::move(s.beta)), own(std::move(s.residual)), s.intercept, s.violation,
                                      s.half_width, s.n_steps, s.is_bounded));
    machines.append(solutions);
  }
  return machines;
}

static Doubles2Out decisions(const Doubles2& rows, const Doubles2& vectors, const std::string& kernel, double gamma,
                             double coef0, int degree, const Doubles2& coefficients, const Codes2& parts,
                             const Doubles1& intercepts, int n_jobs) {
  const bool is_given = kernel == "precomputed";
  Machines machines{is_given ? Kernel{} : kernel_named(kernel, gamma, coef0, degree),
                    is_given ? 0 : vectors.shape(1),
                    coefficients.shape(1),
                    is_given ? nullptr : vectors.data(),
                    {},
                    {intercepts.data(), intercepts.size()}};
  if (rows.shape(1) != (is_given ? machines.n_vectors : machines.n_terms) ||
      (!is_given && vectors.shape(0) != machines.n_vectors) || parts.shape(1) != 4)
    throw nb::value_error("Rows, support vectors and coefficients have inconsistent shapes.");
  for (std::size_t p = 0; p < parts.shape(0); ++p) {
    const std::int32_t* part =
        parts.data() + 4 * p;  // machine, row of the coefficients, first vector, number of vectors
    const auto below = [](std::int32_t x, std::size_t n) { return x >= 0 && static_cast<std::size_t>(x) < n; };
    if (!below(part[0], intercepts.size()) || !below(part[1], coefficients.shape(0)) || part[2] < 0 || part[3] < 0 ||
        static_cast<std::size_t>(part[2]) + static_cast<std::size_t>(part[3]) > machines.n_vectors)
      throw nb::value_error("A machine has support vectors that do not exist.");
    const auto first = static_cast<std::uint32_t>(part[2]);
    machines.parts.push_back({static_cast<std::uint32_t>(part[0]), first, static_cast<std::uint32_t>(part[3]),
                              coefficients.data() + static_cast<std::size_t>(part[1]) * machines.n_vectors + first});
  }
  std::vector<double> out(rows.shape(0) * intercepts.size());
  const int n_threads = resolve_threads(n_jobs);
  run_interruptible(
      [&](Interrupt& interrupt) { decide(machines, rows.data(), rows.shape(0), n_threads, interrupt, out.data()); });
  return own_rows(std::move(out), intercepts.size());
}

static TermTable table_of(const Doubles2& terms) { return {terms.data(), terms.shape(1), terms.shape(0)}; }

static Array<double> scores(const Doubles2& terms, const Doubles1& weights, int n_jobs) {
  if (weights.size() != terms.shape(0) + 1) throw nb::value_error("terms and weights have inconsistent shapes.");
  std::vector<double> out(terms.shape(1));
  const int n_threads = resolve_threads(n_jobs);
  run_interruptible(
      [&](Interrupt& interrupt) { weighted_terms(table_of(terms), weights.data(), n_threads, interrupt, out.data()); });
  return own(std::move(out));
}

static void check_factors(const Doubles2& terms, const Doubles1& factors) {
  if (factors.size() != terms.shape(1) || factors.size() == 0)
    throw nb::value_error("terms and factors have inconsistent shapes.");
}

static Array<double> sums(const Doubles2& terms, const Doubles1& factors, int n_jobs) {
  check_factors(terms, factors);
  const int n_threads = resolve_threads(n_jobs);
  return own(run_interruptible(
      [&](Interrupt& interrupt) { return term_sums(table_of(terms), factors.data(), n_threads, interrupt); }));
}

static Doubles2Out products(const Doubles2& terms, const Doubles1& factors, int n_jobs) {
  check_factors(terms, factors);
  const int n_threads = resolve_threads(n_jobs);
  auto found = run_interruptible(
      [&](Interrupt& interrupt) { return term_products(table_of(terms), factors.data(), n_threads, interrupt); });
  return own_rows(std::move(found), terms.shape(0) + 1);
}

static nb::object solved(const Doubles2& matrix, const Doubles2& right_sides) {
  const std::size_t n = matrix.shape(0);
  if (matrix.shape(1) != n || right_sides.shape(1) != n) throw nb::value_error("The system is not square.");
  std::vector<double> a(matrix.data(), matrix.data() + n * n);
  std::vector<double> x(right_sides.data(), right_sides.data() + right_sides.size());
  const bool is_solved =
      run_interruptible([&](Interrupt&) { return solve_positive(a, n, x.data(), right_sides.shape(0)); });
  if (!is_solved) return nb::none();
  return nb::cast(own_rows(std::move(x), n));
}

static nb::tuple perceptron(const Doubles2& rows, const Doubles1& sides, const Doubles1& steps, double rate,
                            double squared_radius, std::size_t max_epochs, bool averaged, bool shuffles,
                            std::uint64_t seed, double l1, double l2, double tolerance, std::size_t patience,
                            const Doubles1& start, bool grows_radius) {
  if (sides.size() != rows.shape(0) || steps.size() != rows.shape(0))
    throw nb::value_error("rows, sides and steps have different lengths.");
  if (start.size() != 0 && start.size() != rows.shape(1) + 1)
    throw nb::value_error("start must have a weight for each term, and the intercept.");
  const PerceptronOptions options{rate,
                                  squared_radius,
                                  max_epochs,
                                  averaged,
                                  shuffles,
                                  seed,
                                  l1,
                                  l2,
                                  tolerance,
                                  patience,
                                  {start.data(), start.data() + start.size()},
                                  grows_radius};
  auto end = run_interruptible([&](Interrupt& interrupt) {
    return fit_perceptron(rows.data(), rows.shape(0), rows.shape(1), {sides.data(), sides.size()},
                          {steps.data(), steps.size()}, options, interrupt);
  });
  return nb::make_tuple(own(std::move(end.weights)), end.n_updates, end.n_epochs, end.is_clean, end.is_settled,
                        own(std::move(end.last)), end.squared_radius);
}

}  // namespace spinney

void init_margin(nb::module_& m) {
  using namespace spinney;
  m.def("fit_machines", &fit, "terms"_a, "kernel"_a, "gamma"_a, "coef0"_a, "degree"_a, "rows"_a, "ends"_a, "z"_a,
        "lowest"_a, "highest"_a, "insensitive"_a, "side_sums"_a, "penalties"_a, "tolerance"_a, "cache_size"_a,
        "max_iter"_a, "shrinking"_a, "is_double"_a, "n_jobs"_a,
        "For each machine and penalty: coefficients, residuals z - K beta, intercept, violation, half the distance of "
        "the "
        "sides' levels, steps, whether bounded.");
  m.def("decisions", &decisions, "rows"_a, "vectors"_a, "kernel"_a, "gamma"_a, "coef0"_a, "degree"_a, "coefficients"_a,
        "parts"_a, "intercepts"_a, "n_jobs"_a, "Decision values of each row, (n_rows, n_machines).");
  m.def("weighted_terms", &scores, "terms"_a, "weights"_a, "n_jobs"_a,
        "Sums of terms (n_terms, n_rows) times weights, plus the last weight.");
  m.def("term_sums", &sums, "terms"_a, "factors"_a, "n_jobs"_a,
        "Sum over rows of each term, and of 1, times factors of the rows.");
  m.def("term_products", &products, "terms"_a, "factors"_a, "n_jobs"_a,
        "Sum over rows of each pair of terms, and of 1, times factors of the rows.");
  m.def("solve_positive", &solved, "matrix"_a, "right_sides"_a,
        "Solutions of a symmetric positive definite system, one per row; None if it is not definite.");
  m.def("fit_perceptron", &perceptron, "rows"_a, "sides"_a, "steps"_a, "rate"_a, "squared_radius"_a, "max_epochs"_a,
        "averaged"_a, "shuffles"_a, "seed"_a, "l1"_a, "l2"_a, "tolerance"_a, "patience"_a, "start"_a, "grows_radius"_a,
        "Weights and intercept, updates, epochs, whether the last epoch had no misclassified row, whether the loss no "
        "longer decreased, the weights after the last row, and the largest squared norm.");
}
