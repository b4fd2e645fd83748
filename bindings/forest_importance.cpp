// Out-of-bag statistics of the splits and columns of a forest.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "base/threads.h"
#include "forest_handle.h"
#include "interrupt.h"
#include "module.h"
#include "predict/importance.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

// The caller's arrays, checked and kept alive.
struct EvaluationArrays {
  EvaluationArrays(const ForestHandle& forest, const TableHandle& table, const SamplingHandle& sampling,
                   const nb::object& target, const std::vector<std::uint32_t>& n_classes, std::optional<Doubles1> w)
      : weight(std::move(w)), evaluated{table.table, sampling.sampling} {
    const std::size_t n_rows = table.table.n_rows;
    forest.check(table);
    if (!forest.forest.nodes.splits.empty())
      throw nb::value_error("A forest does not support surrogates or competing splits.");
    if (sampling.sampling.unit_of_row.size() != n_rows)
      throw nb::value_error("sampling and table have different numbers of rows.");
    if (n_classes.empty()) {
      numbers = nb::cast<Doubles2>(target);
      evaluated.numbers = numbers->data();
      evaluated.n_outputs = numbers->shape(1);
    } else {
      codes = nb::cast<Codes2>(target);
      evaluated.codes = codes->data();
      evaluated.n_outputs = codes->shape(1);
      read_classes(n_classes);
    }
    if ((codes ? codes->shape(0) : numbers->shape(0)) != n_rows)
      throw nb::value_error("target and table have different numbers of rows.");
    if (evaluated.target_width() != forest.forest.nodes.value_width)
      throw nb::value_error("The target does not match the values of the forest.");
    if (weight && weight->shape(0) != n_rows)
      throw nb::value_error("weights and table have different numbers of rows.");
    if (weight) evaluated.weight = weight->data();
  }

  std::optional<Codes2> codes;
  std::optional<Doubles2> numbers;
  std::optional<Doubles1> weight;
  EvaluationRows evaluated;

 private:
  void read_classes(const std::vector<std::uint32_t>& n_classes) {
    if (n_classes.size() != evaluated.n_outputs) throw nb::value_error("n_classes must have one entry per output.");
    evaluated.first_class = {0};
    for (const std::uint32_t n : n_classes) evaluated.first_class.push_back(evaluated.first_class.back() + n);
    for (std::size_t i = 0; i < codes->size(); ++i)
      if (evaluated.codes[i] < 0 ||
          static_cast<std::uint32_t>(evaluated.codes[i]) >= n_classes[i % evaluated.n_outputs])
        throw nb::value_error("A class code is out of range.");
  }
};

static LeafLoss loss_named(const std::string& name, bool has_classes) {
  if (has_classes && name == "error") return LeafLoss::wrong_class;
  if (has_classes && name == "brier") return LeafLoss::squared_proba;
  if (has_classes && name == "margin") return LeafLoss::negative_margin;
  if (!has_classes && name == "squared_error") return LeafLoss::squared_error;
  if (!has_classes && name == "absolute_error") return LeafLoss::absolute_error;
  throw nb::value_error(("Unknown loss: " + name).c_str());
}

static nb::tuple node_sums(const ForestHandle& forest, const TableHandle& table, const SamplingHandle& sampling,
                           const nb::object& target, const std::vector<std::uint32_t>& n_classes,
                           std::optional<Doubles1> weight, int n_jobs) {
  const EvaluationArrays arrays(forest, table, sampling, target, n_classes, std::move(weight));
  NodeSums sums = run_interruptible([&](Interrupt& interrupt) {
    return out_of_bag_sums(forest.forest, arrays.evaluated, resolve_threads(n_jobs), interrupt);
  });
  return nb::make_tuple(own(std::move(sums.weight)), own_rows(std::move(sums.sum), arrays.evaluated.target_width()));
}

static nb::tuple rises(const ForestHandle& forest, const TableHandle& table, const SamplingHandle& sampling,
                       const nb::object& target, const std::vector<std::uint32_t>& n_classes,
                       std::optional<Doubles1> weight, const std::string& loss, std::optional<Codes2> node_class,
                       std::vector<std::vector<std::uint32_t>> groups, std::uint32_t n_repeats, std::uint64_t seed,
                       bool by_row, int n_jobs, std::vector<double> output_scale) {
  const EvaluationArrays arrays(forest, table, sampling, target, n_classes, std::move(weight));
  const std::size_t n_groups = groups.size();
  PermutationRequest request{loss_named(loss, !n_classes.empty()),
                             nullptr,
                             std::move(groups),
                             n_repeats,
                             seed,
                             by_row,
                             std::move(output_scale)};
  if (!request.output_scale.empty() && request.output_scale.size() != arrays.evaluated.n_outputs)
    throw nb::value_error("output_scale must have one number per output.");
  if (n_groups == 0 || n_repeats == 0) throw nb::value_error("There is nothing to permute.");
  for (const auto& group : request.groups) {
    if (group.empty()) throw nb::value_error("groups must not contain an empty group.");
    for (const std::uint32_t f : group)
      if (f >= table.table.n_columns()) throw nb::value_error("groups: a column does not exist.");
  }
  if (request.loss == LeafLoss::wrong_class) {
    if (!node_class || node_class->shape(0) != forest.forest.nodes.size() ||
        node_class->shape(1) != arrays.evaluated.n_outputs)
      throw nb::value_error("node_class must have one row per node and one column per output.");
    request.node_class = node_class->data();
  }
  PermutationRises found = run_interruptible([&](Interrupt& interrupt) {
    return permutation_increases(forest.forest, arrays.evaluated, request, resolve_threads(n_jobs), interrupt);
  });
  return nb::make_tuple(own(std::move(found.loss)), own_rows(std::move(found.rise), n_groups),
                        own_rows(std::move(found.row_rise), n_groups), own(std::move(found.row_trees)));
}

}  // namespace spinney

void init_forest_importance(nb::module_& m) {
  using namespace spinney;
  m.def("out_of_bag_sums", &node_sums, "forest"_a, "table"_a, "sampling"_a, "target"_a, "n_classes"_a,
        "weight"_a.none(), "n_jobs"_a, "Weight and summed target of the out-of-bag rows at each node.");
  m.def("permutation_increases", &rises, "forest"_a, "table"_a, "sampling"_a, "target"_a, "n_classes"_a,
        "weight"_a.none(), "loss"_a, "node_class"_a.none(), "groups"_a, "n_repeats"_a, "seed"_a, "by_row"_a, "n_jobs"_a,
        "output_scale"_a,
        "Loss of each tree, its increase by tree and group and by row and group, and the number of trees by row.");
}
