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

// By part: name of the loss, its parameter, number of scores, weight in the sum.
using LossParts = std::vector<std::tuple<std::string, double, std::uint32_t, double>>;

std::vector<LossPart> read_parts(const LossParts& given) {
  std::vector<LossPart> parts;
  for (const auto& [name, parameter, n_scores, weight] : given) {
    const Loss loss = loss_named(name);
    if (n_scores < 1 || (n_scores > 1 && !traits_of(loss).has_scores() && !traits_of(loss).is_outside))
      throw nb::value_error("losses: this one has one score");
    parts.push_back({loss, parameter, n_scores, weight});
  }
  if (parts.empty()) throw nb::value_error("losses: at least one");
  return parts;
}

// By split: its column, threshold, categories that go left, and the places of the splits of its sides (0: none).
using ForcedSplits =
    std::vector<std::tuple<std::uint32_t, double, std::vector<std::uint32_t>, std::uint32_t, std::uint32_t>>;

std::vector<ForcedSplit> read_forced(const ForcedSplits& given) {
  std::vector<ForcedSplit> splits;
  for (const auto& [feature, threshold, codes, left, right] : given) {
    for (const std::uint32_t below : {left, right})  // each is named once at most, and after its parent
      if (below != 0 && (below <= splits.size() || below >= given.size()))
        throw nb::value_error("forced_splits: no such split");
    splits.push_back({feature, threshold, codes, left, right});
  }
  return splits;
}

// Options that are not numbers: OPTION(name, type, its type in Python).
using Columns = std::vector<std::uint32_t>;
#define SPINNEY_LIST_OPTIONS(OPTION)                                                          \
  OPTION(losses, LossParts, "Sequence[tuple[str, float, int, float]]")                        \
  OPTION(monotonic_cst, std::vector<std::vector<std::int8_t>>, "Sequence[Sequence[int]]")     \
  OPTION(interaction_cst, std::vector<Columns>, "Sequence[Sequence[int]]")                    \
  OPTION(feature_costs, std::vector<double>, "Sequence[float]")                               \
  OPTION(feature_weights, std::vector<double>, "Sequence[float]")                             \
  OPTION(forced_splits, ForcedSplits, "Sequence[tuple[int, float, Sequence[int], int, int]]") \
  OPTION(linear_columns, std::vector<std::uint8_t>, "Sequence[int]")                          \
  OPTION(seed, std::uint64_t, "int")                                                          \
  OPTION(n_jobs, int, "int")

#define SPINNEY_SIGNATURE_OF_NUMBER(kind, name, preset, bounds, text) ", " #name ": " SPINNEY_PYTHON_TYPE_##kind
#define SPINNEY_SIGNATURE_OF_LIST(name, type, python) ", " #name ": " python
constexpr const char* signature = "def __init__(self, *" SPINNEY_ROUND_OPTIONS(SPINNEY_SIGNATURE_OF_NUMBER)
    SPINNEY_TREE_OPTIONS(SPINNEY_SIGNATURE_OF_NUMBER) SPINNEY_LIST_OPTIONS(SPINNEY_SIGNATURE_OF_LIST) ") -> None";

#define SPINNEY_COUNT(...) +1
constexpr std::size_t n_options = std::size(scalar_options) SPINNEY_LIST_OPTIONS(SPINNEY_COUNT);

[[noreturn]] void refuse_type(const std::string& what) { throw nb::type_error(what.c_str()); }

template <class T>
T take(const nb::kwargs& given, const char* name) {
  if (!given.contains(name)) refuse_type(std::string("BoostingOptions: ") + name + " is missing");
  T value;
  if (!nb::try_cast<T>(given[name], value)) refuse_type(std::string("BoostingOptions: ") + name + " has another type");
  return value;
}

template <class T>
T take_number(const nb::kwargs& given, const char* name, const OptionBounds& bounds) {
  const T value = take<T>(given, name);
  if (!bounds.hold(static_cast<double>(value)))
    throw nb::value_error((std::string(name) + " is out of bounds: " + nb::repr(given[name]).c_str()).c_str());
  return value;
}

