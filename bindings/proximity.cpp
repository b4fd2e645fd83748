// Random-forest proximities.
#include "predict/proximity.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>

#include "arrays.h"
#include "base/threads.h"
#include "interrupt.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

using Leaves2 = nb::ndarray<const std::uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Starts1 = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bits2 = nb::ndarray<const std::uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Checks everything that the engine reads without bounds checks.
static SharedLeaves shared_leaves(const Leaves2& leaf, const Starts1& starts, const Numbers1& others,
                                  std::size_t n_others, bool is_self, const std::optional<Bits2>& bits,
                                  const std::optional<Bits2>& other_bits) {
  SharedLeaves s;
  s.n_trees = leaf.shape(1);
  s.leaf = {leaf.data(), leaf.size()};
  s.starts = {starts.data(), starts.size()};
  s.others = {others.data(), others.size()};
  s.n_others = n_others;
  s.is_self = is_self;
  const std::size_t n_leaves = s.starts.empty() ? 0 : s.starts.size() - 1;
  const auto is_leaf = [&](std::uint32_t l) { return l == SharedLeaves::nowhere || l < n_leaves; };
  if (s.n_trees == 0 || s.n_trees > 0xffff) throw nb::value_error("The number of trees must be between 1 and 65,535.");
  if (!std::all_of(s.leaf.begin(), s.leaf.end(), is_leaf)) throw nb::value_error("leaf: a leaf does not exist.");
  if (n_leaves == 0 || s.starts.back() != s.others.size() || !std::is_sorted(s.starts.begin(), s.starts.end()))
    throw nb::value_error("starts does not match the contents of the leaves.");
  if (!std::all_of(s.others.begin(), s.others.end(), [&](std::uint32_t o) { return o < n_others; }))
    throw nb::value_error("others: a row does not exist.");
  if (bits.has_value() != other_bits.has_value()) throw nb::value_error("Pass bits and other_bits, or neither.");
  if (bits) {
    s.n_words = bits->shape(1);
    if (other_bits->shape(1) != s.n_words || bits->shape(0) != leaf.shape(0) || other_bits->shape(0) != n_others)
      throw nb::value_error("bits and rows have inconsistent shapes.");
    s.bits = {bits->data(), bits->size()};
    s.other_bits = {other_bits->data(), other_bits->size()};
  }
  return s;
}

static nb::tuple nearest(const Leaves2& leaf, const Starts1& starts, const Numbers1& others, std::size_t n_others,
                         bool is_self, const std::optional<Bits2>& bits, const std::optional<Bits2>& other_bits,
                         std::size_t n_most, double threshold, int n_jobs) {
  const SharedLeaves leaves = shared_leaves(leaf, starts, others, n_others, is_self, bits, other_bits);
  const int n_threads = resolve_threads(n_jobs);
  Neighbours found = run_interruptible(
      [&](Interrupt& interrupt) { return nearest_rows(leaves, n_most, threshold, n_threads, interrupt); });
  return nb::make_tuple(own(std::move(found.n)), own(std::move(found.other)), own(std::move(found.proximity)));
}

static Array<double> squares(const Leaves2& leaf, const Starts1& starts, const Numbers1& others, std::size_t n_others,
                             bool is_self, const std::optional<Bits2>& bits, const std::optional<Bits2>& other_bits,
                             int n_jobs) {
  const SharedLeaves leaves = shared_leaves(leaf, starts, others, n_others, is_self, bits, other_bits);
  const int n_threads = resolve_threads(n_jobs);
  return own(
      run_interruptible([&](Interrupt& interrupt) { return squared_proximities(leaves, n_threads, interrupt); }));
}

}  // namespace spinney

void init_proximity(nb::module_& m) {
  using namespace spinney;
  m.def("nearest_rows", &nearest, "leaf"_a, "starts"_a, "others"_a, "n_others"_a, "is_self"_a, "bits"_a.none(),
        "other_bits"_a.none(), "n_most"_a, "threshold"_a, "n_jobs"_a,
        "Number of neighbours of each row, then the neighbours and their proximities, row after row.");
  m.def("squared_proximities", &squares, "leaf"_a, "starts"_a, "others"_a, "n_others"_a, "is_self"_a, "bits"_a.none(),
        "other_bits"_a.none(), "n_jobs"_a, "Sum of the squares of each row's proximities.");
}
