#include "loss/formula.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/log_exp.h"
#include "base/pool.h"
#include "base/vectorise.h"

namespace spinney {

namespace {

namespace formula_kernels {

constexpr std::size_t block = 256;  // rows: a few dozen registers stay in a core's first-level cache

using Numbers = const double*;

// ---- scalars -------------------------------------------------------------------------------------------------------

// Not positive, infinite, or not normal: outside the domain of log_ieee.
[[gnu::always_inline]] inline bool is_plain(double x) { return x >= 0x1p-1022 && x <= 0x1.fffffffffffffp1023; }

// Kahan's formula: the rounding of 1 + x cancels.
double log_of_one_and(double x) {
  const double sum = 1.0 + x;
  return sum == 1.0 ? x : (is_plain(sum) ? log_ieee(sum) * (x / (sum - 1.0)) : log_of(sum));
}

double exp_less_one(double x) {
  const double raised = exp_of(x), found = raised - 1.0;
  if (raised == 1.0) return x;
  return found == -1.0 || !is_plain(raised) ? found : found * (x / log_ieee(raised));
}

// The error in units in the last place grows with the logarithm of the result.
double power_of(double x, double p) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (p == 0) return 1.0;
  const double size = x == 0 ? (p > 0 ? 0.0 : infinity) : exp_of(p * log_of(std::abs(x)));
  if (!std::signbit(x)) return size;
  if (p != std::floor(p)) return x == 0 || x == -infinity ? size : std::numeric_limits<double>::quiet_NaN();
  return std::floor(p / 2) * 2 == p ? size : -size;
}

// ---- blocks --------------------------------------------------------------------------------------------------------

#define SPINNEY_KERNEL(name, expression)                                                                       \
  void name([[maybe_unused]] Numbers a, [[maybe_unused]] Numbers b, [[maybe_unused]] Numbers c, std::size_t n, \
            double* to) {                                                                                      \
    for (std::size_t i = 0; i < n; ++i) to[i] = expression;                                                    \
  }
SPINNEY_KERNEL(add, a[i] + b[i])
SPINNEY_KERNEL(subtract, a[i] - b[i])
SPINNEY_KERNEL(multiply, a[i] * b[i])
SPINNEY_KERNEL(divide, a[i] / b[i])
SPINNEY_KERNEL(negative, -a[i])
SPINNEY_KERNEL(absolute, __builtin_fabs(a[i]))
SPINNEY_KERNEL(square_root, __builtin_sqrt(a[i]))
SPINNEY_KERNEL(sign, a[i] > 0 ? 1.0 : (a[i] < 0 ? -1.0 : a[i]))
SPINNEY_KERNEL(larger, a[i] > b[i] || a[i] != a[i] ? a[i] : b[i])
SPINNEY_KERNEL(smaller, a[i] < b[i] || a[i] != a[i] ? a[i] : b[i])
SPINNEY_KERNEL(less, a[i] < b[i] ? 1.0 : 0.0)
SPINNEY_KERNEL(less_equal, a[i] <= b[i] ? 1.0 : 0.0)
SPINNEY_KERNEL(equal, a[i] == b[i] ? 1.0 : 0.0)
SPINNEY_KERNEL(is_finite, a[i] - a[i] == 0 ? 1.0 : 0.0)
SPINNEY_KERNEL(choose, a[i] != 0 ? b[i] : c[i])
SPINNEY_KERNEL(log_one_and, log_of_one_and(a[i]))
SPINNEY_KERNEL(expm1, exp_less_one(a[i]))
SPINNEY_KERNEL(power, power_of(a[i], b[i]))
#undef SPINNEY_KERNEL

// Ordinary numbers several at a time, then the others.
void exponential(Numbers a, Numbers, Numbers, std::size_t n, double* to) {
  bool plain = true;
  for (std::size_t i = 0; i < n; ++i) plain &= __builtin_fabs(a[i]) <= 700.0;
  if (plain) {
    SPINNEY_IVDEP
    for (std::size_t i = 0; i < n; ++i) to[i] = exp_ieee(a[i]);
  } else {
    for (std::size_t i = 0; i < n; ++i) to[i] = exp_of(a[i]);
  }
}

void logarithm(Numbers a, Numbers, Numbers, std::size_t n, double* to) {
  bool plain = true;
  for (std::size_t i = 0; i < n; ++i) plain &= is_plain(a[i]);
  if (plain) {
    SPINNEY_IVDEP
    for (std::size_t i = 0; i < n; ++i) to[i] = log_ieee(a[i]);
  } else {
    for (std::size_t i = 0; i < n; ++i) to[i] = log_of(a[i]);
  }
}

struct Operation {
  std::string_view name;
  std::size_t n_from;
  void (*kernel)(Numbers, Numbers, Numbers, std::size_t, double*);
};
constexpr Operation operations[] = {
    {"add", 2, add},           {"subtract", 2, subtract},  {"multiply", 2, multiply}, {"divide", 2, divide},
    {"negative", 1, negative}, {"absolute", 1, absolute},  {"sqrt", 1, square_root},  {"sign", 1, sign},
    {"maximum", 2, larger},    {"minimum", 2, smaller},    {"less", 2, less},         {"less_equal", 2, less_equal},
    {"equal", 2, equal},       {"isfinite", 1, is_finite}, {"where", 3, choose},      {"exp", 1, exponential},
    {"log", 1, logarithm},     {"log1p", 1, log_one_and},  {"expm1", 1, expm1},       {"power", 2, power},
};

const Operation& operation_of(std::string_view name) {
  for (const Operation& operation : operations)
    if (operation.name == name) return operation;
  throw std::invalid_argument("The formula has an unknown operation.");
}

constexpr std::uint32_t n_given = 2;  // target and score

}  // namespace formula_kernels

}  // namespace

