// Sums of trees, and their predictions for single rows.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "additive_handle.h"
#include "arrays.h"
#include "base/threads.h"
#include "interrupt.h"
#include "module.h"
#include "predict/link.h"
#include "predict/walk.h"
#include "table.h"
#include "tree_handle.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

namespace {

AdditiveHandle* make_additive(const std::vector<const TreeHandle*>& trees, std::size_t n_outputs,
                              std::vector<std::uint32_t> n_categories) {
  Forest forest;
  for (const TreeHandle* t : trees) {
    if (t->n_categories != n_categories) throw nb::value_error("The trees have different columns.");
    if (t->tree.value_width != 1) throw nb::value_error("The leaves must have one value.");
    forest.add(t->tree);
  }
  return new AdditiveHandle(std::move(forest), n_outputs, std::move(n_categories));
}

Doubles2Out sums(const AdditiveHandle& self, const TableHandle& table, std::size_t first, std::size_t last,
                 int n_jobs) {
  self.check(table);
  if (first > last || last > self.additive.forest().n_trees()) throw nb::index_error("There is no such tree.");
  const std::size_t width = self.additive.n_outputs();
  auto* owned = new std::vector<double>(table.table.n_rows * width, 0.0);
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  const int n_threads = resolve_threads(n_jobs);
  run_interruptible(
      [&](Interrupt& interrupt) { self.additive.add(table.table, first, last, n_threads, interrupt, owned->data()); });
  return Doubles2Out(owned->data(), {table.table.n_rows, width}, owner);
}

// By name; a parameter follows after a space, and so does each cut between ordered classes.
Link ordinal_link(const std::string& given, std::size_t at) {
  Link link{LinkKind::ordinal};
  const char* last = given.data() + given.size();
  while (at < given.size()) {
    double cut = 0;
    const auto [end, error] = std::from_chars(given.data() + at + 1, last, cut);
    const bool is_apart = end == last || *end == ' ';
    if (error != std::errc{} || !is_apart || (!link.cuts.empty() && !(cut > link.cuts.back())))
      throw nb::value_error("Unknown link.");
    link.cuts.push_back(cut);
    at = static_cast<std::size_t>(end - given.data());
  }
  if (link.cuts.empty()) throw nb::value_error("Unknown link.");
  return link;
}

Link link_named(const std::string& given) {
  static constexpr std::pair<const char*, LinkKind> names[] = {
      {"identity", LinkKind::identity},   {"log", LinkKind::log},
      {"logistic", LinkKind::logistic},   {"signed_square", LinkKind::signed_square},
      {"softplus", LinkKind::softplus},   {"logit", LinkKind::logit},
      {"sigmoid", LinkKind::sigmoid},     {"step", LinkKind::step},
      {"focal", LinkKind::focal},         {"hinge", LinkKind::hinge},
      {"softmax", LinkKind::softmax},     {"one_vs_rest", LinkKind::one_vs_rest},
      {"separate", LinkKind::separate},   {"half_logit", LinkKind::half_logit},
      {"ascending", LinkKind::ascending}, {"log1p", LinkKind::log1p}};
  const std::size_t space = given.find(' ');
  const std::string name = given.substr(0, space);
  if (name == "ordinal") return ordinal_link(given, std::min(space, given.size()));
  double parameter = 0;
  if (space != std::string::npos) {
    const char *first = given.data() + space + 1, *last = given.data() + given.size();
    if (const auto [end, error] = std::from_chars(first, last, parameter); error != std::errc{} || end != last)
      throw nb::value_error("Unknown link.");
  }
  for (const auto& [known, kind] : names)
    if (name == known && has_parameter(kind) == (space != std::string::npos)) return {kind, parameter, {}};
  throw nb::value_error("Unknown link.");
}

Doubles2Out predicted(const std::string& name, const Doubles2& scores) {
  const Link link = link_named(name);
  const std::size_t width = n_predicted(link, scores.shape(1));
  if (takes_one_score(link) && scores.shape(1) != 1) throw nb::value_error("This link takes one score.");
  std::vector<double> out(scores.shape(0) * width);
  apply_link(link, scores.data(), scores.shape(0), scores.shape(1), out.data());
  return own_rows(std::move(out), width);
}

// Predicts one row at a time, with everything prepared.
class RowScorer {
 public:
  RowScorer(const AdditiveHandle& trees, const Doubles1& start, const std::string& link)
      : trees_(trees),
        start_(start.data(), start.data() + start.shape(0)),
        link_(link_named(link)),
        n_columns_(trees.n_categories.size()),
        scores_(start_.size()) {
    if (start_.size() != trees.additive.n_outputs())
      throw nb::value_error("start must have one number for each output.");
    if (start_.size() != 1 && takes_one_score(link_)) throw nb::value_error("This link takes one score.");
    run_interruptible([&](Interrupt& interrupt) { trees.additive.prepare_one(interrupt); });
  }

  // The index of the largest score; for one score, whether it is above 0, or the most probable of ordered classes.
  std::size_t code(const Doubles1& row, const std::optional<Doubles1>& offset) {
    score(row, offset);
    if (link_.kind == LinkKind::ordinal) {
      std::vector<double> proba(n_predicted(link_, 1));
      apply_link(link_, scores_.data(), 1, 1, proba.data());
      return static_cast<std::size_t>(std::max_element(proba.begin(), proba.end()) - proba.begin());
    }
    if (scores_.size() == 1) return scores_[0] > 0;
    return static_cast<std::size_t>(std::max_element(scores_.begin(), scores_.end()) - scores_.begin());
  }

