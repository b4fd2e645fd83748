#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <iterator>
#include <string>
#include <tuple>

#include "base/threads.h"
#include "boosting_handles.h"
#include "loss/row_loss.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

namespace {

#define SPINNEY_SIGNATURE(kind, name, ...) ", " #name ": " SPINNEY_PYTHON_TYPE_##kind
constexpr const char* signature = "def __init__(self, *" SPINNEY_ROUND_OPTIONS(SPINNEY_SIGNATURE)
    SPINNEY_TREE_OPTIONS(SPINNEY_SIGNATURE) SPINNEY_ROUND_LISTS(SPINNEY_SIGNATURE)
        SPINNEY_TREE_LISTS(SPINNEY_SIGNATURE) ", seed: int, n_jobs: int) -> None";

#define SPINNEY_COUNT(...) +1
constexpr std::size_t n_options =
    std::size(scalar_options) SPINNEY_ROUND_LISTS(SPINNEY_COUNT) SPINNEY_TREE_LISTS(SPINNEY_COUNT) + 2;

[[noreturn]] void refuse_type(const std::string& what) { throw nb::type_error(what.c_str()); }

template <class T>
T take(const nb::kwargs& given, const char* name) {
  if (!given.contains(name)) refuse_type(std::string("BoostingOptions: ") + name + " is missing");
  T value;
  if (!nb::try_cast<T>(given[name], value))
    refuse_type(std::string("BoostingOptions: ") + name + " has the wrong type");
  return value;
}

template <class T>
T take_number(const nb::kwargs& given, const char* name, const OptionBounds& bounds) {
  const T value = take<T>(given, name);
  if (!bounds.hold(static_cast<double>(value)))
    throw nb::value_error((std::string(name) + " is out of bounds: " + nb::repr(given[name]).c_str()).c_str());
  return value;
}

template <class T>
void take_list(const nb::kwargs& given, const char* name, std::vector<T>& to) {
  to = take<std::vector<T>>(given, name);
}

// By loss: its name, its parameter, number of scores, weight in the sum.
void take_list(const nb::kwargs& given, const char* name, std::vector<LossComponent>& to) {
  using Entries = std::vector<std::tuple<std::string, double, std::uint32_t, double>>;
  for (const auto& [loss_name, parameter, n_scores, weight] : take<Entries>(given, name)) {
    const Loss loss = loss_named(loss_name);
    if (n_scores < 1 || (n_scores > 1 && !traits_of(loss).has_scores() && !traits_of(loss).is_external))
      throw nb::value_error("losses: this loss has one score.");
    to.push_back({loss, parameter, n_scores, weight});
  }
  if (to.empty()) throw nb::value_error("losses must not be empty.");
}

// By split: its column, threshold, categories that go left, and the indices of its child splits (0: none).
void take_list(const nb::kwargs& given, const char* name, std::vector<ForcedSplit>& to) {
  using Entries =
      std::vector<std::tuple<std::uint32_t, double, std::vector<std::uint32_t>, std::uint32_t, std::uint32_t>>;
  const auto splits = take<Entries>(given, name);
  for (const auto& [feature, threshold, codes, left, right] : splits) {
    for (const std::uint32_t below : {left, right})  // each child occurs at most once, and after its parent
      if (below != 0 && (below <= to.size() || below >= splits.size()))
        throw nb::value_error("forced_splits: a child split does not exist.");
    to.push_back({feature, threshold, codes, left, right});
  }
}

// Keyword-only and without defaults, so that a misspelt or forgotten option is an error.
void init_options(BoostingOptions* self, const nb::kwargs& given) {
  BoostingParams p;
#define SPINNEY_TAKE(to, kind, name, bounds) \
  to.name = take_number<SPINNEY_CPP_TYPE_##kind>(given, #name, option_bounds::bounds);
#define SPINNEY_TAKE_OF_ROUND(kind, name, preset, bounds, text) SPINNEY_TAKE(p, kind, name, bounds)
#define SPINNEY_TAKE_OF_TREE(kind, name, preset, bounds, text) SPINNEY_TAKE(p.tree, kind, name, bounds)
#define SPINNEY_TAKE_LIST_OF_ROUND(kind, name, text) take_list(given, #name, p.name);
#define SPINNEY_TAKE_LIST_OF_TREE(kind, name, text) take_list(given, #name, p.tree.name);
  SPINNEY_ROUND_OPTIONS(SPINNEY_TAKE_OF_ROUND)
  SPINNEY_TREE_OPTIONS(SPINNEY_TAKE_OF_TREE)
  SPINNEY_ROUND_LISTS(SPINNEY_TAKE_LIST_OF_ROUND)
  SPINNEY_TREE_LISTS(SPINNEY_TAKE_LIST_OF_TREE)
  p.tree.seed = take<std::uint64_t>(given, "seed");
  p.tree.n_threads = resolve_threads(take<int>(given, "n_jobs"));
  if (given.size() != n_options) refuse_type("BoostingOptions: there is an unknown option");
  const std::size_t n_monotone = p.monotonic_cst.size();
  if (n_monotone > 1 && n_monotone != p.n_scores())
    throw nb::value_error("monotonic_cst: pass constraints for all scores or by score.");
  new (self) BoostingOptions{std::move(p)};
}

std::vector<const OptionTraits*> known_options() {
  std::vector<const OptionTraits*> found;
  for (const OptionTraits& option : scalar_options) found.push_back(&option);
  return found;
}

}  // namespace

