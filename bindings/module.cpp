// The extension module: a list of registrars, one per file. They check, convert and keep alive; the engine does the work.
#include "module.h"

#include <cstdlib>

NB_MODULE(_engine, m) {
  m.doc() = "The spinney engine.";
  // A model that a cache of someone else's holds until the end of the process is no fault, so users hear nothing of it.
  // Tests ask, and nothing of ours may be left then: handles that can lie on a cycle are traversed
  // (user_criterion.cpp), the others own arrays, which lead nowhere back.
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
  init_boosting(m);
  init_model_file(m);
  init_proximity(m);
}
