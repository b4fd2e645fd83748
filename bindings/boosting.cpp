// Gradient boosting, round by round.
#include "learn/boosting.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <tuple>

#include "additive_handle.h"
#include "arrays.h"
#include "base/threads.h"
#include "boost/statistics.h"
#include "boosting_handles.h"
#include "growth_options.h"
#include "interrupt.h"
#include "learn/members.h"
#include "module.h"
#include "table.h"
#include "tree_handle.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

namespace {

void check_classes(const double* target, std::size_t n, std::uint32_t n_classes) {
  for (std::size_t r = 0; r < n; ++r)
    if (!(target[r] >= 0) || target[r] >= n_classes) throw nb::value_error("A class code is out of range.");
}

// Training or validation rows, with the owners of their arrays.
struct RowsOwner {
  nb::object table;
  std::optional<Doubles2> target;
  std::optional<Doubles1> weight;

  BoostingRows read(const TableHandle& handle, Doubles2 y, std::optional<Doubles1> w, const Doubles2& scores,
                    const BoostingParams& params) {
    const std::uint32_t n_scores = params.n_scores();
    table = nb::find(handle);
    target = std::move(y);
    weight = std::move(w);
    const std::size_t n = handle.table.n_rows;
    if (target->shape(0) != params.losses.size() || target->shape(1) != n || (weight && weight->shape(0) != n) ||
        scores.shape(0) != n_scores || scores.shape(1) != n)
      throw nb::value_error("table, target, weight and scores have different numbers of rows.");
    for (std::size_t p = 0; p < params.losses.size(); ++p)
      if (params.losses[p].loss == Loss::multinomial)
        check_classes(target->data() + p * n, n, params.losses[p].n_scores);
    BoostingRows rows;
    rows.table = &handle.table;
    rows.target = target->data();
    rows.weight = weight ? weight->data() : nullptr;
    for (std::uint32_t k = 0; k < n_scores; ++k)
      rows.scores.emplace_back(scores.data() + k * n, scores.data() + (k + 1) * n, handle.table.spill);
    return rows;
  }
};

// Codes, with the owner of their table.
struct CodedTableHandle {
  nb::object owner;
  std::shared_ptr<const CodedTable> coded;
};

void code_table(CodedTableHandle* self, const TableHandle& table, const std::optional<Doubles1>& weight,
                const BoostingOptions& options) {
  new (self) CodedTableHandle;
  if (weight && weight->shape(0) != table.table.n_rows)
    throw nb::value_error("table and weight have different numbers of rows.");
  self->owner = nb::find(table);
  const double* weights = weight ? weight->data() : nullptr;
  const BoostingParams& params = options.params;
  self->coded = run_interruptible([&](Interrupt& interrupt) {
    return std::make_shared<const CodedTable>(table.table, &table.table, weights, params.max_bins,
                                              !params.tree.symmetric, params.tree.forced_splits, params.tree.n_threads,
                                              interrupt);
  });
}

struct BoostingHandle {
  RowsOwner rows, held_out;
  std::unique_ptr<Boosting> boosting;
  std::vector<std::uint32_t> n_categories;
  RoundLog log;
};

using HeldOut = std::tuple<const TableHandle*, Doubles2, std::optional<Doubles1>, Doubles2>;

void start(BoostingHandle* self, const TableHandle& table, Doubles2 target, std::optional<Doubles1> weight,
           const Doubles2& scores, std::optional<HeldOut> held_out, const BoostingOptions& options,
           std::uint32_t first_round, const CodedTableHandle* coded) {
  new (self) BoostingHandle;
  const BoostingParams& params = options.params;
  check_columns(params, table.table.n_columns());
  BoostingRows rows = self->rows.read(table, std::move(target), std::move(weight), scores, params);
  BoostingRows validation;
  if (held_out) {
    auto& [other, validation_target, validation_weight, validation_scores] = *held_out;
    if (other == nullptr || categories_of(other->table) != categories_of(table.table))
      throw nb::value_error("The tables have different columns.");
    validation = self->held_out.read(*other, std::move(validation_target), std::move(validation_weight),
                                     validation_scores, params);
  }
  self->n_categories = categories_of(table.table);
  self->boosting = run_interruptible([&](Interrupt& interrupt) {
    return std::make_unique<Boosting>(std::move(rows), std::move(validation), params, first_round, interrupt,
                                      coded == nullptr ? nullptr : coded->coded);
  });
}

Doubles2Out copy_scores(const std::vector<RowVector<double>>& scores) {
  const std::size_t n = scores.empty() ? 0 : scores[0].size();
  auto* owned = new std::vector<double>;
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  for (const auto& s : scores) owned->insert(owned->end(), s.begin(), s.end());
  return Doubles2Out(owned->data(), {scores.size(), n}, owner);
}

nb::bytes out_of_bag(const BoostingHandle& self) {
  std::vector<char> is_out(self.boosting->rows().table->n_rows, 0);
  for (const Row r : self.boosting->out_of_bag()) is_out[r] = 1;
  return nb::bytes(is_out.data(), is_out.size());
}

Doubles2Out scores_to_fit(const BoostingHandle& self) { return copy_scores(self.boosting->scores_to_fit()); }

std::vector<std::size_t> n_dropped(const BoostingHandle& self) {
  std::vector<std::size_t> found;
  for (const auto& rounds : self.boosting->dropped()) found.push_back(rounds.size());
  return found;
}

std::vector<TreeHandle*> refit_round(BoostingHandle& self, const std::vector<const TreeHandle*>& trees, double decay) {
  const std::size_t n_scores = self.boosting->rows().scores.size();
  if (trees.size() != n_scores) throw nb::value_error("A round must have one tree for each score.");
  for (const TreeHandle* tree : trees)
    if (tree == nullptr || tree->n_categories != self.n_categories || tree->tree.value_width != 1 ||
        !tree->tree.linear_leaves.empty())
      throw nb::value_error("The trees do not match the columns of the table.");
  std::vector<Tree> found = run_interruptible([&](Interrupt& interrupt) {
    const Table& table = *self.boosting->rows().table;
    std::vector<std::uint32_t> leaf(table.n_rows);
    std::vector<Tree> made;
    for (std::uint32_t k = 0; k < n_scores; ++k) {
      Walker(trees[k]->tree).apply(table, self.boosting->n_threads(), interrupt, leaf.data());
      made.push_back(self.boosting->refit(k, trees[k]->tree, leaf, decay));
    }
    return made;
  });
  std::vector<TreeHandle*> handles;
  for (Tree& tree : found) handles.push_back(new TreeHandle(std::move(tree), self.n_categories));
  return handles;
}

void set_gradients(BoostingHandle& self, const Doubles2& gradients, const Doubles2& hessians) {
  const std::size_t n_scores = self.boosting->rows().scores.size(), n = self.boosting->rows().table->n_rows;
  for (const Doubles2* given : {&gradients, &hessians})
    if (given->shape(0) != n_scores || given->shape(1) != n)
      throw nb::value_error("Pass one number for each score column and row.");
  nb::gil_scoped_release release;
  self.boosting->set_gradients(gradients.data(), hessians.data());
}

using Statistics = std::vector<std::tuple<std::uint32_t, Doubles1, double, double>>;

std::vector<CategoryStatistic> read_statistics(const Statistics& given,
                                               const std::vector<std::uint32_t>& n_categories) {
  std::vector<CategoryStatistic> statistics;
  for (const auto& [source, of_category, of_missing, of_unseen] : given) {
    if (source + given.size() >= n_categories.size() || of_category.shape(0) != n_categories[source])
      throw nb::value_error("A statistic needs a category column and a number for each category.");
    statistics.push_back({source, {of_category.data(), of_category.shape(0)}, of_missing, of_unseen});
  }
  return statistics;
}

// A booster's trees in their final form: values multiplied by the factor of their score, and without the table's last
// columns if these are statistics of others.
class ModelTrees {
 public:
  ModelTrees(const BoostingHandle& booster, const std::vector<double>& factors, const Statistics& given,
             std::optional<std::uint32_t> n_rounds)
      : trees_(booster.boosting->trees()),
        factors_(factors),
        n_scores_(booster.boosting->rows().scores.size()),
        statistics_(read_statistics(given, booster.n_categories)),
        n_categories_(booster.n_categories) {
    if (!factors.empty() && factors.size() != n_scores_)
      throw nb::value_error("factors must have one number for each score.");
    n_categories_.resize(n_categories_.size() - statistics_.size());
    n_trees_ = n_rounds ? std::min(trees_.size(), *n_rounds * n_scores_) : trees_.size();
    round_weights_ = booster.boosting->round_weights(static_cast<std::uint32_t>(n_rounds_used()));
  }

