// The table of boosting losses, and their values for rows.
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "arrays.h"
#include "base/pairwise.h"
#include "base/threads.h"
#include "loss/distribution_rows.h"
#include "loss/ordinal.h"
#include "loss/row_loss.h"
#include "loss/start.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

namespace {

std::vector<const LossTraits*> known_losses() {
  std::vector<const LossTraits*> found;
  for (const LossTraits& traits : all_losses)
    if (!traits.is_external) found.push_back(&traits);
  return found;
}

std::vector<std::pair<double, double>> score_bounds(const std::string& name) {
  constexpr double least_variance = 1e-300, far = 1e300;
  const Loss loss = loss_named(name);
  std::vector<std::pair<double, double>> found;
  for (std::uint32_t k = 0; k < traits_of(loss).n_scores; ++k)
    found.emplace_back(bounded_score(loss, k, least_variance, -far), bounded_score(loss, k, least_variance, far));
  return found;
}

// The parameter of a link follows after a space, as Python writes it.
std::string link_of(const std::string& name, double parameter) {
  const LossTraits& traits = traits_of(loss_named(name));
  const bool has_parameter = traits.of_classes() && traits.parameter.name != nullptr;
  return has_parameter ? std::string(traits.link) + " " + nb::repr(nb::float_(parameter)).c_str() : traits.link;
}

// One number, or the ascending cuts between ordered classes.
using LossNumbers = std::variant<double, Doubles1>;

NamedLoss with_numbers(const std::string& name, const LossNumbers& numbers) {
  const Loss loss = loss_named(name);
  const auto* cuts = std::get_if<Doubles1>(&numbers);
  if (traits_of(loss).has_cuts != (cuts != nullptr))
    throw nb::value_error("parameter: an array of cuts is for ordered classes.");
  if (cuts == nullptr) return {loss, std::get<double>(numbers), {}};
  NamedLoss found{loss, 0, std::vector<double>(cuts->data(), cuts->data() + cuts->shape(0))};
  for (std::size_t k = 0; k < found.cuts.size(); ++k)
    if (!std::isfinite(found.cuts[k]) || (k > 0 && !(found.cuts[k] > found.cuts[k - 1])))
      throw nb::value_error("parameter: cuts must be finite, and ascend.");
  return found;
}

void check_classes(const Doubles1& target, double n_classes) {
  for (std::size_t r = 0; r < target.shape(0); ++r)
    if (!(target.data()[r] >= 0) || target.data()[r] >= n_classes)
      throw nb::value_error("target: a class code is out of range.");
}

void check_rows(const NamedLoss& loss, const Doubles1& target, std::uint32_t n_scores) {
  const std::uint32_t wanted = loss.traits().n_scores;
  if (n_scores < 1 || (wanted != 0 && n_scores != wanted))
    throw nb::value_error("scores has the wrong number of columns.");
  if (!loss.cuts.empty()) check_classes(target, static_cast<double>(loss.cuts.size() + 1));
  if (wanted == 0) check_classes(target, n_scores);
}

void check_weight(const std::optional<Doubles1>& weight, const Doubles1& target) {
  if (weight && weight->shape(0) != target.shape(0))
    throw nb::value_error("target and weight have different numbers of rows.");
}

// Scores of rows, (n_scores, n_rows); computes delta for losses whose parameter is a fraction.
struct Query {
  NamedLoss loss;
  ScoredRows rows;
};

double bend_at(const NamedLoss& loss, const Doubles1& target, const double* scores, const double* weight) {
  std::vector<std::pair<double, double>> sizes;
  sizes.reserve(target.shape(0));
  for (std::size_t r = 0; r < target.shape(0); ++r)
    sizes.emplace_back(std::abs(target.data()[r] - scores[r]), weight == nullptr ? 1.0 : weight[r]);
  return delta_of(loss.loss, loss.parameter, sizes);
}

Query read_query(const std::string& name, const LossNumbers& parameter, const Doubles1& target,
                 const Doubles2& scores) {
  NamedLoss loss = with_numbers(name, parameter);
  const auto n_scores = static_cast<std::uint32_t>(scores.shape(0));
  if (scores.shape(1) != target.shape(0)) throw nb::value_error("target and scores have different numbers of rows.");
  check_rows(loss, target, n_scores);
  return {std::move(loss), {{target.data(), target.shape(0)}, scores.data(), n_scores}};
}

Array<double> loss_rows(const std::string& name, const LossNumbers& parameter, const Doubles1& target,
                        const Doubles2& scores) {
  const Query query = read_query(name, parameter, target, scores);
  return own(row_losses(query.loss, query.rows));
}

double loss_value(const std::string& name, const LossNumbers& parameter, const Doubles1& target, const Doubles2& scores,
                  const std::optional<Doubles1>& weight) {
  check_weight(weight, target);
  const Query query = read_query(name, parameter, target, scores);
  std::vector<double> losses = row_losses(query.loss, query.rows);
  const auto n = static_cast<double>(losses.size());
  if (!weight) return pairwise_sum(losses) / n;
  for (std::size_t r = 0; r < losses.size(); ++r) losses[r] *= weight->data()[r];
  return pairwise_sum(losses) / pairwise_sum({weight->data(), losses.size()});
}

std::tuple<Doubles2Out, Doubles2Out> loss_gradients(const std::string& name, const LossNumbers& parameter,
                                                    const Doubles1& target, const Doubles2& scores) {
  const Query query = read_query(name, parameter, target, scores);
  const std::size_t n = target.shape(0);
  RowGradients found = row_gradients(query.loss, query.rows);
  return {own_rows(std::move(found.gradients), n), own_rows(std::move(found.hessians), n)};
}

double loss_delta(const std::string& name, double parameter, const Doubles1& target, const Doubles1& score,
                  const std::optional<Doubles1>& weight) {
  check_weight(weight, target);
  const NamedLoss loss{loss_named(name), parameter, {}};
  if (!loss.traits().has_delta) return parameter;
  if (score.shape(0) != target.shape(0)) throw nb::value_error("target and score have different numbers of rows.");
  return bend_at(loss, target, score.data(), weight ? weight->data() : nullptr);
}

Array<double> ordinal_cuts(const Doubles1& target, const Doubles1& score, const std::optional<Doubles1>& weight,
                           std::size_t n_classes, int n_jobs) {
  check_weight(weight, target);
  if (score.shape(0) != target.shape(0)) throw nb::value_error("target and score have different numbers of rows.");
  if (n_classes < 2) throw nb::value_error("n_classes must be at least 2.");
  check_classes(target, static_cast<double>(n_classes));
  const OrdinalRows rows{{target.data(), target.shape(0)}, score.data(), weight ? weight->data() : nullptr, n_classes};
  std::vector<double> cuts;
  {
    nb::gil_scoped_release release;
    cuts = best_cuts(rows, resolve_threads(n_jobs));
  }
  return own(std::move(cuts));
}

Array<double> loss_start(const std::string& name, double parameter, const Doubles1& target,
                         const std::optional<Doubles1>& weight, const std::optional<Doubles2>& offset,
                         std::uint32_t n_scores) {
  check_weight(weight, target);
  const NamedLoss loss{loss_named(name), parameter, {}};
  if (offset && (offset->shape(0) != n_scores || offset->shape(1) != target.shape(0)))
    throw nb::value_error("offset must have the shape (n_scores, n_rows).");
  check_rows(loss, target, n_scores);
  return own(best_constants(loss, {{target.data(), target.shape(0)},
                                   weight ? weight->data() : nullptr,
                                   offset ? offset->data() : nullptr,
                                   n_scores}));
}

double point_of_balance(const std::function<Doubles1(double)>& terms_at, double reach, double base, double scale) {
  const TermsAt copied = [&](double at) {
    const Doubles1 terms = terms_at(at);
    return std::vector<double>(terms.data(), terms.data() + terms.shape(0));
  };
  return root_of_sum(copied, reach, base, scale);
}

void init_traits(nb::module_& m) {
  nb::enum_<LossTargets>(m, "LossTargets", "The targets of a loss.")
      .value("real", LossTargets::real)
      .value("non_negative", LossTargets::non_negative, "At least 0, and not all 0.")
      .value("positive", LossTargets::positive)
      .value("counts", LossTargets::counts, "Whole numbers of at least 0, and not all 0.")
      .value("unit_interval", LossTargets::unit_interval, "Above 0 and below 1.")
      .value("classes", LossTargets::classes);
  nb::enum_<LossUnit>(m, "LossUnit", "The unit of a loss.")
      .value("none", LossUnit::none)
      .value("target", LossUnit::target)
      .value("target_squared", LossUnit::target_squared);
  nb::class_<LossParameter>(m, "LossParameter", "The parameter of a loss.")
      .def_ro("name", &LossParameter::name, nb::sig("def name(self) -> str"), "The estimators' name.")
      .def_ro("preset", &LossParameter::preset, "Default.")
      .def_ro("low", &LossParameter::low)
      .def_ro("high", &LossParameter::high)
      .def_ro("includes_bounds", &LossParameter::includes_bounds, "Whether `low` and `high` are valid values.");
  nb::class_<LossTraits>(m, "LossTraits", "The description of a loss.")
      .def_ro("name", &LossTraits::name, nb::sig("def name(self) -> str"))
      .def_prop_ro(
          "public_name", [](const LossTraits& t) { return t.public_name == nullptr ? t.name : t.public_name; },
          nb::sig("def public_name(self) -> str"), "The estimators' name.")
      .def_ro("text", &LossTraits::text, nb::sig("def text(self) -> str | None"), "Description for docstrings.")
      .def_prop_ro(
          "parameter", [](const LossTraits& t) { return t.parameter.name == nullptr ? nullptr : &t.parameter; },
          nb::rv_policy::reference, nb::sig("def parameter(self) -> LossParameter | None"))
      .def_ro("targets", &LossTraits::targets)
      .def_ro("link", &LossTraits::link, nb::sig("def link(self) -> str"),
              "The link from scores to predictions, without a parameter: see `loss_link`.")
      .def_ro("n_scores", &LossTraits::n_scores, "Number of scores per row; 0: one for each class.")
      .def_ro("unit", &LossTraits::unit)
      .def_prop_ro("of_classes", &LossTraits::of_classes)
      .def_ro("of_two_classes", &LossTraits::of_two_classes, "Whether it supports two classes only.")
      .def_prop_ro("refits_leaves", &LossTraits::refits_leaves,
                   "Whether leaves take medians or quantiles of residuals instead of steps.")
      .def_ro("needs_damping", &LossTraits::needs_damping)
      .def_ro("has_delta", &LossTraits::has_delta,
              "Whether it is quadratic up to a quantile of the residuals and linear beyond.")
      .def_prop_ro("is_distribution", &LossTraits::is_distribution,
                   "Whether it is the negative log-likelihood of a distribution with a score for each parameter.")
      .def_ro("has_location", &LossTraits::has_location,
              "Whether its first score and its parameter, a variance, are in the unit of the residuals.")
      .def_ro("has_cuts", &LossTraits::has_cuts,
              "Whether its parameters are cuts between ordered classes: `ordinal_cuts`.")
      .def_ro("is_shift_invariant", &LossTraits::is_shift_invariant,
              "Whether only the distance from score to target matters, so that both may be shifted.")
      .def_prop_ro("is_additive", &LossTraits::is_additive, "Whether leaf values are functions of sums over rows.");
}

}  // namespace

}  // namespace spinney

