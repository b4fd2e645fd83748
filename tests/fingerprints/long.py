"""The same families on more rows: sums in blocks, ranks of more than 8 bits, vectors that are full."""

import spinney

from fingerprints.cases import enter_models
from fingerprints.tables import LONG, LONG_CLASSES, LONG_VALUES

SEEDED = {"random_state": 1}
CLASSES = {
    "tree": lambda: spinney.DecisionTreeClassifier(),
    "tree by entropy": lambda: spinney.DecisionTreeClassifier(criterion="entropy"),
    "tree by bins": lambda: spinney.DecisionTreeClassifier(max_bins=64),
    "random tree": lambda: spinney.ExtraTreeClassifier(**SEEDED),
    "forest": lambda: spinney.RandomForestClassifier(6, **SEEDED),
    "extra-trees": lambda: spinney.ExtraTreesClassifier(6, **SEEDED),
    "oblique": lambda: spinney.RandomForestClassifier(4, oblique=8, **SEEDED),
    "boosting": lambda: spinney.GradientBoostingClassifier(n_estimators=6, subsample=0.7, **SEEDED),
}
VALUES = {
    "tree": lambda: spinney.DecisionTreeRegressor(),
    "tree by absolute error": lambda: spinney.DecisionTreeRegressor(criterion="absolute_error", max_depth=6),
    "pruned by folds": lambda: spinney.DecisionTreeRegressor(prune="cv", cv=3, min_samples_leaf=5, **SEEDED),
    "forest": lambda: spinney.RandomForestRegressor(6, **SEEDED),
    "extra-trees": lambda: spinney.ExtraTreesRegressor(6, **SEEDED),
    "boosting": lambda: spinney.GradientBoostingRegressor(n_estimators=12),
    "boosting by absolute error": lambda: spinney.GradientBoostingRegressor(loss="absolute_error", n_estimators=8),
    "boosting, stopped early": lambda: spinney.GradientBoostingRegressor(
        n_estimators=15, early_stopping=True, n_iter_no_change=2, learning_rate=0.9, **SEEDED
    ),
}
enter_models("long table, classes", CLASSES, LONG, LONG_CLASSES)
enter_models("long table, values", VALUES, LONG, LONG_VALUES)
GROWING = {"boosting, steps that grow": lambda: spinney.GradientBoostingRegressor(max_leaf_nodes=4)}
enter_models("long table, values", GROWING, LONG[:1200], LONG_VALUES[:1200])