namespace {

void refuse_unless(bool is_right, const char* name, const char* rule) {
  if (!is_right) throw nb::value_error((std::string(name) + rule).c_str());
}

template <class T>
void check_list(const char* name, const std::vector<T>& by_column, std::size_t n_columns) {
  refuse_unless(by_column.empty() || by_column.size() == n_columns, name, ": one entry per column");
}

void check_list(const char* name, const std::vector<std::vector<std::int8_t>>& by_score, std::size_t n_columns) {
  for (const auto& by_column : by_score) refuse_unless(by_column.size() == n_columns, name, ": one entry per column");
}

void check_list(const char* name, const std::vector<std::vector<std::uint32_t>>& groups, std::size_t n_columns) {
  for (const auto& group : groups)
    for (const std::uint32_t f : group) refuse_unless(f < n_columns, name, ": no such column");
}

void check_list(const char* name, const std::vector<ForcedSplit>& splits, std::size_t n_columns) {
  for (const ForcedSplit& split : splits) refuse_unless(split.feature < n_columns, name, ": no such column");
}

void check_list(const char*, const std::vector<LossComponent>&, std::size_t) {}

}  // namespace

void check_columns(const BoostingParams& params, std::size_t n_columns) {
#define SPINNEY_CHECK_OF_ROUND(kind, name, text) check_list(#name, params.name, n_columns);
#define SPINNEY_CHECK_OF_TREE(kind, name, text) check_list(#name, params.tree.name, n_columns);
  SPINNEY_ROUND_LISTS(SPINNEY_CHECK_OF_ROUND)
  SPINNEY_TREE_LISTS(SPINNEY_CHECK_OF_TREE)
}

}  // namespace spinney

void init_boosting_options(nb::module_& m) {
  using namespace spinney;
  nb::class_<BoostingOptions>(m, "BoostingOptions", "Options of gradient boosting.")
      .def("__init__", &init_options, nb::sig(signature));
  nb::class_<OptionTraits>(m, "OptionTraits", "The description of a numeric option.")
      .def_ro("name", &OptionTraits::name, nb::sig("def name(self) -> str"))
      .def_ro("type", &OptionTraits::type, nb::sig("def type(self) -> str"), "float, int or bool.")
      .def_ro("text", &OptionTraits::text, nb::sig("def text(self) -> str"), "Description in one sentence.")
      .def_prop_ro("low", [](const OptionTraits& self) { return self.bounds.low; })
      .def_prop_ro("high", [](const OptionTraits& self) { return self.bounds.high; })
      .def_prop_ro(
          "closed",
          [](const OptionTraits& self) {
            if (self.bounds.has_low) return self.bounds.has_high ? "both" : "left";
            return self.bounds.has_high ? "right" : "neither";
          },
          nb::sig("def closed(self) -> str"), "Ends that belong to the interval: both, left, right or neither.")
      .def_prop_ro(
          "off_at_zero", [](const OptionTraits& self) { return self.bounds.off_at_zero; },
          "Whether 0, although out of bounds, disables it.");
  m.def("boosting_options", &known_options, nb::rv_policy::reference,
        nb::sig("def boosting_options() -> list[OptionTraits]"), "The table of numeric options.");
}
