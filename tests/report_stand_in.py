"""Studies of small tables made of plain estimators: the input of a report, without the time of a study."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import spinney
from spinney._data.select import pick_table
from spinney._evaluate.scoring import Scorers, TestScore, read_metrics
from spinney._evaluate.statistics import paired_differences
from spinney._evaluate.study.columns import ColumnProfile
from spinney._evaluate.study.findings import Entry
from spinney._evaluate.study.result import Study
from spinney._evaluate.study.rows import RowNames

_METRICS = {
    "binary": ["neg_log_loss", "roc_auc"],
    "multiclass": ["neg_log_loss", "accuracy"],
    "regression": ["neg_root_mean_squared_error", "r2"],
}


def stand_in(X: Any, y: Any, target: str, *, n_folds: int = 4, n_trees: int = 30, seed: int = 0) -> Study:
    """Fit four models and a baseline; return them as a study."""
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.model_selection import KFold, StratifiedKFold

    y = np.asarray(y)
    is_regression = y.dtype.kind == "f"
    task = "regression" if is_regression else "binary" if len(np.unique(y)) == 2 else "multiclass"
    order = np.random.default_rng(seed).permutation(len(y))
    n_test = len(y) // 4
    table = pick_table(X)
    X_test, y_test = table.take(np.sort(order[:n_test])), y[np.sort(order[:n_test])]
    X_train, y_train = table.take(np.sort(order[n_test:])), y[np.sort(order[n_test:])]
    split = KFold if is_regression else StratifiedKFold
    folds = list(split(n_folds, shuffle=True, random_state=seed).split(y_train, y_train))
    kind = "Regressor" if is_regression else "Classifier"
    models = {
        "gradient boosting": getattr(spinney, f"GradientBoosting{kind}")(n_estimators=20),
        "random forest": getattr(spinney, f"RandomForest{kind}")(n_estimators=n_trees, random_state=seed),
        "tree": getattr(spinney, f"DecisionTree{kind}")(prune="cv", random_state=seed),
        "baseline": DummyRegressor() if is_regression else DummyClassifier(),
    }
    seconds, fitted = {}, {}
    for name, model in models.items():
        start = perf_counter()
        fitted[name] = model.fit(*_for(name, X_train), y_train)
        seconds[name] = perf_counter() - start
    scores, out_of_fold = _cross_validated(models, X_train, y_train, folds, _METRICS[task])
    test = {name: _predictions(model, *_for(name, X_test)) for name, model in fitted.items()}
    entries = _entries(scores, fitted, X_test, y_test, _METRICS[task], folds, seconds)
    fitted.pop("baseline")
    best = next(entry.name for entry in entries if not entry.is_baseline)
    classes = None if is_regression else np.unique(y)
    return Study(
        task=task,
        scorers=Scorers(read_metrics(_METRICS[task], classes), classes),
        target=target,
        classes=classes,
        columns=_profiles(table),
        notes=["The table was read.", "A quarter of the rows is the test set."],
        X_train=X_train,
        y_train=y_train,
        X_test=X_test,
        y_test=y_test,
        train_rows=RowNames(np.sort(order[n_test:]), "Rows are numbered by their position in the table, from 0."),
        test_rows=RowNames(np.sort(order[:n_test]), "Rows are numbered by their position in the table, from 0."),
        folds=folds,
        leaderboard=entries,
        models=fitted,
        out_of_fold=out_of_fold,
        test_predictions=test,
        best=best,
        why=f"{best} is kept: it is the best model.",
        model=fitted[best],
        single=best,
        single_model=fitted[best],
        calibration="none",
        tree=fitted["tree"],
        n_rows=len(y),
        seconds=1.5,
        versions={"spinney": spinney.__version__, "numpy": np.__version__},
    )


def _for(name: str, X: Any) -> tuple[Any]:
    """Return the input of a model; scikit-learn's baseline gets zeros, which it ignores."""
    return (np.zeros((pick_table(X).n_rows, 1)) if name == "baseline" else X,)