  double value(const Doubles1& row, const std::optional<Doubles1>& offset) {
    score(row, offset);
    if (n_predicted(link_, scores_.size()) != 1) throw nb::value_error("The prediction of a row has several values.");
    double found = 0;
    apply_link(link_, scores_.data(), 1, 1, &found);
    return found;
  }

  // Writes to the caller's array, because NumPy allocates faster than it takes ownership of ours.
  void proba(const Doubles1& row, const Array<double>& out, const std::optional<Doubles1>& offset) {
    if (out.shape(0) != n_predicted(link_, scores_.size()))
      throw nb::value_error("out must have one number for each class.");
    score(row, offset);
    apply_link(link_, scores_.data(), 1, scores_.size(), out.data());
  }

 private:
  // Adds in the order of a batch: trees, start, offset.
  void score(const Doubles1& row, const std::optional<Doubles1>& offset) {
    if (row.shape(0) != n_columns_) throw nb::value_error("The row does not match the columns of the trees.");
    if (offset && offset->shape(0) != scores_.size())
      throw nb::value_error("offset must have one number for each score.");
    std::fill(scores_.begin(), scores_.end(), 0.0);
    trees_.additive.add_one(row.data(), scores_.data());
    for (std::size_t k = 0; k < scores_.size(); ++k) {
      scores_[k] += start_[k];
      if (offset) scores_[k] += offset->data()[k];
    }
  }

  const AdditiveHandle& trees_;
  const std::vector<double> start_;
  const Link link_;
  const std::size_t n_columns_;
  std::vector<double> scores_;
};

template <class T, class Member>
void def_array(nb::class_<AdditiveHandle>& c, const char* name, Member member, const char* doc) {
  c.def_prop_ro(
      name,
      [member](nb::handle_t<AdditiveHandle> self) {
        const auto& values = nb::cast<const AdditiveHandle&>(self).additive.forest().nodes.*member;
        return Array<const T>(values.data(), {values.size()}, self);
      },
      doc);
}

}  // namespace

}  // namespace spinney

void init_additive(nb::module_& m) {
  using namespace spinney;
  nb::class_<AdditiveHandle> c(m, "Additive", "A sum of trees.");
  def_array<std::int32_t>(c, "feature", &Tree::feature, "Column split on; -1 in leaves.");
  def_array<double>(c, "threshold", &Tree::threshold, "Number splits: x <= threshold goes left.");
  def_array<std::uint32_t>(c, "right", &Tree::right, "Right child of each split; its left child is the next node.");
  def_array<double>(c, "impurity", &Tree::impurity,
                    "Times weight: minus twice the decrease of the loss by the node's step.");
  def_array<double>(c, "weight", &Tree::weight, "Weight of the training rows of each node.");
  def_array<double>(c, "value", &Tree::value, "Value of each node.");
  c.def_prop_ro("n_trees", [](const AdditiveHandle& a) { return a.additive.forest().n_trees(); })
      .def_prop_ro(
          "has_linear_leaves", [](const AdditiveHandle& a) { return a.additive.has_linear_leaves(); },
          "Whether some leaves are linear.")
      .def_prop_ro("n_outputs", [](const AdditiveHandle& a) { return a.additive.n_outputs(); })
      .def_prop_ro("size", [](const AdditiveHandle& a) { return a.additive.forest().nodes.size(); })
      .def_prop_ro(
          "root",
          [](nb::handle_t<AdditiveHandle> self) {
            const auto& root = nb::cast<const AdditiveHandle&>(self).additive.forest().root;
            return Array<const std::uint32_t>(root.data(), {root.size()}, self);
          },
          "First node of each tree, then the end.")
      .def(
          "tree",
          [](const AdditiveHandle& a, std::size_t t) {
            if (t >= a.additive.forest().n_trees()) throw nb::index_error("no such tree");
            return new TreeHandle(a.additive.forest().tree(t), a.n_categories);
          },
          "t"_a, nb::rv_policy::take_ownership, "A copy of one tree.")
      .def("sums", &sums, "table"_a, "first"_a, "last"_a, "n_jobs"_a);
  nb::class_<RowScorer>(m, "RowScorer", "Predicts single rows by a sum of trees; not thread-safe.")
      .def(nb::init<const AdditiveHandle&, const Doubles1&, const std::string&>(), "trees"_a, "start"_a, "link"_a,
           nb::keep_alive<1, 2>())
      .def("code", &RowScorer::code, "row"_a, "offset"_a = nb::none(), "Code of the predicted class.")
      .def("value", &RowScorer::value, "row"_a, "offset"_a = nb::none(), "Predicted value.")
      .def("proba", &RowScorer::proba, "row"_a, nb::arg("out").noconvert(), "offset"_a = nb::none(),
           "Write numbers or class probabilities to `out`.");
  m.def("predicted", &predicted, "link"_a, "scores"_a, "Numbers or class probabilities by row, for scores by row.");
  m.def("make_additive", &make_additive, "trees"_a, "n_outputs"_a, "n_categories"_a);
}
