// Formulas of a row's target and score.
#include "loss/formula.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "arrays.h"
#include "base/threads.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

namespace {

using Steps = std::vector<std::tuple<std::string, std::uint32_t, std::vector<std::uint32_t>>>;
using DoublesFilled = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void make_formula(Formula* self, const Steps& given, std::vector<double> constants, std::uint32_t n_registers,
                  std::vector<std::uint32_t> outputs) {
  std::vector<FormulaStep> steps;
  for (const auto& [operation, to, from] : given) {
    FormulaStep step{operation, to, {UINT32_MAX, UINT32_MAX, UINT32_MAX}};
    if (from.size() > 3) throw nb::value_error("An operation of a formula takes at most three numbers.");
    std::copy(from.begin(), from.end(), step.from);
    steps.push_back(step);
  }
  new (self) Formula(steps, std::move(constants), n_registers, std::move(outputs));
}

void run_formula(const Formula& self, const Doubles1& target, const Doubles1& score, const DoublesFilled& found,
                 int n_jobs) {
  if (score.shape(0) != target.shape(0) || found.shape(0) != self.n_outputs() || found.shape(1) != target.shape(0))
    throw nb::value_error("Pass one number for each row and output.");
  const int n_threads = resolve_threads(n_jobs);
  nb::gil_scoped_release release;
  self.run(target.data(), score.data(), target.shape(0), n_threads, found.data());
}

}  // namespace

}  // namespace spinney

void init_formula(nb::module_& m) {
  using namespace spinney;
  nb::class_<Formula>(m, "Formula", "A formula of the target and the score of a row, computed row by row.")
      .def(
          "__init__", &make_formula, "steps"_a, "constants"_a, "n_registers"_a, "outputs"_a,
          "Steps are an operation's name, the register it fills and those it reads. Registers: the target, the score,\n"
          "one for each constant, then those of the steps.")
      .def("run", &run_formula, "target"_a, "score"_a, "found"_a, "n_jobs"_a, "Fill `found`, (n_outputs, n_rows).");
}
