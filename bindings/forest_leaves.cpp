// The training rows in the leaves of a forest, and prediction intervals.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "arrays.h"
#include "base/threads.h"
#include "interrupt.h"
#include "module.h"
#include "predict/jackknife.h"
#include "predict/leaf_rows.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

using Leaves2 = nb::ndarray<const std::uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T, class A>
static std::span<const T> span_of(const A& array) {
  return {array.data(), array.size()};
}

static void add_tree(LeafRows& self, const Numbers1& leaf, const Doubles1& amount, std::uint32_t n_nodes) {
  if (leaf.shape(0) != self.n_rows() || amount.shape(0) != self.n_rows())
    throw nb::value_error("Pass a leaf and an amount for each row.");
  for (std::size_t r = 0; r < self.n_rows(); ++r) {
    if (leaf(r) >= n_nodes) throw nb::value_error("There is no such leaf.");
    if (!std::isfinite(amount(r))) throw nb::value_error("An amount is not finite.");
  }
  self.add_tree(span_of<std::uint32_t>(leaf), span_of<double>(amount), n_nodes);
}

static std::span<const std::uint32_t> checked(const LeafRows& self, const Leaves2& leaf) {
  const std::size_t n_trees = self.n_trees();
  if (n_trees == 0 || leaf.shape(1) != n_trees) throw nb::value_error("Pass a leaf of each tree for each row.");
  for (std::size_t q = 0; q < leaf.shape(0); ++q)
    for (std::size_t t = 0; t < n_trees; ++t)
      if (leaf(q, t) != LeafRows::left_out && leaf(q, t) >= self.n_nodes(t))
        throw nb::value_error("There is no such leaf.");
  return span_of<std::uint32_t>(leaf);
}

static Array<double> quantiles(const LeafRows& self, const Leaves2& leaf, const Numbers1& place, const Doubles1& target,
                               const Doubles1& levels, int n_jobs) {
  const auto leaves = checked(self, leaf);
  const auto places = span_of<std::uint32_t>(place);
  if (places.size() != self.n_rows() || target.size() != self.n_rows())
    throw nb::value_error("Pass a rank and a target for each row.");
  if (std::any_of(places.begin(), places.end(), [&](std::uint32_t p) { return p >= self.n_rows(); }))
    throw nb::value_error("A rank is out of range.");
  std::vector<double> out(leaf.shape(0) * levels.size());
  const int n_threads = resolve_threads(n_jobs);
  run_interruptible([&](Interrupt& interrupt) {
    self.quantiles(leaves, places, span_of<double>(target), span_of<double>(levels), n_threads, interrupt, out.data());
  });
  return own(std::move(out));
}

static nb::tuple weights(const LeafRows& self, const Leaves2& leaf, int n_jobs) {
  const auto leaves = checked(self, leaf);
  const int n_threads = resolve_threads(n_jobs);
  LeafRows::Weights found =
      run_interruptible([&](Interrupt& interrupt) { return self.weights(leaves, n_threads, interrupt); });
  return nb::make_tuple(own(std::move(found.start)), own(std::move(found.row)), own(std::move(found.weight)));
}

static Array<double> effective_rows(const LeafRows& self, const Leaves2& leaf, int n_jobs) {
  const auto leaves = checked(self, leaf);
  std::vector<double> out(leaf.shape(0));
  const int n_threads = resolve_threads(n_jobs);
  run_interruptible([&](Interrupt& interrupt) { self.effective_rows(leaves, n_threads, interrupt, out.data()); });
  return own(std::move(out));
}

using Bytes2 = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

static Doubles2Out jackknife_ends(const Doubles2& by_tree, const Bytes2& unseen, const Doubles1& error,
                                  const std::optional<Doubles1>& weight, double needed, int n_jobs) {
  Errors errors{by_tree.shape(1), span_of<std::uint8_t>(unseen), span_of<double>(error), {}, needed};
  if (errors.n_trees == 0 || error.size() == 0 || unseen.shape(1) != error.size() ||
      unseen.shape(0) != errors.n_bytes())
    throw nb::value_error("Pass an error and a bit of each tree for each row.");
  if (weight) {
    if (weight->size() != error.size()) throw nb::value_error("Pass a weight for each row.");
    errors.weight = span_of<double>(*weight);
  }
  std::vector<double> out(by_tree.shape(0) * 2);
  const int n_threads = resolve_threads(n_jobs);
  run_interruptible([&](Interrupt& interrupt) {
    jackknife_plus(errors, span_of<double>(by_tree), n_threads, interrupt, out.data());
    return 0;
  });
  return own_rows(std::move(out), 2);
}

}  // namespace spinney

void init_forest_leaves(nb::module_& m) {
  using namespace spinney;
  nb::class_<LeafRows>(m, "LeafRows", "The training rows in the leaves of a forest.")
      .def(nb::init<std::size_t>(), "n_rows"_a)
      .def("add_tree", &add_tree, "leaf"_a, "amount"_a, "n_nodes"_a, "Add a tree: leaf and weight of each row.")
      .def("quantiles", &quantiles, "leaf"_a, "place"_a, "target"_a, "levels"_a, "n_jobs"_a,
           "Weighted quantiles of the targets for each row of leaves, flat; leaf 2**32 - 1 skips a tree.")
      .def("weights", &weights, "leaf"_a, "n_jobs"_a, "Weights on the training rows: starts, rows, weights.")
      .def("effective_rows", &effective_rows, "leaf"_a, "n_jobs"_a, "1 / sum of squared weights.");
  m.def("jackknife_plus", &jackknife_ends, "by_tree"_a, "unseen"_a, "error"_a, "weight"_a.none(), "needed"_a,
        "n_jobs"_a, "Lower and upper end for each row of tree predictions.");
}
