// User-defined criteria: Python objects, and addresses of compiled functions.
#include "user_criterion.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "arrays.h"
#include "criterion/log_rank.h"
#include "interrupt.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Groups = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A copy, because the user's code may store it.
static nb::object copy_of(const double* values, std::size_t n_rows, std::size_t n_columns = 1) {
  auto* owned = new std::vector<double>(values, values + n_rows * n_columns);
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  if (n_columns == 1) return nb::cast(nb::ndarray<nb::numpy, double>(owned->data(), {n_rows}, owner));
  return nb::cast(nb::ndarray<nb::numpy, double>(owned->data(), {n_rows, n_columns}, owner));
}

static Numbers numbers_of(nb::handle object, std::size_t n) {
  auto numbers = nb::cast<Numbers>(object);
  if (numbers.shape(0) != n) throw nb::value_error("The criterion's array has the wrong length.");
  return numbers;
}

// Calls the methods evaluate, split and split_groups of a Python object that checks the results of the user's code.
// Their exceptions pass through the engine unchanged.
class PythonCriterion final : public UserCriterion {
 public:
  PythonCriterion(nb::handle object, std::size_t columns, std::size_t values)
      : UserCriterion(columns, values), object_(object) {}

  double evaluate(const Rows& rows, double* value) const override {
    const Locked locked;
    const auto [values, risk] = nb::cast<std::pair<Numbers, double>>(
        object_.attr("evaluate")(copy_of(rows.y, rows.n, n_columns), copy_of(rows.weight, rows.n)));
    if (values.shape(0) != n_values) throw nb::value_error("The criterion's value has the wrong length.");
    std::copy_n(values.data(), n_values, value);
    return risk;
  }

  void split(const Rows& rows, const double* x, double* goodness) const override {
    const Locked locked;
    const nb::object found =
        object_.attr("split")(copy_of(rows.y, rows.n, n_columns), copy_of(rows.weight, rows.n), copy_of(x, rows.n));
    std::copy_n(numbers_of(found, rows.n - 1).data(), rows.n - 1, goodness);
  }

  bool split_groups(const Rows& rows, const double* group, std::size_t n_groups, std::uint32_t* order,
                    double* goodness) const override {
    const Locked locked;
    const auto [found_order, found] = nb::cast<std::pair<Groups, nb::object>>(object_.attr("split_groups")(
        copy_of(rows.y, rows.n, n_columns), copy_of(rows.weight, rows.n), copy_of(group, rows.n), n_groups));
    std::vector<std::uint32_t> sorted(found_order.data(), found_order.data() + found_order.shape(0));
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t g = 0; g < n_groups; ++g)
      if (sorted.size() != n_groups || sorted[g] != g)
        throw nb::value_error("The criterion's order is not a permutation of the groups.");
    std::copy_n(found_order.data(), n_groups, order);
    std::copy_n(numbers_of(found, n_groups - 1).data(), n_groups - 1, goodness);
    return true;
  }

  bool wants_x() const override { return true; }
  bool runs_in_parallel() const override { return false; }

 private:
  struct Wait {
    Wait() { sleep_if_finalizing(); }
  };
  struct Locked {
    Wait wait;  // must be first
    nb::gil_scoped_acquire gil;
  };
  nb::handle object_;  // kept alive by the UserCriterionHandle
};

static UserCriterionHandle* python_criterion(nb::object object, std::size_t n_columns, std::size_t n_values) {
  auto criterion = std::make_unique<PythonCriterion>(object, n_columns, n_values);
  return new UserCriterionHandle{std::move(object), std::move(criterion)};
}

static UserCriterionHandle* compiled_criterion(std::uintptr_t evaluate, std::uintptr_t evaluate_data,
                                               std::uintptr_t split, std::uintptr_t split_data, std::size_t n_columns,
                                               std::size_t n_values) {
  return new UserCriterionHandle{
      nb::object(), std::make_unique<CompiledCriterion>(reinterpret_cast<CompiledCriterion::Evaluate>(evaluate),
                                                        reinterpret_cast<void*>(evaluate_data),
                                                        reinterpret_cast<CompiledCriterion::Split>(split),
                                                        reinterpret_cast<void*>(split_data), n_columns, n_values)};
}

static UserCriterionHandle* log_rank_criterion(const Doubles2& hazard, bool counts) {
  if (hazard.shape(0) == 0 || hazard.shape(1) == 0) throw nb::value_error("A hazard needs a row and a cause.");
  std::vector<double> values(hazard.data(), hazard.data() + hazard.size());
  return new UserCriterionHandle{nb::object(), std::make_unique<LogRank>(std::move(values), hazard.shape(1), counts)};
}

// An exception stored in the object may refer back to it through its traceback.
static int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  Py_VISIT(nb::inst_ptr<UserCriterionHandle>(self)->object.ptr());
  return 0;
}

static int clear(PyObject* self) {
  nb::inst_ptr<UserCriterionHandle>(self)->object.reset();
  return 0;
}

static PyType_Slot slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse)}, {Py_tp_clear, reinterpret_cast<void*>(&clear)}, {0, nullptr}};

}  // namespace spinney

void init_user_criterion(nb::module_& m) {
  using namespace spinney;
  nb::class_<UserCriterionHandle>(m, "UserCriterion", nb::type_slots(slots),
                                  "A user-defined criterion for `grow_tree`.");
  m.def("python_criterion", &python_criterion, "object"_a, "n_columns"_a, "n_values"_a);
  m.def("compiled_criterion", &compiled_criterion, "evaluate"_a, "evaluate_data"_a, "split"_a, "split_data"_a,
        "n_columns"_a, "n_values"_a);
  m.def("log_rank_criterion", &log_rank_criterion, "hazard"_a, "counts"_a,
        "The log-rank criterion; `hazard` is cumulative, by number of event times and cause.");
}
