// Builds trees from nodes in any order, for models of other libraries.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "arrays.h"
#include "module.h"
#include "tree/from_nodes.h"
#include "tree/validate.h"
#include "tree_handle.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

using Integers1 = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes1 = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Array>
static auto spanned(const Array& array) {
  return std::span{array.data(), array.size()};
}

static TreeHandle* make_tree(const Integers1& left, const Integers1& right, const Integers1& feature,
                             const Doubles1& threshold, const Bytes1& flags, const Numbers1& begin,
                             const Numbers1& codes, const Doubles1& weight, const Numbers1& n_rows,
                             const Doubles2& value, const std::optional<Doubles1>& gain,
                             const std::optional<Doubles1>& impurity, std::vector<std::uint32_t> n_categories) {
  const LooseNodes nodes{.left = spanned(left),
                         .right = spanned(right),
                         .feature = spanned(feature),
                         .threshold = spanned(threshold),
                         .flags = spanned(flags),
                         .begin = spanned(begin),
                         .codes = spanned(codes),
                         .weight = spanned(weight),
                         .n_rows = spanned(n_rows),
                         .value = spanned(value),
                         .value_width = static_cast<std::uint32_t>(value.shape(1)),
                         .gain = gain ? spanned(*gain) : std::span<const double>(),
                         .impurity = impurity ? spanned(*impurity) : std::span<const double>(),
                         .averages_inner = gain.has_value()};
  const nb::gil_scoped_release unlocked;
  Tree tree = tree_from_nodes(nodes);
  const std::string fault = find_fault(tree, n_categories);
  if (!fault.empty()) throw std::invalid_argument(fault);
  return new TreeHandle(std::move(tree), std::move(n_categories));
}

}  // namespace spinney

void init_loose_nodes(nb::module_& m) {
  using namespace spinney;
  m.def("make_tree", &make_tree, "left"_a, "right"_a, "feature"_a, "threshold"_a, "flags"_a, "begin"_a, "codes"_a,
        "weight"_a, "n_rows"_a, "value"_a, "gain"_a.none(), "impurity"_a.none(), "n_categories"_a,
        "Build a tree from nodes in any order, starting at node 0; negative children mean none. With gains, the value "
        "of a split is the "
        "mean of its children's. Raises ValueError if the tree is invalid.");
}
