// The extension module: registers the bindings of each file. They check, convert and keep alive; the engine does the
// work.
#include "module.h"

#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>

// The standard library's message is "std::bad_alloc".
static void translate_bad_alloc(const std::exception_ptr& thrown, void*) {
  static constexpr const char* sentence =
      "There is not enough memory. Grow fewer or smaller trees (n_estimators, max_depth, max_leaf_nodes), "
      "use "
      "fewer rows or columns, or use fewer threads (n_jobs).";
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError, sentence);
  } catch (const std::length_error&) {
    PyErr_SetString(PyExc_MemoryError, sentence);
  }
}

NB_MODULE(_engine, m) {
  m.doc() = "The spinney engine.";
  nanobind::register_exception_translator(translate_bad_alloc);
  // A model that a third-party cache holds until the end of the process is not an error, so users see no warning. Tests
  // enable leak warnings, and nothing of ours may be left then: handles that can be part of a cycle are traversed
  // (user_criterion.cpp), the others own arrays without references.
  nanobind::set_leak_warnings(std::getenv("SPINNEY_LEAK_WARNINGS") != nullptr);
  init_arrow(m);
  init_base(m);
  init_data(m);
  init_user_criterion(m);
  init_growing(m);
  init_tree(m);
  init_forest(m);
  init_forest_importance(m);
  init_forest_leaves(m);
  init_shap(m);
  init_losses(m);
  init_boosting_options(m);
  init_additive(m);
  init_boosting(m);
  init_partitioned(m);
  init_ranking(m);
  init_survival(m);
  init_formula(m);
  init_replaced(m);
  init_loose_nodes(m);
  init_model_file(m);
  init_neighbours(m);
  init_proximity(m);
  init_margin(m);
}
