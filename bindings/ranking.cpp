// Ranking losses.
#include "loss/ranking.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>

#include "arrays.h"
#include "base/threads.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

namespace {

class RankedListsHandle {
 public:
  RankedListsHandle(const Numbers1& rows, const Numbers1& ends, const Doubles1& gain,
                    const std::optional<Doubles1>& weight, std::size_t n_rows, bool by_gain, std::size_t truncation)
      : n_rows_(n_rows), lists_(check(rows, ends, gain, weight, n_rows, by_gain, truncation)) {}

  std::tuple<Doubles2Out, Doubles2Out, double> gradients(const Doubles1& scores, int n_jobs) const {
    check_scores(scores);
    std::vector<double> gradients(n_rows_, 0.0), hessians(n_rows_, 0.0);
    double loss = 0;
    {
      nb::gil_scoped_release release;
      loss = lists_.gradients(scores.data(), gradients.data(), hessians.data(), resolve_threads(n_jobs));
    }
    return {own_rows(std::move(gradients), n_rows_), own_rows(std::move(hessians), n_rows_), loss};
  }

  double mean_loss(const Doubles1& scores, int n_jobs) const {
    check_scores(scores);
    nb::gil_scoped_release release;
    return lists_.mean_loss(scores.data(), resolve_threads(n_jobs));
  }

  Array<double> normalised_gains(const Doubles1& scores, int n_jobs) const {
    check_scores(scores);
    std::vector<double> gains;
    {
      nb::gil_scoped_release release;
      gains = lists_.normalised_gains(scores.data(), resolve_threads(n_jobs));
    }
    return own(std::move(gains));
  }

 private:
  void check_scores(const Doubles1& scores) const {
    if (scores.shape(0) != n_rows_) throw nb::value_error("scores must have one number for each row.");
  }

  static RankedLists check(const Numbers1& rows, const Numbers1& ends, const Doubles1& gain,
                           const std::optional<Doubles1>& weight, std::size_t n_rows, bool by_gain,
                           std::size_t truncation) {
    const std::size_t n = rows.shape(0);
    if (gain.shape(0) != n || (weight && weight->shape(0) != n))
      throw nb::value_error("gain and weight must have one number for each row.");
    if (truncation < 1) throw nb::value_error("truncation must be at least 1.");
    std::uint32_t before = 0;
    for (std::size_t i = 0; i < ends.shape(0); ++i) {
      if (ends.data()[i] <= before || ends.data()[i] > n) throw nb::value_error("A list has no rows.");
      before = ends.data()[i];
    }
    if (before != n) throw nb::value_error("The last of ends must be the number of rows.");
    for (std::size_t i = 0; i < n; ++i)
      if (rows.data()[i] >= n_rows) throw nb::value_error("rows: a row does not exist.");
    const auto doubles = [](const Doubles1& from) { return std::vector(from.data(), from.data() + from.shape(0)); };
    return RankedLists(std::vector(rows.data(), rows.data() + n), std::vector(ends.data(), ends.data() + ends.shape(0)),
                       doubles(gain), weight ? doubles(*weight) : std::vector<double>{}, {by_gain, truncation});
  }

  std::size_t n_rows_;
  RankedLists lists_;
};

}  // namespace

}  // namespace spinney

void init_ranking(nb::module_& m) {
  using namespace spinney;
  nb::class_<RankedListsHandle>(m, "RankedLists", "Lists of rows that are ranked by their scores.")
      .def(nb::init<const Numbers1&, const Numbers1&, const Doubles1&, const std::optional<Doubles1>&, std::size_t,
                    bool, std::size_t>(),
           nb::kw_only(), "rows"_a, "ends"_a, "gain"_a, "weight"_a.none(), "n_rows"_a, "by_gain"_a, "truncation"_a)
      .def("gradients", &RankedListsHandle::gradients, "scores"_a, "n_jobs"_a,
           "Gradients and hessians, (1, n_rows), without weights, and the mean loss.")
      .def("mean_loss", &RankedListsHandle::mean_loss, "scores"_a, "n_jobs"_a, "The mean loss at these scores.")
      .def("normalised_gains", &RankedListsHandle::normalised_gains, "scores"_a, "n_jobs"_a,
           "Normalised discounted gain of each list; NaN if it has no gain.");
}
