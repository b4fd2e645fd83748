"""The public names, as data: where each is defined. The one list of all families.

Lower layers look up classes of higher layers here by name when they are needed: `spinney.load` finds the estimator that
a file names.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

__version__ = "0.1.0"

MODEL_FILE_MAGIC = b"\x89spinney"  # the first bytes of a model file

MODULE_OF = {
    "AdaBoostClassifier": "spinney._ensemble.adaboost.adaboost",
    "AdaBoostRegressor": "spinney._ensemble.adaboost.adaboost",
    "BaggingClassifier": "spinney._ensemble.bagging",
    "BaggingRegressor": "spinney._ensemble.bagging",
    "BiasVariance": "spinney._evaluate.bias_variance",
    "CategoryOptions": "spinney._boosting.options.option_objects",
    "Comparison": "spinney._evaluate.compare",
    "CompiledCriterion": "spinney.criteria",
    "ComplexityTable": "spinney._tree.complexity_table",
    "ConstraintReport": "spinney.inspect.constraints",
    "ConstraintViolation": "spinney.inspect.constraints",
    "Counterfactual": "spinney.inspect.explain.counterfactual",
    "Counterfactuals": "spinney.inspect.explain.counterfactual",
    "CoverageReport": "spinney.inspect.explain.coverage",
    "Criterion": "spinney.criteria",
    "Dart": "spinney._boosting.options.option_objects",
    "DecisionTreeClassifier": "spinney._tree.trees",
    "DecisionTreeRegressor": "spinney._tree.trees",
    "ExtraSurvivalTrees": "spinney._forest.survival",
    "ExtraTreeClassifier": "spinney._tree.trees",
    "ExtraTreeRegressor": "spinney._tree.trees",
    "ExtraTreesClassifier": "spinney._forest.forests",
    "ExtraTreesRegressor": "spinney._forest.forests",
    "FeatureSampling": "spinney._boosting.options.option_objects",
    "Fragility": "spinney._evaluate.fragility",
    "FunctionalBoostingClassifier": "spinney._ensemble.functional.functional",
    "FunctionalBoostingRegressor": "spinney._ensemble.functional.functional",
    "Goss": "spinney._boosting.options.option_objects",
    "GradientBoostingClassifier": "spinney._boosting.gradient_boosting",
    "GradientBoostingRanker": "spinney._boosting.ranking",
    "GradientBoostingRegressor": "spinney._boosting.gradient_boosting",
    "GradientBoostingSurvival": "spinney._boosting.survival",
    "Growth": "spinney._boosting.options.option_objects",
    "HistogramClassifier": "spinney._neighbours.histogram",
    "HistogramDensity": "spinney._neighbours.density",
    "HistogramRegressor": "spinney._neighbours.histogram",
    "ImportedClassifier": "spinney._interchange.reading.estimators",
    "ImportedRegressor": "spinney._interchange.reading.estimators",
    "Importances": "spinney.inspect.explain.importances",
    "Interactions": "spinney.inspect.explain.interactions",
    "IsolationForest": "spinney._forest.isolation",
    "JamesStein": "spinney._evaluate.james_stein",
    "KNeighborsClassifier": "spinney._neighbours.nearest",
    "KNeighborsRegressor": "spinney._neighbours.nearest",
    "LeafCurve": "spinney._tree.survival_predictions",
    "LinearClassifier": "spinney._linear.linear_model",
    "LinearLeaves": "spinney._boosting.options.option_objects",
    "LinearRegressor": "spinney._linear.linear_model",
    "LinearSVC": "spinney._svm.linear_machines",
    "LinearSVR": "spinney._svm.linear_machines",
    "LossCriterion": "spinney.criteria",
    "ModelFileError": "spinney._model.file.container",
    "NearestRows": "spinney.inspect.explain.nearest",
    "NuSVC": "spinney._svm.kernel_machines",
    "NuSVR": "spinney._svm.kernel_machines",
    "OneClassSVM": "spinney._svm.one_class",
    "PartialDependence": "spinney.inspect.explain.dependence",
    "Perceptron": "spinney._svm.perceptron",
    "ProximityImputer": "spinney._forest.imputer",
    "RandomForestClassifier": "spinney._forest.forests",
    "RandomForestRegressor": "spinney._forest.forests",
    "RandomSurvivalForest": "spinney._forest.survival",
    "RandomTreesEmbedding": "spinney._forest.unsupervised",
    "Regularization": "spinney._boosting.options.option_objects",
    "Rule": "spinney.inspect.text.text",
    "SVC": "spinney._svm.kernel_machines",
    "SVR": "spinney._svm.kernel_machines",
    "ShapValues": "spinney.inspect.explain.shap",
    "StackingClassifier": "spinney._ensemble.stacking",
    "StackingRegressor": "spinney._ensemble.stacking",
    "SoftLabels": "spinney._estimator.soft_labels",
    "Study": "spinney._evaluate.study.result",
    "Support": "spinney._estimator.support",
    "SurvivalTree": "spinney._tree.survival",
    "TreeExplainer": "spinney.inspect.explain.tree_explainer",
    "VotingClassifier": "spinney._ensemble.voting",
    "VotingRegressor": "spinney._ensemble.voting",
    "bias_variance": "spinney._evaluate.bias_variance",
    "counterfactual": "spinney.inspect.explain.counterfactual",
    "date_parts": "spinney._data.date_parts",
    "compare": "spinney._evaluate.compare",
    "concordance_index": "spinney._estimator.survival_metrics",
    "explain_row": "spinney.inspect.text.text",
    "export_text": "spinney.inspect.text.text",
    "fragility": "spinney._evaluate.fragility",
    "from_catboost": "spinney._interchange.reading.catboost",
    "from_lightgbm": "spinney._interchange.reading.lightgbm",
    "from_sklearn": "spinney._interchange.reading.sklearn",
    "from_treelite": "spinney._interchange.reading.treelite",
    "from_xgboost": "spinney._interchange.reading.xgboost",
    "importance_frame": "spinney.inspect.text.tables",
    "integrated_brier_score": "spinney._estimator.survival_metrics",
    "interaction_strength": "spinney.inspect.explain.interactions",
    "james_stein": "spinney._evaluate.james_stein",
    "load": "spinney._estimator.estimator",
    "load_predictor": "spinney._model.saving.predictor",
    "nearest_rows": "spinney.inspect.explain.nearest",
    "partial_dependence": "spinney.inspect.explain.dependence",
    "permutation_importance": "spinney.inspect.explain.importances",
    "plot_boosting_steps": "spinney.inspect.draw.regions",
    "plot_cp": "spinney.inspect.draw.curves",
    "plot_error_curve": "spinney.inspect.draw.curves",
    "plot_errors": "spinney.inspect.draw.errors",
    "plot_importances": "spinney.inspect.draw.curves",
    "plot_impurities": "spinney.inspect.draw.teaching",
    "plot_isolation": "spinney.inspect.draw.plane",
    "plot_learning_curve": "spinney.inspect.draw.curves",
    "plot_losses": "spinney.inspect.draw.teaching",
    "plot_margins": "spinney.inspect.draw.curves",
    "plot_ordered_classes": "spinney.inspect.draw.curves",
    "plot_outlier_scores": "spinney.inspect.draw.plane",
    "plot_partition": "spinney.inspect.draw.plane",
    "plot_proximity_map": "spinney.inspect.draw.plane",
    "plot_pruning": "spinney.inspect.draw.tree_drawing",
    "plot_regions": "spinney.inspect.draw.regions",
    "plot_support": "spinney.inspect.draw.plane",
    "plot_tree": "spinney.inspect.draw.tree_drawing",
    "plot_tuning": "spinney.inspect.draw.errors",
    "ranking_score": "spinney._boosting.ranking",
    "rules": "spinney.inspect.text.text",
    "scan": "spinney._data.scan",
    "shrink_tree": "spinney._tree.shrinkage",
    "split_table": "spinney.inspect.text.split_tables",
    "splits_frame": "spinney.inspect.text.tables",
    "study": "spinney._evaluate.study.study",
    "survival_brier_score": "spinney._estimator.survival_metrics",
    "time_dependent_auc": "spinney._estimator.survival_metrics",
    "to_c": "spinney._interchange.writing.c_source",
    "to_dict": "spinney.inspect.text.tables",
    "to_frame": "spinney.inspect.text.tables",
    "to_json": "spinney.inspect.text.tables",
    "to_onnx": "spinney._interchange.writing.onnx_graph",
    "to_sql": "spinney._interchange.writing.sql",
    "to_lightgbm": "spinney._interchange.writing.libraries",
    "to_pmml": "spinney._interchange.writing.pmml",
    "to_treelite": "spinney._interchange.writing.libraries",
    "to_xgboost": "spinney._interchange.writing.libraries",
    "tree_svg": "spinney.inspect.draw.tree_drawing",
}

SUBMODULES = frozenset({"datasets", "inspect", "kernels", "learners", "teaching"})

# what predicts, by the kind that model files give it
FITTED_KINDS = {
    "adaboost": "spinney._model.adaboost.FittedAdaBoost",
    "adaboost_r2": "spinney._model.adaboost.FittedMedian",
    "boosting": "spinney._model.boosting.FittedBoosting",
    "cells": "spinney._model.neighbours.histogram.FittedCells",
    "density": "spinney._model.neighbours.histogram.FittedDensity",
    "forest": "spinney._model.forest.FittedForest",
    "functions": "spinney._model.functional.model.FittedFunctions",
    "imported": "spinney._model.boosting.FittedImport",
    "kernel_machines": "spinney._model.svm.model.FittedMachines",
    "linear": "spinney._model.linear.FittedLinear",
    "neighbours": "spinney._model.neighbours.model.FittedNeighbours",
    "planes": "spinney._model.svm.model.FittedPlanes",
    "tree": "spinney._model.tree.FittedTree",
}

# families whose estimators are not called by the family and "Classifier" or "Regressor": of classes, of values
OWN_NAMES: dict[str, tuple[str | None, str | None]] = {
    "GradientBoostingRank": (None, "GradientBoostingRanker"),
    "GradientBoostingSurvival": (None, "GradientBoostingSurvival"),
    "LinearSV": ("LinearSVC", "LinearSVR"),
    "Logistic": ("LinearClassifier", None),
    "NuSV": ("NuSVC", "NuSVR"),
    "ExtraSurvivalTrees": (None, "ExtraSurvivalTrees"),
    "Perceptron": ("Perceptron", None),
    "RandomSurvivalForest": (None, "RandomSurvivalForest"),
    "SV": ("SVC", "SVR"),
    "SurvivalTree": (None, "SurvivalTree"),
}

# families of estimators that hold each kind
FAMILIES_OF_KIND = {
    "adaboost": ("AdaBoost",),
    "adaboost_r2": ("AdaBoost",),
    "boosting": ("GradientBoosting", "GradientBoostingRank", "GradientBoostingSurvival"),
    "cells": ("Histogram",),
    "forest": ("RandomForest", "ExtraTrees", "RandomSurvivalForest", "ExtraSurvivalTrees"),
    "functions": ("FunctionalBoosting",),
    "imported": ("Imported",),
    "kernel_machines": ("SV", "NuSV"),
    "linear": ("Linear",),
    "neighbours": ("KNeighbors",),
    "tree": ("DecisionTree", "ExtraTree", "SurvivalTree"),
    "planes": ("LinearSV", "Perceptron"),
}

# ensembles of different models, by the kind that model files give them: families
COMBINED_KINDS = {"stack": "Stacking", "vote": "Voting"}

# what `spinney fit --model` fits, and the members of ensembles by name: families
FITTED_BY_COMMAND = {
    "tree": "DecisionTree",
    "stump": "DecisionTree",
    "forest": "RandomForest",
    "extra-trees": "ExtraTrees",
    "bagging": "Bagging",
    "boosting": "GradientBoosting",
    "adaboost": "AdaBoost",
    "functional": "FunctionalBoosting",
    "svm": "SV",
    "nu_svm": "NuSV",
    "knn": "KNeighbors",
    "histogram": "Histogram",
    "linear": "Linear",
    "logistic": "Logistic",
    "stack": "Stacking",
    "vote": "Voting",
    "linear_svm": "LinearSV",
    "perceptron": "Perceptron",
}

# settings of models that are a family with other than its default settings
SETTINGS_OF_NAME: dict[str, dict[str, object]] = {"stump": {"max_depth": 1}}

# what it fits too, and what neither classes nor values alone are enough for: estimators
FITTED_BY_COMMAND_ALONE = {
    "ranker": "GradientBoostingRanker",
    "survival": "GradientBoostingSurvival",
    "survival-tree": "SurvivalTree",
    "survival-forest": "RandomSurvivalForest",
    "extra-survival-trees": "ExtraSurvivalTrees",
}

# estimators whose files do not predict a target
WITHOUT_TARGET = frozenset(
    {"HistogramDensity", "IsolationForest", "OneClassSVM", "ProximityImputer", "RandomTreesEmbedding"}
)


def estimator_of(family: str, has_classes: bool) -> str | None:
    """Return the name of a family's estimator of classes or of values; None if it has none."""
    if family in OWN_NAMES:
        return OWN_NAMES[family][0 if has_classes else 1]
    return family + ("Classifier" if has_classes else "Regressor")


def conflicting_distribution() -> str | None:
    """Return what to do where another project's distribution `spinney` shares the folder of this package, or None."""
    package = os.path.dirname(__file__)
    try:
        entries = os.listdir(os.path.dirname(package))
    except OSError:  # a folder that may not be listed, or an archive
        return None
    others = [name for name in entries if name.startswith("spinney-") and name.endswith((".dist-info", ".egg-info"))]
    if not others:
        return None
    return (
        f"Two distributions are installed in the folder {package}: spinney-ml, which is this library, and "
        f"spinney ({others[0]}), which is another project. Their files overwrite each other. Run: pip uninstall -y "
        "spinney spinney-ml && pip install spinney-ml"
    )


def public(name: str) -> Any:
    """Return what a public name stands for; KeyError if there is no such name."""
    return getattr(import_module(MODULE_OF[name]), name)


def fitted_class(kind: str) -> Any:
    """Return the class of a kind of fitted model; KeyError if there is no such kind."""
    module, _, name = FITTED_KINDS[kind].rpartition(".")
    return getattr(import_module(module), name)
