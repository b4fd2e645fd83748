// The extension module: a list of registrars, one per engine folder. No algorithm lives here.
#include "module.h"

NB_MODULE(_engine, m) {
  m.doc() = "The spinney engine.";
  nanobind::set_leak_warnings(false);  // a model that a cache holds until the end of the process is no fault
  init_arrow(m);
  init_base(m);
  init_data(m);
  init_user_criterion(m);
  init_tree(m);
  init_forest(m);
  init_forest_importance(m);
  init_forest_leaves(m);
  init_shap(m);
  init_boosting(m);
  init_model_file(m);
  init_proximity(m);
}
