"""The public names, as data: where each is defined. The one list of all families.

What stands on a low floor finds classes of higher floors here, by name, when it is asked for one: `spinney.load` finds
the estimator that a file names, and the model that it holds.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

MODULE_OF = {
    "AdaBoostClassifier": "spinney._ensemble.adaboost.classifier",
    "AdaBoostRegressor": "spinney._ensemble.adaboost.regressor",
    "BaggingClassifier": "spinney._ensemble.bagging.classifier",
    "BaggingRegressor": "spinney._ensemble.bagging.regressor",
    "BiasVariance": "spinney._judge.bias_variance",
    "BrokenPromise": "spinney.reading.promises",
    "Comparison": "spinney._judge.compare.result",
    "CompiledCriterion": "spinney.criteria",
    "ComplexityTable": "spinney._pruning.table",
    "Counterfactual": "spinney.explaining.counterfactual",
    "Counterfactuals": "spinney.explaining.counterfactual",
    "CoverageReport": "spinney._learn.coverage",
    "Criterion": "spinney.criteria",
    "DecisionTreeClassifier": "spinney._tree.classifier",
    "DecisionTreeRegressor": "spinney._tree.regressor",
    "ExtraTreeClassifier": "spinney._tree.extra_trees",
    "ExtraTreeRegressor": "spinney._tree.extra_trees",
    "ExtraTreesClassifier": "spinney._forest.extra_trees",
    "ExtraTreesRegressor": "spinney._forest.extra_trees",
    "Fragility": "spinney._judge.fragility",
    "FunctionalBoostingClassifier": "spinney._ensemble.functional.classifier",
    "FunctionalBoostingRegressor": "spinney._ensemble.functional.regressor",
    "GradientBoostingClassifier": "spinney._boosting.classifier",
    "GradientBoostingRanker": "spinney._boosting.ranker",
    "GradientBoostingRegressor": "spinney._boosting.regressor",
    "GradientBoostingSurvival": "spinney._boosting.survival",
    "HistogramClassifier": "spinney._neighbours.histogram_classifier",
    "HistogramDensity": "spinney._neighbours.density",
    "HistogramRegressor": "spinney._neighbours.histogram_regressor",
    "ImportedClassifier": "spinney._interchange.reading.estimators",
    "ImportedRegressor": "spinney._interchange.reading.estimators",
    "Importances": "spinney.reading.importances",
    "Interactions": "spinney.explaining.interactions",
    "IsolationForest": "spinney._forest.unlabelled.isolation",
    "JamesStein": "spinney._judge.james_stein",
    "KNeighborsClassifier": "spinney._neighbours.classifier",
    "KNeighborsRegressor": "spinney._neighbours.regressor",
    "LinearClassifier": "spinney._linear.classifier",
    "LinearRegressor": "spinney._linear.regressor",
    "LinearSVC": "spinney._margin.linear_classifier",
    "LinearSVR": "spinney._margin.linear_regressor",
    "LossCriterion": "spinney.criteria",
    "ModelFileError": "spinney._file.container",
    "NearestRows": "spinney.explaining.nearest",
    "NuSVC": "spinney._margin.nu_classifier",
    "NuSVR": "spinney._margin.nu_regressor",
    "PartialDependence": "spinney.explaining.dependence",
    "Perceptron": "spinney._margin.perceptron",
    "Promises": "spinney.reading.promises",
    "ProximityImputer": "spinney._forest.near.imputation",
    "RandomForestClassifier": "spinney._forest.random_forests",
    "RandomForestRegressor": "spinney._forest.random_forests",
    "RandomTreesEmbedding": "spinney._forest.unlabelled.embedding",
    "Rule": "spinney.reading.rule_list",
    "SVC": "spinney._margin.classifier",
    "SVR": "spinney._margin.regressor",
    "ShapValues": "spinney.reading.shap",
    "StackingClassifier": "spinney._ensemble.stacking.classifier",
    "StackingRegressor": "spinney._ensemble.stacking.regressor",
    "Study": "spinney._study.result",
    "Support": "spinney._learn.support",
    "VotingClassifier": "spinney._ensemble.voting",
    "VotingRegressor": "spinney._ensemble.voting",
    "bias_variance": "spinney._judge.bias_variance",
    "counterfactual": "spinney.explaining.counterfactual",
    "date_parts": "spinney._data.date_parts",
    "compare": "spinney._judge.compare.compare",
    "explain_row": "spinney.reading.text",
    "export_text": "spinney.reading.text",
    "fragility": "spinney._judge.fragility",
    "from_catboost": "spinney._interchange.reading.catboost",
    "from_lightgbm": "spinney._interchange.reading.lightgbm",
    "from_sklearn": "spinney._interchange.reading.sklearn",
    "from_treelite": "spinney._interchange.reading.treelite",
    "from_xgboost": "spinney._interchange.reading.xgboost",
    "importance_frame": "spinney.reading.tables",
    "interaction_strength": "spinney.explaining.interactions",
    "james_stein": "spinney._judge.james_stein",
    "load": "spinney._keep.estimator",
    "load_predictor": "spinney._keep.predictor",
    "nearest_rows": "spinney.explaining.nearest",
    "partial_dependence": "spinney.explaining.dependence",
    "permutation_importance": "spinney.explaining.permutation",
    "plot_cp": "spinney.drawing.curves",
    "plot_error_curve": "spinney.drawing.error_curve",
    "plot_importances": "spinney.drawing.curves",
    "plot_impurity_curves": "spinney.drawing.curves",
    "plot_isolation": "spinney.drawing.neighbours",
    "plot_learning_curve": "spinney.drawing.learning_curve",
    "plot_margins": "spinney.drawing.margins",
    "plot_outlier_scores": "spinney.drawing.neighbours",
    "plot_partition": "spinney.drawing.plane",
    "plot_proximity_map": "spinney.drawing.neighbours",
    "plot_pruning": "spinney.drawing.tree_plot",
    "plot_support": "spinney.drawing.support",
    "plot_tree": "spinney.drawing.tree_plot",
    "ranking_score": "spinney._boosting.losses.ranking",
    "rules": "spinney.reading.rule_list",
    "scan": "spinney._data.scan",
    "shrink_tree": "spinney._tree.shrinkage",
    "split_table": "spinney.reading.split_tables",
    "splits_frame": "spinney.reading.tables",
    "study": "spinney._study.study",
    "to_c": "spinney._interchange.writing.c_source",
    "to_dict": "spinney.reading.tables",
    "to_frame": "spinney.reading.tables",
    "to_json": "spinney.reading.tables",
    "to_onnx": "spinney._interchange.writing.onnx_graph",
    "to_sql": "spinney._interchange.writing.sql",
    "to_lightgbm": "spinney._interchange.writing.lightgbm_text",
    "to_pmml": "spinney._interchange.writing.pmml",
    "to_treelite": "spinney._interchange.writing.treelite_model",
    "to_xgboost": "spinney._interchange.writing.xgboost_json",
    "tree_svg": "spinney.drawing.svg",
}

SUBMODULES = frozenset({"datasets", "explaining", "learners"})

# what predicts, by the kind that model files give it
FITTED_KINDS = {
    "adaboost": "spinney._fitted.adaboost.FittedAdaBoost",
    "adaboost_r2": "spinney._fitted.median.FittedMedian",
    "boosting": "spinney._fitted.boosting.FittedBoosting",
    "cells": "spinney._fitted.neighbours.cells.FittedCells",
    "density": "spinney._fitted.neighbours.density.FittedDensity",
    "forest": "spinney._fitted.forest.FittedForest",
    "functions": "spinney._fitted.functions.model.FittedFunctions",
    "imported": "spinney._fitted.imported.FittedImport",
    "kernel_machines": "spinney._fitted.margin.machines.FittedMachines",
    "linear": "spinney._fitted.linear.FittedLinear",
    "neighbours": "spinney._fitted.neighbours.model.FittedNeighbours",
    "planes": "spinney._fitted.margin.planes.FittedPlanes",
    "tree": "spinney._fitted.tree.FittedTree",
}

# families whose estimators are not called by the family and "Classifier" or "Regressor": of classes, of values
OWN_NAMES: dict[str, tuple[str | None, str | None]] = {
    "GradientBoostingRank": (None, "GradientBoostingRanker"),
    "GradientBoostingSurvival": (None, "GradientBoostingSurvival"),
    "LinearSV": ("LinearSVC", "LinearSVR"),
    "NuSV": ("NuSVC", "NuSVR"),
    "Perceptron": ("Perceptron", None),
    "SV": ("SVC", "SVR"),
}

# families of estimators that hold each kind
FAMILIES_OF_KIND = {
    "adaboost": ("AdaBoost",),
    "adaboost_r2": ("AdaBoost",),
    "boosting": ("GradientBoosting", "GradientBoostingRank", "GradientBoostingSurvival"),
    "cells": ("Histogram",),
    "forest": ("RandomForest", "ExtraTrees"),
    "functions": ("FunctionalBoosting",),
    "imported": ("Imported",),
    "kernel_machines": ("SV", "NuSV"),
    "linear": ("Linear",),
    "neighbours": ("KNeighbors",),
    "tree": ("DecisionTree", "ExtraTree"),
    "planes": ("LinearSV", "Perceptron"),
}

# ensembles of different models, by the kind that model files give them: families
COMBINED_KINDS = {"stack": "Stacking", "vote": "Voting"}

# what `spinney fit --model` fits: families
FITTED_BY_COMMAND = {
    "tree": "DecisionTree",
    "forest": "RandomForest",
    "extra-trees": "ExtraTrees",
    "boosting": "GradientBoosting",
    "adaboost": "AdaBoost",
    "functional": "FunctionalBoosting",
    "svm": "SV",
    "nu_svm": "NuSV",
    "knn": "KNeighbors",
    "histogram": "Histogram",
    "linear": "Linear",
    "stack": "Stacking",
    "vote": "Voting",
    "linear_svm": "LinearSV",
    "perceptron": "Perceptron",
}

# what it fits too, and what neither classes nor values alone are enough for: estimators
FITTED_BY_COMMAND_ALONE = {"ranker": "GradientBoostingRanker", "survival": "GradientBoostingSurvival"}

# estimators whose files do not predict a target
WITHOUT_TARGET = frozenset({"HistogramDensity", "IsolationForest", "ProximityImputer", "RandomTreesEmbedding"})


def estimator_of(family: str, has_classes: bool) -> str | None:
    """Return the name of a family's estimator of classes or of values; None if it has none."""
    if family in OWN_NAMES:
        return OWN_NAMES[family][0 if has_classes else 1]
    return family + ("Classifier" if has_classes else "Regressor")


def public(name: str) -> Any:
    """Return what a public name stands for; KeyError if there is no such name."""
    return getattr(import_module(MODULE_OF[name]), name)


def fitted_class(kind: str) -> Any:
    """Return the class of a kind of fitted model; KeyError if there is no such kind."""
    module, _, name = FITTED_KINDS[kind].rpartition(".")
    return getattr(import_module(module), name)


def cluster() -> Any:
    """Return what fits and predicts with the collections of a cluster."""
    return import_module("spinney._cluster.dask_fit")