Formula::Formula(const std::vector<FormulaStep>& steps, std::vector<double> constants, std::uint32_t n_registers,
                 std::vector<std::uint32_t> outputs)
    : constants_(std::move(constants)), n_registers_(n_registers), outputs_(std::move(outputs)) {
  const std::size_t first = formula_kernels::n_given + constants_.size();
  std::vector<char> is_known(n_registers_, 0);  // no step may read a register that was not written
  std::fill_n(is_known.begin(), std::min<std::size_t>(first, n_registers_), 1);
  const auto check = [&](std::uint32_t at) {
    if (at >= n_registers_ || !is_known[at]) throw std::invalid_argument("The formula reads an empty register.");
  };
  for (const FormulaStep& step : steps) {
    const formula_kernels::Operation& operation = formula_kernels::operation_of(step.operation);
    Step checked_step{operation.kernel, step.to, {0, 0, 0}};
    for (std::size_t k = 0; k < operation.n_from; ++k) check(checked_step.from[k] = step.from[k]);
    if (step.to < first || step.to >= n_registers_)
      throw std::invalid_argument("The formula writes to a read-only register.");
    is_known[step.to] = 1;
    steps_.push_back(checked_step);
  }
  for (const std::uint32_t at : outputs_) check(at);
}

void Formula::run(const double* target, const double* score, std::size_t n, int n_threads, double* found) const {
  constexpr std::size_t rows_of_task = 16 * formula_kernels::block;
  const std::size_t n_tasks = (n + rows_of_task - 1) / rows_of_task;
  const double estimated_ns = 2.0 * static_cast<double>(n) * static_cast<double>(steps_.size());
  parallel_for_if_worth(estimated_ns, n_tasks, n_threads, [&](std::size_t task, int) {
    std::vector<double> space((n_registers_ - formula_kernels::n_given) * formula_kernels::block);
    std::vector<const double*> at(n_registers_);
    for (std::size_t r = formula_kernels::n_given; r < n_registers_; ++r)
      at[r] = space.data() + (r - formula_kernels::n_given) * formula_kernels::block;
    for (std::size_t k = 0; k < constants_.size(); ++k)
      std::fill_n(space.data() + k * formula_kernels::block, formula_kernels::block, constants_[k]);
    for (std::size_t begin = task * rows_of_task; begin < std::min(n, (task + 1) * rows_of_task);
         begin += formula_kernels::block) {
      const std::size_t m = std::min(formula_kernels::block, n - begin);
      at[0] = target + begin;
      at[1] = score + begin;
      for (const Step& s : steps_)
        s.kernel(at[s.from[0]], at[s.from[1]], at[s.from[2]], m,
                 space.data() + (s.to - formula_kernels::n_given) * formula_kernels::block);
      for (std::size_t k = 0; k < outputs_.size(); ++k) std::copy_n(at[outputs_[k]], m, found + k * n + begin);
    }
  });
}

}  // namespace spinney
