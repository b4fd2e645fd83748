"""Single trees."""

import numpy as np
import spinney

from fingerprints.cases import answers, case, enter_models, explained, figures, row_answers, saved
from fingerprints.tables import (
    BOTH,
    CLASSES,
    COUNTS,
    GROUPS,
    HOLES,
    MIXED,
    NEW,
    NUMBERS,
    SURVIVAL,
    TWO,
    VALUES,
    WEIGHTS,
    whole,
)


def classes(**options):
    return lambda: spinney.DecisionTreeClassifier(**options)


def values(**options):
    return lambda: spinney.DecisionTreeRegressor(**options)


CLASS_CRITERIA = ("gini", "entropy", "log_loss", "misclassification", "chi2", "gain_ratio")
VALUE_CRITERIA = ("squared_error", "friedman_mse", "absolute_error", "poisson")

enter_models("tree", {c: classes(criterion=c) for c in CLASS_CRITERIA}, HOLES, CLASSES)
enter_models("tree of two classes", {c: classes(criterion=c, max_depth=5) for c in CLASS_CRITERIA}, HOLES, TWO)
enter_models("tree by bins", {c: classes(criterion=c, max_bins=16) for c in CLASS_CRITERIA}, HOLES, CLASSES)
enter_models(
    "tree with weights", {c: classes(criterion=c) for c in CLASS_CRITERIA}, HOLES, CLASSES, sample_weight=WEIGHTS
)
enter_models("tree", {c: values(criterion=c, min_samples_leaf=2) for c in VALUE_CRITERIA}, HOLES, VALUES + 10)
enter_models(
    "tree by bins",
    {c: values(criterion=c, max_bins=16) for c in VALUE_CRITERIA if c != "absolute_error"},
    HOLES,
    VALUES + 10,
)
enter_models(
    "tree with weights",
    {c: values(criterion=c, max_depth=6) for c in VALUE_CRITERIA},
    HOLES,
    COUNTS,
    sample_weight=WEIGHTS,
)
enter_models(
    "tree with exposure", {"poisson": values(criterion="poisson", rate_shrinkage=1.0)}, HOLES, COUNTS, exposure=WEIGHTS
)
enter_models(
    "tree of survival",
    {"exponential": values(criterion="exponential", min_samples_leaf=5)},
    HOLES,
    SURVIVAL,
    sample_weight=WEIGHTS,
)

