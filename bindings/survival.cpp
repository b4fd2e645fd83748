// Losses for censored times.
#include "loss/survival.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <tuple>

#include "arrays.h"
#include "base/threads.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

namespace {

using Bytes1 = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Found = std::tuple<Doubles2Out, Doubles2Out, double>;  // gradients, hessians, mean loss

std::span<const double> span_of(const Doubles1& values) { return {values.data(), values.shape(0)}; }
std::span<const double> span_of(const std::optional<Doubles1>& values) {
  return values ? span_of(*values) : std::span<const double>{};
}

void check_lengths(std::size_t n, std::size_t other, const std::optional<Doubles1>& weight) {
  if (other != n || (weight && weight->shape(0) != n))
    throw nb::value_error("Times and weights have different lengths.");
}

void check_scores(const Doubles1& scores, std::size_t n) {
  if (scores.shape(0) != n) throw nb::value_error("scores must have one number for each row.");
}

// body(gradients, hessians) returns the mean loss, without the GIL
template <class Body>
Found gradients_of(std::size_t n, Body&& body) {
  std::vector<double> gradients(n, 0.0), hessians(n, 0.0);
  double loss = 0;
  {
    nb::gil_scoped_release release;
    loss = body(gradients.data(), hessians.data());
  }
  return {own_rows(std::move(gradients), n), own_rows(std::move(hessians), n), loss};
}

class CoxRowsHandle {
 public:
  CoxRowsHandle(const Doubles1& time, const Bytes1& is_event, const std::optional<Doubles1>& weight, bool is_efron)
      : n_rows_(checked(time, is_event, weight)),
        rows_(span_of(time), {is_event.data(), is_event.shape(0)}, span_of(weight), is_efron) {}

  Found gradients(const Doubles1& scores) const {
    check_scores(scores, n_rows_);
    return gradients_of(n_rows_, [&](double* g, double* h) { return rows_.gradients(scores.data(), g, h); });
  }
  double mean_loss(const Doubles1& scores) const {
    check_scores(scores, n_rows_);
    return rows_.mean_loss(scores.data());
  }
  std::tuple<Array<double>, Array<double>> baseline(const Doubles1& scores) const {
    check_scores(scores, n_rows_);
    CoxRows::Baseline found = rows_.baseline(scores.data());
    return {own(std::move(found.time)), own(std::move(found.hazard))};
  }

 private:
  static std::size_t checked(const Doubles1& time, const Bytes1& is_event, const std::optional<Doubles1>& weight) {
    check_lengths(time.shape(0), is_event.shape(0), weight);
    return time.shape(0);
  }
  std::size_t n_rows_;
  CoxRows rows_;
};

TimeDistribution distribution_named(const std::string& name) {
  if (name == "normal") return TimeDistribution::normal;
  if (name == "logistic") return TimeDistribution::logistic;
  if (name == "extreme") return TimeDistribution::extreme;
  throw nb::value_error("Unknown distribution.");
}

class TimedRowsHandle {
 public:
  TimedRowsHandle(const Doubles1& low, const Doubles1& high, const std::optional<Doubles1>& weight,
                  const std::string& distribution)
      : n_rows_(checked(low, high, weight)),
        rows_(span_of(low), span_of(high), span_of(weight), distribution_named(distribution)) {}

  Found gradients(const Doubles1& scores, double scale, int n_jobs) const {
    check_scores(scores, n_rows_);
    return gradients_of(n_rows_, [&](double* g, double* h) {
      return rows_.gradients(scores.data(), scale, g, h, resolve_threads(n_jobs));
    });
  }
  double mean_loss(const Doubles1& scores, double scale, int n_jobs) const {
    check_scores(scores, n_rows_);
    nb::gil_scoped_release release;
    return rows_.mean_loss(scores.data(), scale, resolve_threads(n_jobs));
  }

 private:
  static std::size_t checked(const Doubles1& low, const Doubles1& high, const std::optional<Doubles1>& weight) {
    check_lengths(low.shape(0), high.shape(0), weight);
    return low.shape(0);
  }
  std::size_t n_rows_;
  TimedRows rows_;
};

Array<double> survival(const std::string& name, const Doubles1& z) {
  const TimeDistribution distribution = distribution_named(name);
  std::vector<double> found(z.shape(0));
  for (std::size_t i = 0; i < found.size(); ++i) found[i] = survival_at(distribution, z.data()[i]);
  return own(std::move(found));
}

double concordance_of(const Doubles1& low, const Doubles1& high, const Doubles1& expected,
                      const std::optional<Doubles1>& weight) {
  check_lengths(low.shape(0), high.shape(0), weight);
  check_scores(expected, low.shape(0));
  nb::gil_scoped_release release;
  return concordance(span_of(low), span_of(high), span_of(expected), span_of(weight));
}

}  // namespace

}  // namespace spinney

void init_survival(nb::module_& m) {
  using namespace spinney;
  nb::class_<CoxRowsHandle>(m, "CoxRows", "Rows for Cox's proportional hazards.")
      .def(nb::init<const Doubles1&, const Bytes1&, const std::optional<Doubles1>&, bool>(), "time"_a, "is_event"_a,
           "weight"_a.none(), "is_efron"_a = false)
      .def("gradients", &CoxRowsHandle::gradients, "scores"_a,
           "Gradients and hessians, (1, n_rows), without weights, and the mean loss.")
      .def("mean_loss", &CoxRowsHandle::mean_loss, "scores"_a, "The mean loss at these scores.")
      .def("baseline", &CoxRowsHandle::baseline, "scores"_a,
           "Event times, ascending, and the cumulative hazard at a score of 0.");
  nb::class_<TimedRowsHandle>(m, "TimedRows", "Rows with interval-censored times, for accelerated failure times.")
      .def(nb::init<const Doubles1&, const Doubles1&, const std::optional<Doubles1>&, const std::string&>(), "low"_a,
           "high"_a, "weight"_a.none(), "distribution"_a)
      .def("gradients", &TimedRowsHandle::gradients, "scores"_a, "scale"_a, "n_jobs"_a,
           "Gradients and hessians, (1, n_rows), without weights, and the mean loss.")
      .def("mean_loss", &TimedRowsHandle::mean_loss, "scores"_a, "scale"_a, "n_jobs"_a,
           "The mean loss at these scores.");
  m.def("survival_function", &survival, "distribution"_a, "z"_a,
        "Survival function at each z, the log time minus the score divided by the scale.");
  m.def(
      "time_quantile",
      [](const std::string& name, double probability) { return quantile_of(distribution_named(name), probability); },
      "distribution"_a, "probability"_a, "The quantile of z at a probability.");
  m.def("concordance", &concordance_of, "low"_a, "high"_a, "expected"_a, "weight"_a.none(),
        "Harrell's concordance of time intervals and predictions; NaN if no pair can be compared.");
}