def _predictions(model: Any, X: Any) -> Any:
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


def _cross_validated(models: Any, X: Any, y: Any, folds: Any, metrics: Any) -> Any:
    from sklearn.base import clone
    from sklearn.metrics import get_scorer

    table = pick_table(X)
    scores = {name: {metric: [] for metric in metrics} for name in models}
    out_of_fold: dict[str, Any] = {}
    for train, held_out in folds:
        for name, model in models.items():
            fitted = clone(model).fit(*_for(name, table.take(train)), y[train])
            (inputs,) = _for(name, table.take(held_out))
            for metric in metrics:
                scores[name][metric].append(get_scorer(metric)(fitted, inputs, y[held_out]))
            predicted = _predictions(fitted, inputs)
            out_of_fold.setdefault(name, np.full((len(y), *predicted.shape[1:]), np.nan))[held_out] = predicted
    return scores, out_of_fold


def _entries(scores: Any, fitted: Any, X_test: Any, y_test: Any, metrics: Any, folds: Any, seconds: Any) -> list[Entry]:
    from sklearn.metrics import get_scorer

    order = sorted(scores, key=lambda name: -np.mean(scores[name][metrics[0]]))
    matrix = np.array([scores[name][metrics[0]] for name in order])
    gaps = paired_differences(matrix, 0, len(folds[0][1]) / len(folds[0][0]))
    entries = []
    for name, gap in zip(order, gaps, strict=True):
        test = {metric: get_scorer(metric)(fitted[name], *_for(name, X_test), y_test) for metric in metrics}
        entries.append(
            Entry(
                name=name,
                scores={metric: np.array(values) for metric, values in scores[name].items()},
                mean=float(np.mean(scores[name][metrics[0]])),
                error=gap.error,
                difference=gap,
                fit_seconds=seconds[name],
                predict_seconds=0.001,
                test={m: TestScore(v, v - abs(v) / 10, v + abs(v) / 10) for m, v in test.items()},
                is_baseline=name == "baseline",
                is_peer=False,
            )
        )
    return entries


def _profiles(table: Any) -> list[ColumnProfile]:
    names = table.names or [f"x{j}" for j in range(table.n_columns)]
    return [ColumnProfile(name, "number", missing=0, distinct=10, examples=("1", "2")) for name in names]


def binary_table(n_rows: int = 400, seed: int = 1) -> tuple[Any, Any]:
    """Columns of numbers and categories, some missing; two classes."""
    rng = np.random.default_rng(seed)
    age, income = rng.uniform(18, 80, n_rows).round(), rng.lognormal(10, 0.6, n_rows).round()
    home = rng.choice(["own", "rent", "with parents"], n_rows)
    debt = rng.gamma(2.0, 4000, n_rows).round()
    score = 0.04 * (age - 45) + 1.5 * (home == "own") - 0.0001 * debt + 0.6 * np.log(income / 22000)
    y = np.where(score + rng.logistic(0, 0.7, n_rows) > 0, "repaid", "default")
    income = np.where(rng.random(n_rows) < 0.05, np.nan, income)
    return {"age": age, "income": income, "home": home.astype(object), "debt": debt}, y


def multiclass_table() -> tuple[Any, Any]:
    """Read the penguins."""
    return spinney.datasets.load_penguins(as_frame="pandas")


def regression_table(n_rows: int = 400, seed: int = 2) -> tuple[Any, Any]:
    """Friedman's first function, with a column of categories that matters."""
    rng = np.random.default_rng(seed)
    x = rng.random((n_rows, 4))
    area = rng.choice(["north", "south", "east", "west"], n_rows)
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 4 * (area == "south")
    columns = {f"x{j + 1}": x[:, j] for j in range(4)}
    return {**columns, "area": area.astype(object)}, y + rng.normal(0, 1, n_rows)


TABLES = {
    "binary": (binary_table, "outcome"),
    "multiclass": (multiclass_table, "species"),
    "regression": (regression_table, "price"),
}
