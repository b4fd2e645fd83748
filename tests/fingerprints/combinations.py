"""Linear models, stacking and voting."""

import spinney

from fingerprints.cases import answers, case, enter_models
from fingerprints.tables import CLASSES, MIXED, TWO, VALUES

SMALL = {
    "Classifier": [("forest", spinney.RandomForestClassifier(4)), "tree", "linear"],
    "Regressor": [("boosting", spinney.GradientBoostingRegressor(n_estimators=4)), "tree", "linear"],
}
STACKS = {
    "plain": {},
    "greedy": {"final_estimator": "greedy"},
    "averaged folds": {"refit": False},
    "columns and a tree": {"final_estimator": "tree", "passthrough": True},
    "layers": {"layers": [["tree", "linear"]]},
}


def stack(task, **options):
    kind = getattr(spinney, f"Stacking{task}")
    return lambda: kind(SMALL[task], cv=3, random_state=1, **options)


for name, y in (("classes", CLASSES), ("two classes", TWO)):
    case(f"linear: {name}")(lambda n_jobs, y=y: answers(spinney.LinearClassifier(), MIXED, y))
    enter_models(f"stack, {name}", {key: stack("Classifier", **options) for key, options in STACKS.items()}, MIXED, y)
case("linear: values")(lambda n_jobs: answers(spinney.LinearRegressor(), MIXED, VALUES))
enter_models("stack, values", {key: stack("Regressor", **options) for key, options in STACKS.items()}, MIXED, VALUES)
enter_models("vote", {"soft": lambda: spinney.VotingClassifier(SMALL["Classifier"], random_state=1)}, MIXED, CLASSES)
