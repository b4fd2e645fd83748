// Nearest neighbours.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <map>
#include <string>

#include "arrays.h"
#include "base/threads.h"
#include "interrupt.h"
#include "local/index.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

template <class Value>
static Value named(const std::map<std::string, Value>& known, const std::string& name, const char* what) {
  const auto found = known.find(name);
  if (found == known.end()) throw nb::value_error((std::string(what) + ": unknown name: " + name).c_str());
  return found->second;
}

static const std::map<std::string, Metric> metrics{{"squares", Metric::squares},     {"absolute", Metric::absolute},
                                                   {"powers", Metric::powers},       {"largest", Metric::largest},
                                                   {"differing", Metric::differing}, {"gower", Metric::gower}};
static const std::map<std::string, Search> searches{
    {"brute", Search::all_rows}, {"tree", Search::tree}, {"auto", Search::cheaper}};

static void make_index(NeighbourIndex* self, const Doubles2& rows, const std::string& metric, double p,
                       const std::string& algorithm, std::size_t k, int n_jobs) {
  if (rows.shape(0) == 0 || rows.shape(0) >= NeighbourIndex::no_row)
    throw nb::value_error("rows has too few or too many rows.");
  if (!(p > 0)) throw nb::value_error("p must be positive.");
  const Measure measure{named(metrics, metric, "metric"), p};
  const Search search = named(searches, algorithm, "algorithm");
  const int n_threads = resolve_threads(n_jobs);
  run_interruptible([&](Interrupt& interrupt) {
    new (self) NeighbourIndex({rows.data(), rows.size()}, rows.shape(0), rows.shape(1), measure, search, k, n_threads,
                              interrupt);
  });
}

static nb::tuple nearest(const NeighbourIndex& index, const Doubles2& queries, std::size_t k, int n_jobs) {
  const std::size_t n = queries.shape(0);
  if (queries.shape(1) != index.n_terms()) throw nb::value_error("queries and rows have different numbers of columns.");
  if (k == 0 || k > index.n_rows()) throw nb::value_error("k must be between 1 and the number of rows.");
  std::vector<Row> rows(n * k);
  std::vector<double> keys(n * k);
  const int n_threads = resolve_threads(n_jobs);
  run_interruptible([&](Interrupt& interrupt) {
    index.nearest(queries.data(), n, k, rows.data(), keys.data(), n_threads, interrupt);
  });
  return nb::make_tuple(own(std::move(rows)), own(std::move(keys)));
}

}  // namespace spinney

void init_neighbours(nb::module_& m) {
  using namespace spinney;
  nb::class_<NeighbourIndex>(m, "NeighbourIndex", "An index for nearest-neighbour search.")
      .def("__init__", &make_index, "rows"_a, "metric"_a, "p"_a, "algorithm"_a, "k"_a, "n_jobs"_a,
           "rows: n_rows x n_terms. metric: squares, absolute, powers, largest, differing or gower. algorithm: brute,\n"
           "tree, or auto for the cheaper one for k neighbours.")
      .def("nearest", &nearest, "queries"_a, "k"_a, "n_jobs"_a,
           "The k nearest rows of each query, nearest first, query after query, and their keys, by which\n"
           "distances are compared by.")
      .def_prop_ro("has_tree", &NeighbourIndex::has_tree, "Whether it uses a tree.");
}