  std::size_t n_trees() const { return n_trees_; }
  std::size_t n_rounds_used() const { return n_trees_ / n_scores_; }
  const std::vector<std::uint32_t>& n_categories() const { return n_categories_; }

  Tree tree(std::size_t t) const {
    Tree tree = trees_[t];
    for (const double factor : {round_weights_[t / n_scores_], factors_.empty() ? 1.0 : factors_[t % n_scores_]}) {
      for (double& value : tree.value) value *= factor;
      tree.linear_leaves.multiply(factor);
    }
    restore_categories(tree, n_categories_.size(), statistics_);
    return tree;
  }

 private:
  const std::vector<Tree>& trees_;
  const std::vector<double>& factors_;
  const std::size_t n_scores_;
  const std::vector<CategoryStatistic> statistics_;
  std::vector<std::uint32_t> n_categories_;
  std::size_t n_trees_ = 0;
  std::vector<double> round_weights_;
};

std::vector<TreeHandle*> trees_of(const BoostingHandle& self, std::size_t first, const std::vector<double>& factors,
                                  const Statistics& given, std::optional<std::uint32_t> n_rounds) {
  const ModelTrees model(self, factors, given, n_rounds);
  std::vector<TreeHandle*> trees;
  for (std::size_t t = first; t < model.n_trees(); ++t)
    trees.push_back(new TreeHandle(model.tree(t), model.n_categories()));
  return trees;
}

// The first round of each booster, the second of each, and so on. Some boosters may know only the first columns.
AdditiveHandle* interleave_rounds(const std::vector<const BoostingHandle*>& boosters,
                                  const std::vector<std::vector<double>>& factors,
                                  const std::vector<Statistics>& statistics,
                                  const std::vector<std::uint32_t>& n_rounds) {
  if (boosters.empty() || factors.size() != boosters.size() || statistics.size() != boosters.size() ||
      n_rounds.size() != boosters.size())
    throw nb::value_error("Pass factors, statistics and a number of rounds for each of at least one booster.");
  std::vector<ModelTrees> models;
  std::size_t most = 0, widest = 0;
  models.reserve(boosters.size());
  for (std::size_t i = 0; i < boosters.size(); ++i) {
    if (boosters[i] == nullptr) throw nb::value_error("A booster is None.");
    models.emplace_back(*boosters[i], factors[i], statistics[i], n_rounds[i]);
    if (models[i].n_categories().size() > models[widest].n_categories().size()) widest = i;
    most = std::max(most, models[i].n_rounds_used());
  }
  const std::vector<std::uint32_t>& all = models[widest].n_categories();
  for (const ModelTrees& of : models)
    if (!std::equal(of.n_categories().begin(), of.n_categories().end(), all.begin()))
      throw nb::value_error("The boosters have different columns.");
  const std::size_t n_scores = boosters[0]->boosting->rows().scores.size();
  Forest forest;
  for (std::size_t r = 0; r < most; ++r)
    for (const ModelTrees& of : models)
      for (std::size_t k = 0; k < n_scores && r < of.n_rounds_used(); ++k) forest.add(of.tree(r * n_scores + k));
  return new AdditiveHandle(std::move(forest), n_scores, all);
}

void advance_handles(const std::vector<BoostingHandle*>& handles, const std::vector<EarlyStopping*>& stoppings,
                     std::uint32_t n_rounds, bool saves_best, int n_jobs) {
  if (handles.empty() || (!stoppings.empty() && stoppings.size() != handles.size()))
    throw nb::value_error("Pass at least one booster, and one stopping rule for each or none.");
  std::vector<Runner> runners;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    EarlyStopping* const stopping = stoppings.empty() ? nullptr : stoppings[i];
    if (handles[i] == nullptr || (stopping == nullptr && !stoppings.empty()))
      throw nb::value_error("A booster or a stopping rule is None.");
    for (const Runner& earlier : runners) {
      if (earlier.booster == handles[i]->boosting.get()) throw nb::value_error("A booster occurs twice.");
      if (stopping != nullptr && earlier.stopping == stopping) throw nb::value_error("A stopping rule occurs twice.");
    }
    runners.push_back({handles[i]->boosting.get(), &handles[i]->log, stopping, n_rounds, saves_best});
  }
  const int n_threads = resolve_threads(n_jobs);
  run_interruptible([&](Interrupt& interrupt) { advance_together(runners, n_threads, interrupt); });
}

