"""Trees and ensembles for tables.

The names below load on first use, so that ``import spinney`` is quick.

>>> import spinney
>>> model = spinney.DecisionTreeClassifier(max_depth=3)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinney import _names
from spinney._names import __version__

if TYPE_CHECKING:
    from spinney import datasets
    from spinney._boosting.classifier import GradientBoostingClassifier
    from spinney._boosting.losses.ranking import ranking_score
    from spinney._boosting.ranker import GradientBoostingRanker
    from spinney._boosting.regressor import GradientBoostingRegressor
    from spinney._boosting.survival import GradientBoostingSurvival
    from spinney._data.date_parts import date_parts
    from spinney._data.scan import scan
    from spinney._ensemble.adaboost.classifier import AdaBoostClassifier
    from spinney._ensemble.adaboost.regressor import AdaBoostRegressor
    from spinney._ensemble.bagging.classifier import BaggingClassifier
    from spinney._ensemble.bagging.regressor import BaggingRegressor
    from spinney._ensemble.functional import learners
    from spinney._ensemble.functional.classifier import FunctionalBoostingClassifier
    from spinney._ensemble.functional.regressor import FunctionalBoostingRegressor
    from spinney._ensemble.stacking.classifier import StackingClassifier
    from spinney._ensemble.stacking.regressor import StackingRegressor
    from spinney._ensemble.voting import VotingClassifier, VotingRegressor
    from spinney._estimator.support import Support
    from spinney._evaluate.bias_variance import BiasVariance, bias_variance
    from spinney._evaluate.compare.compare import compare
    from spinney._evaluate.compare.result import Comparison
    from spinney._evaluate.fragility import Fragility, fragility
    from spinney._evaluate.james_stein import JamesStein, james_stein
    from spinney._evaluate.study.result import Study
    from spinney._evaluate.study.study import study
    from spinney._forest.extra_trees import ExtraTreesClassifier, ExtraTreesRegressor
    from spinney._forest.proximities.imputation import ProximityImputer
    from spinney._forest.random_forests import RandomForestClassifier, RandomForestRegressor
    from spinney._forest.unsupervised.embedding import RandomTreesEmbedding
    from spinney._forest.unsupervised.isolation import IsolationForest
    from spinney._interchange.reading.catboost import from_catboost
    from spinney._interchange.reading.estimators import ImportedClassifier, ImportedRegressor
    from spinney._interchange.reading.lightgbm import from_lightgbm
    from spinney._interchange.reading.sklearn import from_sklearn
    from spinney._interchange.reading.treelite import from_treelite
    from spinney._interchange.reading.xgboost import from_xgboost
    from spinney._interchange.writing.c_source import to_c
    from spinney._interchange.writing.lightgbm_text import to_lightgbm
    from spinney._interchange.writing.onnx_graph import to_onnx
    from spinney._interchange.writing.pmml import to_pmml
    from spinney._interchange.writing.sql import to_sql
    from spinney._interchange.writing.treelite_model import to_treelite
    from spinney._interchange.writing.xgboost_json import to_xgboost
    from spinney._linear.classifier import LinearClassifier
    from spinney._linear.regressor import LinearRegressor
    from spinney._model.file.container import ModelFileError
    from spinney._model.saving.estimator import load
    from spinney._model.saving.predictor import load_predictor
    from spinney._neighbours.classifier import KNeighborsClassifier
    from spinney._neighbours.density import HistogramDensity
    from spinney._neighbours.histogram_classifier import HistogramClassifier
    from spinney._neighbours.histogram_regressor import HistogramRegressor
    from spinney._neighbours.regressor import KNeighborsRegressor
    from spinney._svm.classifier import SVC
    from spinney._svm.linear_classifier import LinearSVC
    from spinney._svm.linear_regressor import LinearSVR
    from spinney._svm.nu_classifier import NuSVC
    from spinney._svm.nu_regressor import NuSVR
    from spinney._svm.perceptron import Perceptron
    from spinney._svm.regressor import SVR
    from spinney._tree.classifier import DecisionTreeClassifier
    from spinney._tree.extra_trees import ExtraTreeClassifier, ExtraTreeRegressor
    from spinney._tree.prune.table import ComplexityTable
    from spinney._tree.regressor import DecisionTreeRegressor
    from spinney._tree.shrinkage import shrink_tree
    from spinney.criteria import CompiledCriterion, Criterion, LossCriterion
    from spinney.inspect.constraints.verify import BrokenPromise, Promises
    from spinney.inspect.draw.curves import plot_cp, plot_importances, plot_impurity_curves
    from spinney.inspect.draw.error_curve import plot_error_curve
    from spinney.inspect.draw.learning_curve import plot_learning_curve
    from spinney.inspect.draw.margins import plot_margins
    from spinney.inspect.draw.neighbours import plot_isolation, plot_outlier_scores, plot_proximity_map
    from spinney.inspect.draw.plane import plot_partition
    from spinney.inspect.draw.support import plot_support
    from spinney.inspect.draw.svg import tree_svg
    from spinney.inspect.draw.tree_plot import plot_pruning, plot_tree
    from spinney.inspect.explain.counterfactual import Counterfactual, Counterfactuals, counterfactual
    from spinney.inspect.explain.coverage import CoverageReport
    from spinney.inspect.explain.dependence import PartialDependence, partial_dependence
    from spinney.inspect.explain.importances import Importances
    from spinney.inspect.explain.interactions import Interactions, interaction_strength
    from spinney.inspect.explain.nearest import NearestRows, nearest_rows
    from spinney.inspect.explain.permutation import permutation_importance
    from spinney.inspect.explain.shap import ShapValues
    from spinney.inspect.text.rule_list import Rule, rules
    from spinney.inspect.text.split_tables import split_table
    from spinney.inspect.text.tables import importance_frame, splits_frame, to_dict, to_frame, to_json
    from spinney.inspect.text.text import explain_row, export_text

__all__ = [
    "SVC",
    "SVR",
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "BaggingClassifier",
    "BaggingRegressor",
    "BiasVariance",
    "BrokenPromise",
    "Comparison",
    "CompiledCriterion",
    "ComplexityTable",
    "Counterfactual",
    "Counterfactuals",
    "CoverageReport",
    "Criterion",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "Fragility",
    "FunctionalBoostingClassifier",
    "FunctionalBoostingRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRanker",
    "GradientBoostingRegressor",
    "GradientBoostingSurvival",
    "HistogramClassifier",
    "HistogramDensity",
    "HistogramRegressor",
    "Importances",
    "ImportedClassifier",
    "ImportedRegressor",
    "Interactions",
    "IsolationForest",
    "JamesStein",
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "LinearClassifier",
    "LinearRegressor",
    "LinearSVC",
    "LinearSVR",
    "LossCriterion",
    "ModelFileError",
    "NearestRows",
    "NuSVC",
    "NuSVR",
    "PartialDependence",
    "Perceptron",
    "Promises",
    "ProximityImputer",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "RandomTreesEmbedding",
    "Rule",
    "ShapValues",
    "StackingClassifier",
    "StackingRegressor",
    "Study",
    "Support",
    "VotingClassifier",
    "VotingRegressor",
    "__version__",
    "bias_variance",
    "compare",
    "counterfactual",
    "datasets",
    "date_parts",
    "explain_row",
    "export_text",
    "fragility",
    "from_catboost",
    "from_lightgbm",
    "from_sklearn",
    "from_treelite",
    "from_xgboost",
    "importance_frame",
    "inspect",
    "interaction_strength",
    "james_stein",
    "learners",
    "load",
    "load_predictor",
    "nearest_rows",
    "partial_dependence",
    "permutation_importance",
    "plot_cp",
    "plot_error_curve",
    "plot_importances",
    "plot_impurity_curves",
    "plot_isolation",
    "plot_learning_curve",
    "plot_margins",
    "plot_outlier_scores",
    "plot_partition",
    "plot_proximity_map",
    "plot_pruning",
    "plot_support",
    "plot_tree",
    "ranking_score",
    "rules",
    "scan",
    "shrink_tree",
    "split_table",
    "splits_frame",
    "study",
    "to_c",
    "to_dict",
    "to_frame",
    "to_json",
    "to_lightgbm",
    "to_onnx",
    "to_pmml",
    "to_sql",
    "to_treelite",
    "to_xgboost",
    "tree_svg",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _names.MODULE_OF:
        value: object = _names.public(name)
    elif name in _names.SUBMODULES:
        value = import_module(f"spinney.{name}")
    else:
        raise AttributeError(_no_such_name(name), name=name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _no_such_name(name: str) -> str:
    from difflib import get_close_matches

    by_lower_case = {known.lower(): known for known in __all__}
    nearest = get_close_matches(name.lower(), by_lower_case, n=1)
    hint = f"; did you mean '{by_lower_case[nearest[0]]}'?" if nearest else ""
    return f"module 'spinney' has no attribute '{name}'{hint}"