CLASS_OPTIONS = {
    "random cuts": lambda: spinney.ExtraTreeClassifier(random_state=3),
    "best of some columns": classes(max_features="sqrt", random_state=5),
    "largest leaves first": classes(max_leaf_nodes=9),
    "limits": classes(max_depth=4, min_samples_leaf=3, min_samples_split=9, min_impurity_decrease=0.01),
    "leaf weight": classes(min_weight_fraction_leaf=0.05, class_weight="balanced"),
    "purity": classes(min_purity=0.8),
    "alpha": classes(ccp_alpha=0.01),
    "surrogates": classes(missing="surrogate", max_depth=6),
    "surrogates, rows present": classes(missing="surrogate", surrogate_style="present", missing_fallback="stop"),
    "costs by priors": classes(cost_matrix=[[0, 1, 4], [2, 0, 1], [3, 1, 0]], max_depth=5),
    "costs by gini": classes(
        cost_matrix=[[0, 1, 4], [2, 0, 1], [3, 1, 0]], cost_splits="generalised_gini", max_depth=5
    ),
    "priors": classes(priors=[0.2, 0.3, 0.5], max_depth=5),
    "uniform priors": classes(priors="uniform", criterion="entropy", max_depth=5),
    "feature costs": classes(feature_costs=[1, 2, 1, 3, 1]),
    "feature weights": classes(feature_weights=[1, 2, 1, 3, 1], max_features=2, always_try=[1], random_state=2),
    "pruned by folds": classes(prune="cv", cv=4, random_state=1),
    "pruned by folds, lowest error": classes(prune="cv", cv=4, rule="min", criterion="entropy", random_state=1),
    "pruned by log loss": classes(prune="cv", cv=4, scoring="neg_log_loss", random_state=1),
    "pruned on rows held out": classes(prune="validation", validation_fraction=0.3, random_state=1),
    "pessimistic": classes(prune="pessimistic"),
    "shrinkage": classes(shrinkage=3.0, max_depth=6),
    "shrinkage by folds": classes(shrinkage="cv", cv=4, max_depth=6, random_state=1),
    "pairs of columns": classes(interaction_cst=[[0, 1], [2, 3, 4]]),
    "rpart": lambda: spinney.DecisionTreeClassifier.rpart(xval=4, random_state=1),
    "rpart, entropy": lambda: spinney.DecisionTreeClassifier.rpart(
        split="information", xval=4, cp=0.001, random_state=1
    ),
    "rpart, priors and losses": lambda: spinney.DecisionTreeClassifier.rpart(
        prior=[0.2, 0.3, 0.5], loss=[[0, 1, 4], [2, 0, 1], [3, 1, 0]], xval=4, random_state=1
    ),
}
VALUE_OPTIONS = {
    "random cuts": lambda: spinney.ExtraTreeRegressor(random_state=3),
    "largest leaves first": values(max_leaf_nodes=9),
    "monotone": values(monotonic_cst=[1, 0, -1, 0, 0], max_depth=5),
    "surrogates": values(missing="surrogate", max_depth=6),
    "alpha": values(ccp_alpha=1.0),
    "pruned by folds": values(prune="cv", cv=4, random_state=1),
    "pruned by folds, absolute": values(prune="cv", cv=4, criterion="absolute_error", rule="min", random_state=1),
    "pruned by score": values(prune="cv", cv=4, scoring="r2", random_state=1),
    "pruned on rows held out": values(prune="validation", validation_fraction=0.3, random_state=1),
    "shrinkage by folds": values(shrinkage="cv", cv=4, max_depth=6, random_state=1),
    "rpart": lambda: spinney.DecisionTreeRegressor.rpart(xval=4, random_state=1),
}
enter_models("classes", CLASS_OPTIONS, HOLES, CLASSES)
enter_models("values", VALUE_OPTIONS, HOLES, VALUES)
enter_models(
    "counts",
    {"rpart": lambda: spinney.DecisionTreeRegressor.rpart(method="poisson", xval=4, random_state=1)},
    HOLES,
    COUNTS,
)
enter_models("categories", {"tree": classes(), "two folds": classes(prune="cv", cv=2, random_state=1)}, MIXED, CLASSES)
enter_models(
    "categories",
    {"values": values(), "bins": values(max_bins=12), "absolute": values(criterion="absolute_error")},
    MIXED,
    VALUES,
)
enter_models("categories of two classes", {"entropy": classes(criterion="entropy", unseen="other")}, MIXED, TWO)
enter_models("several outputs", {"values": values(max_depth=5)}, HOLES, BOTH)
enter_models("several outputs", {"classes": classes(max_depth=5)}, HOLES, np.column_stack([whole(20, 3), COUNTS]))
enter_models("rows apart", {"groups": classes(prune="cv", cv=3, random_state=1)}, HOLES, CLASSES, groups=GROUPS)


@case("tree: read and explained")
def read(n_jobs):
    tree = spinney.DecisionTreeClassifier(max_depth=5, n_jobs=n_jobs).fit(HOLES, CLASSES)
    return {
        "file": saved(tree),
        "one row": row_answers(tree, NEW[:20]),
        "shap": explained(tree, NEW),
        "pairs": explained(tree, NEW[:10], interactions=True),
        "background": explained(tree, NEW[:10], background=HOLES[:20]),
        "importances": tree.feature_importances_,
        "path": list(tree.cost_complexity_pruning_path(HOLES, CLASSES).values()),
        "log": tree.predict_log_proba(HOLES),
        "text": tree.export_text(),
    }


@case("tree: pruned by folds, its table")
def table(n_jobs):
    tree = spinney.DecisionTreeRegressor(prune="cv", cv=5, random_state=0, n_jobs=n_jobs).fit(NUMBERS, VALUES)
    return {"table": figures(tree.cp_table_), "file": saved(tree)}


@case("tree: fragility")
def fragility(n_jobs):
    tree = spinney.DecisionTreeClassifier(max_depth=4).fit(NUMBERS, CLASSES)
    return figures(spinney.fragility(tree, NUMBERS, CLASSES, n_bootstraps=8, random_state=0, n_jobs=n_jobs))


@case("tree: shrunken afterwards")
def shrunken(n_jobs):
    tree = spinney.DecisionTreeRegressor(max_depth=6, n_jobs=n_jobs).fit(NUMBERS, VALUES)
    return answers(spinney.DecisionTreeRegressor(max_depth=6, shrinkage=5.0, n_jobs=n_jobs), NUMBERS, VALUES) | {
        "same": spinney.shrink_tree(tree, 5.0).predict(NEW)
    }