Doubles2Out round_losses(const BoostingHandle& self, std::size_t first) {
  std::vector<double> found;
  for (std::size_t i = first; i < self.log.losses.size(); ++i) {
    const RoundLosses& l = self.log.losses[i];
    found.insert(found.end(), {l.training, l.held_out, l.out_of_bag.before, l.out_of_bag.after});
  }
  return own_rows(std::move(found), 4);
}

}  // namespace

}  // namespace spinney

void init_boosting(nb::module_& m) {
  using namespace spinney;
  nb::class_<CodedTableHandle>(m, "CodedTable", "A binned table, for boosters that learn from different rows of it.")
      .def("__init__", &code_table, "table"_a, "weight"_a.none(), "options"_a);
  nb::class_<BoostingHandle>(m, "Boosting", "Gradient boosting, round by round.")
      .def("__init__", &start, "table"_a, "target"_a, "weight"_a.none(), "scores"_a, "held_out"_a.none(), "options"_a,
           "first_round"_a, "coded"_a = nb::none(), nb::keep_alive<1, 9>())
      .def(
          "advance",
          [](BoostingHandle& self, std::uint32_t n_rounds) {
            run_interruptible([&](Interrupt& interrupt) {
              for (std::uint32_t i = 0; i < n_rounds; ++i) self.boosting->advance(interrupt);
            });
          },
          "n_rounds"_a, "Grow the trees of more rounds. Finished rounds survive an interruption.")
      .def("set_gradients", &set_gradients, "gradients"_a, "hessians"_a,
           "Set gradients and hessians at the current scores, by score column and row, for an external loss.")
      .def("training_loss", [](const BoostingHandle& self) { return self.boosting->training_loss(); })
      .def(
          "out_of_bag_loss",
          [](const BoostingHandle& self) {
            const Boosting::OutOfBagLoss loss = self.boosting->out_of_bag_loss();
            return std::tuple(loss.before, loss.after);
          },
          "Mean out-of-bag loss before and after the last round.")
      .def("out_of_bag", &out_of_bag, "By row: 1 if it is out of bag in the last round or has no weight.")
      .def("held_out_loss", [](const BoostingHandle& self) { return self.boosting->held_out_loss(); })
      .def("scores", [](const BoostingHandle& self) { return copy_scores(self.boosting->rows().scores); })
      .def("held_out_scores", [](const BoostingHandle& self) { return copy_scores(self.boosting->held_out().scores); })
      .def(
          "best_scores", [](const BoostingHandle& self) { return copy_scores(self.log.best_scores); },
          "Scores of the validation set after the round with its lowest loss, if `advance_together` has saved them.")
      .def("round_losses", &round_losses, "first"_a,
           "Losses after each round of `advance_together` from `first` on, one row per round: training, "
           "validation, "
           "out of bag before and after.")
      .def("trees", &trees_of, "first"_a, "factors"_a = std::vector<double>{}, "statistics"_a = Statistics{},
           "n_rounds"_a = nb::none(), nb::rv_policy::take_ownership,
           "Copies of the trees, with values multiplied by the factor of their score, if any; of the first rounds, as "
           "they were after these, if their number is given. `statistics` are the table's last columns, which are "
           "replaced: each the index of a category column, a number for each category, for missing values "
           "and for unseen categories.")
      .def("refit_round", &refit_round, "trees"_a, "decay"_a, nb::rv_policy::take_ownership,
           "The trees of one round with leaves refitted on the rows of this booster; `decay` is the weight of the old "
           "values.")
      .def_prop_ro("n_dropped", &n_dropped, "Number of earlier rounds that each round has dropped.")
      .def("scores_to_fit", &scores_to_fit, "Scores without the rounds that the next one drops.")
      .def_prop_ro("n_rounds", [](const BoostingHandle& self) { return self.boosting->n_rounds(); });
  nb::class_<EarlyStopping>(m, "EarlyStopping", "A stopping rule: losses no longer decrease.")
      .def(
          "__init__",
          [](EarlyStopping* self, std::uint32_t patience, double tol, double min_relative_decrease, bool of_best) {
            new (self) EarlyStopping(EarlyStoppingRule{patience, tol, min_relative_decrease, of_best});
          },
          "patience"_a, "tol"_a, "min_relative_decrease"_a, "of_best"_a)
      .def("add", &EarlyStopping::add, "loss"_a)
      .def_prop_ro("is_best", &EarlyStopping::is_best, "Whether the last loss is the lowest so far.")
      .def_prop_ro("is_stopped", &EarlyStopping::is_stopped,
                   "Whether the lowest loss has hardly decreased for `patience` losses.");
  m.def("advance_together", &advance_handles, "members"_a, "stoppings"_a, "n_rounds"_a, "saves_best"_a, "n_jobs"_a,
        "Perform at least one and at most n_rounds more rounds of each, until its stopping rule applies to the "
        "validation loss. The rule "
        "is "
        "None if the caller decides.");
  m.def("interleave_rounds", &interleave_rounds, "boosters"_a, "factors"_a, "statistics"_a, "n_rounds"_a,
        "The first trees of several boosters, as by `Boosting.trees`, in one sum: a round of each, then the "
        "next.");
}
