"""AdaBoost."""

import spinney

from fingerprints.cases import case, enter_models, explained, row_answers, saved
from fingerprints.tables import CLASSES, HOLES, MIXED, NUMBERS, TWO, VALUES, WEIGHTS

ALGORITHMS = ("m1", "samme", "real", "gentle", "logit")
STOPPED = {"early_stopping": True, "validation_fraction": 0.3, "n_iter_no_change": 3, "random_state": 1}


def classes(**options):
    return lambda: spinney.AdaBoostClassifier(**{"n_estimators": 12, **options})


def values(**options):
    return lambda: spinney.AdaBoostRegressor(**{"n_estimators": 8, **options})


BY_ALGORITHM = {name: classes(algorithm=name) for name in ALGORITHMS}
DEEP = {name: classes(algorithm=name, max_depth=3, learning_rate=0.7) for name in ALGORITHMS}
enter_models("AdaBoost two classes", BY_ALGORITHM | {"stopped early": classes(**STOPPED)}, HOLES, TWO)
enter_models("AdaBoost classes", DEEP, HOLES, CLASSES)
enter_models("AdaBoost categories", DEEP, MIXED, CLASSES)
enter_models("AdaBoost with weights", BY_ALGORITHM, HOLES, TWO, sample_weight=WEIGHTS)
enter_models(
    "AdaBoost values",
    {loss: values(loss=loss) for loss in ("linear", "square", "exponential")} | {"stopped early": values(**STOPPED)},
    HOLES,
    VALUES,
)


@case("AdaBoost: predicted, saved and explained")
def _(n_jobs):
    model = classes(n_jobs=n_jobs)().fit(HOLES, TWO)
    many = classes(n_jobs=n_jobs, algorithm="gentle", max_depth=2)().fit(NUMBERS, CLASSES)
    number = values(n_jobs=n_jobs)().fit(NUMBERS, VALUES)
    return {
        "errors": model.estimator_errors_,
        "weights": model.estimator_weights_,
        "losses": model.train_losses_,
        "margins": list(model.staged_margins(HOLES, TWO)),
        "row weights": list(model.staged_weights(HOLES, TWO)),
        "importances": model.feature_importances_,
        "one row": row_answers(many, NUMBERS[:20]) + row_answers(number, NUMBERS[:20]),
        "explained": explained(model, HOLES[:10]) + explained(many, NUMBERS[:10]),
        "file": saved(model),
        "file of classes": saved(many),
        "file of values": saved(number),
    }


@case("AdaBoost of samples")
def _(n_jobs):
    model = classes(
        estimator=spinney.DecisionTreeClassifier(max_depth=2), resample=True, random_state=3, n_jobs=n_jobs
    )()
    return {"predict": model.fit(NUMBERS, TWO).decision_function(NUMBERS)}