void init_losses(nb::module_& m) {
  using namespace spinney;
  init_traits(m);
  m.attr("LEAST_DEVIATION") = least_deviation;
  m.def("boosting_losses", &known_losses, nb::rv_policy::reference,
        nb::sig("def boosting_losses() -> list[LossTraits]"), "The table of losses.");
  m.def("score_bounds", &score_bounds, "name"_a,
        "By score of a distribution: the lowest and the highest value that its parameter allows.");
  m.def("loss_link", &link_of, "name"_a, "parameter"_a, "The link from scores to predictions; see `predicted`.");
  m.def("loss_rows", &loss_rows, "name"_a, "parameter"_a, "target"_a, "scores"_a,
        "Loss of each row at its scores, (n_scores, n_rows). For a loss with a delta the parameter is delta: "
        "`loss_delta`; for a loss with cuts, an array of these.");
  m.def("loss_value", &loss_value, "name"_a, "parameter"_a, "target"_a, "scores"_a, "weight"_a.none(),
        "Weighted mean of `loss_rows`.");
  m.def("loss_gradients", &loss_gradients, "name"_a, "parameter"_a, "target"_a, "scores"_a,
        "Gradients and hessians of `loss_rows`, by score and row, without weights.");
  m.def("loss_delta", &loss_delta, "name"_a, "parameter"_a, "target"_a, "score"_a, "weight"_a.none(),
        "Delta, the residual at which the loss becomes linear; for other losses, the parameter.");
  m.def("ordinal_cuts", &ordinal_cuts, "target"_a, "score"_a, "weight"_a.none(), "n_classes"_a, "n_jobs"_a,
        "Ascending cuts between ordered classes of minimum loss at these scores.");
  m.def("loss_start", &loss_start, "name"_a, "parameter"_a, "target"_a, "weight"_a.none(), "offset"_a.none(),
        "n_scores"_a, "Constant scores of minimum loss with offsets, (n_scores, n_rows). Weights are positive.");
  m.def("root_of_sum", &point_of_balance, "terms_at"_a, "reach"_a, "base"_a, "scale"_a,
        "The root of a sum of increasing terms.");
}