// Constraints for all scores, or by score.
void set_monotone(std::vector<std::vector<std::int8_t>> given, BoostingParams& params) {
  if (given.size() == 1)
    params.tree.monotonic_cst = std::move(given[0]);
  else if (given.empty() || given.size() == params.n_scores())
    params.monotonic_cst = std::move(given);
  else
    throw nb::value_error("monotonic_cst: for all scores, or by score");
}

// By name alone and without defaults, so that an option that is misspelt or forgotten is an error.
void init_options(BoostingOptions* self, const nb::kwargs& given) {
  BoostingParams p;
  BoostParams& t = p.tree;
#define SPINNEY_TAKE(to, kind, name, bounds) \
  to.name = take_number<SPINNEY_CPP_TYPE_##kind>(given, #name, option_bounds::bounds);
#define SPINNEY_TAKE_OF_ROUND(kind, name, preset, bounds, text) SPINNEY_TAKE(p, kind, name, bounds)
#define SPINNEY_TAKE_OF_TREE(kind, name, preset, bounds, text) SPINNEY_TAKE(t, kind, name, bounds)
#define SPINNEY_TAKE_LIST(name, type, python) auto name = take<type>(given, #name);
  SPINNEY_ROUND_OPTIONS(SPINNEY_TAKE_OF_ROUND)
  SPINNEY_TREE_OPTIONS(SPINNEY_TAKE_OF_TREE)
  SPINNEY_LIST_OPTIONS(SPINNEY_TAKE_LIST)
  if (given.size() != n_options) refuse_type("BoostingOptions: there is no such option");
  p.parts = read_parts(losses);
  p.linear_columns = std::move(linear_columns);
  set_monotone(std::move(monotonic_cst), p);
  t.interaction_cst = std::move(interaction_cst);
  t.feature_costs = std::move(feature_costs);
  t.feature_weights = std::move(feature_weights);
  t.forced_splits = read_forced(forced_splits);
  t.seed = seed;
  t.n_threads = resolve_threads(n_jobs);
  new (self) BoostingOptions{std::move(p)};
}

std::vector<const OptionTraits*> known_options() {
  std::vector<const OptionTraits*> found;
  for (const OptionTraits& option : scalar_options) found.push_back(&option);
  return found;
}

}  // namespace

void check_columns(const BoostingParams& params, std::size_t n_columns) {
  const BoostParams& t = params.tree;
  const auto check = [&](const std::vector<std::int8_t>& monotone) {
    if (monotone.size() != n_columns) throw nb::value_error("monotonic_cst: one entry per column");
  };
  if (!t.monotonic_cst.empty()) check(t.monotonic_cst);
  for (const auto& monotone : params.monotonic_cst) check(monotone);
  if (!t.feature_costs.empty() && t.feature_costs.size() != n_columns)
    throw nb::value_error("feature_costs: one entry per column");
  if (!t.feature_weights.empty() && t.feature_weights.size() != n_columns)
    throw nb::value_error("feature_weights: one entry per column");
  if (!params.linear_columns.empty() && params.linear_columns.size() != n_columns)
    throw nb::value_error("linear_columns: one entry per column");
  for (const ForcedSplit& split : t.forced_splits)
    if (split.feature >= n_columns) throw nb::value_error("forced_splits: no such column");
  for (const auto& group : t.interaction_cst)
    for (const std::uint32_t f : group)
      if (f >= n_columns) throw nb::value_error("interaction_cst: no such column");
}

}  // namespace spinney

void init_boosting_options(nb::module_& m) {
  using namespace spinney;
  nb::class_<BoostingOptions>(m, "BoostingOptions", "How rounds of trees are to learn.")
      .def("__init__", &init_options, nb::sig(signature));
  nb::class_<OptionTraits>(m, "OptionTraits", "What is to be known of an option that is a number.")
      .def_ro("name", &OptionTraits::name, nb::sig("def name(self) -> str"))
      .def_ro("type", &OptionTraits::type, nb::sig("def type(self) -> str"), "float, int or bool.")
      .def_ro("text", &OptionTraits::text, nb::sig("def text(self) -> str"), "What it does, in a sentence.")
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
          "Whether 0, though out of bounds, switches it off.");
  m.def("boosting_options", &known_options, nb::rv_policy::reference,
        nb::sig("def boosting_options() -> list[OptionTraits]"), "The table of options that are numbers.");
}
