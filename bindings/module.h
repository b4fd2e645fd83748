#pragma once

#include <nanobind/nanobind.h>

void init_additive(nanobind::module_& m);
void init_arrow(nanobind::module_& m);
void init_base(nanobind::module_& m);
void init_boosting(nanobind::module_& m);
void init_boosting_options(nanobind::module_& m);
void init_data(nanobind::module_& m);
void init_partitioned(nanobind::module_& m);
void init_forest(nanobind::module_& m);
void init_forest_importance(nanobind::module_& m);
void init_forest_leaves(nanobind::module_& m);
void init_growing(nanobind::module_& m);
void init_losses(nanobind::module_& m);
void init_loose_nodes(nanobind::module_& m);
void init_margin(nanobind::module_& m);
void init_model_file(nanobind::module_& m);
void init_neighbours(nanobind::module_& m);
void init_proximity(nanobind::module_& m);
void init_ranking(nanobind::module_& m);
void init_replaced(nanobind::module_& m);
void init_shap(nanobind::module_& m);
void init_survival(nanobind::module_& m);
void init_formula(nanobind::module_& m);
void init_tree(nanobind::module_& m);
void init_user_criterion(nanobind::module_& m);
