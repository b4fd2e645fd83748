"""Survival trees and forests."""

import numpy as np
import spinney

from fingerprints.cases import case, enter_models, saved
from fingerprints.tables import HOLES, MIXED, NEW, VALUES, WEIGHTS

TIMES = np.where(np.arange(len(VALUES)) % 3 == 0, -1, 1) * (VALUES - VALUES.min() + 0.5).round(1)
ENTRY = np.abs(TIMES) * (np.arange(len(VALUES)) % 4) / 5
CAUSES = np.array(
    list(zip(np.arange(len(VALUES)) % 3, np.abs(TIMES), strict=True)), dtype=[("cause", int), ("time", float)]
)
MODELS = {
    "tree": lambda: spinney.SurvivalTree(min_samples_leaf=3),
    "tree by folds": lambda: spinney.SurvivalTree(prune="cv", cv=3, rule="min", random_state=2),
    "tree by surrogates": lambda: spinney.SurvivalTree(missing="surrogate", max_depth=4),
    "forest": lambda: spinney.RandomSurvivalForest(8, min_samples_leaf=3, random_state=1),
    "extra-trees": lambda: spinney.ExtraSurvivalTrees(8, min_samples_leaf=3, random_state=1),
}
enter_models("survival", MODELS, HOLES, TIMES)
enter_models("survival of causes with weights", MODELS, HOLES, CAUSES, sample_weight=WEIGHTS)
enter_models("survival of mixed columns", MODELS, MIXED, TIMES)


@case("survival: curves of rows that entered late")
def curves(n_jobs):
    model = spinney.RandomSurvivalForest(8, min_samples_leaf=3, random_state=1, oob_score=True, n_jobs=n_jobs)
    model.fit(HOLES, CAUSES, WEIGHTS, entry=ENTRY)
    return {
        "hazard": model.predict_cumulative_hazard(NEW),
        "incidence": model.predict_cumulative_incidence(NEW),
        "median": model.predict_median(NEW),
        "oob": model.oob_curve_,
        "file": saved(model),
    }
