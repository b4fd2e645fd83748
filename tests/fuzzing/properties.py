"""Change a table or weights in a way that must not matter, and compare the models: relations between two fits.

Predictions must be bit-identical with other names of columns, also if they come in another order, with other labels of
the classes in the same order, and with weights times a power of two; those of trees and forests also with the rows in
another order, and without the rows of weight 0. Those of linear models with the rows in another order may differ in the
last digits.
"""

import warnings

import numpy as np
import spinney

from fuzzing.fits import Case, is_sentence, outputs

NO_WEIGHT_UNIT = {
    "FunctionalBoosting",
    "GradientBoosting",
    "KNeighbors",
    "Linear",
    "SVC",
    "SVR",
    "Perceptron",
    "Stacking",
    "Voting",
}
HOLD_OUT = {"prune", "validation_fraction"}  # rows by position


def fitted(case, columns, y, weight):
    make = getattr(spinney, case.name)
    known = make._get_param_names()
    fixed = {name: value for name, value in {"random_state": 5, "n_jobs": 1}.items() if name in known}
    model = make(**(case.parameters | ({} if case.name.startswith("Bagging") else fixed)))
    if case.name.startswith("Bagging"):
        model.set_params(random_state=5)
    weights = {} if weight is None else {"sample_weight": weight}
    return model.fit(columns, *(() if y is None else (y,)), **weights)


def names_changed(case, rng, fit):
    if any(repr(name) in repr(case.parameters) for name in case.columns):
        return None  # a parameter names columns
    new = {name: f"another name {k}" for k, name in enumerate(case.columns)}
    columns = {new[name]: column for name, column in case.columns.items()}
    order = list(case.columns) if case.name == "ProximityImputer" else reversed(case.columns)  # which returns columns
    rows = {new[name]: case.columns[name][:7] for name in order}
    return fit(columns, case.y, case.weight), rows, "names"


def labels_changed(case, rng, fit):
    if case.y is None or not case.name.endswith("Classifier") or np.ndim(case.y) > 1:
        return None
    codes = np.unique(case.y.astype(str) if case.y.dtype == object else case.y, return_inverse=True)[1]
    labels = np.array([f"label {k:03d}" for k in range(codes.max() + 1)], dtype=object)
    return fit(case.columns, labels[codes], case.weight), None, "labels"


def weights_scaled(case, rng, fit):
    if case.weight is None or any(part in case.name for part in NO_WEIGHT_UNIT) or "shrinkage" in case.parameters:
        return None  # shrinkage is a number of rows
    return fit(case.columns, case.y, case.weight * 4.0), None, "the unit of weights"


TREES = ("DecisionTree", "ExtraTree", "RandomForest")
ANY_ORDER = (*TREES, "IsolationForest", "RandomTreesEmbedding")
NEARLY = "the last digits"  # that may differ


def is_of(case, names):
    return case.name.startswith(names) and not HOLD_OUT & set(case.parameters)


def is_linear(case):
    """Whether a case is a linear model whose columns are scaled; others may be determined to a few digits only."""
    is_one = case.name in ("LinearClassifier", "LinearRegressor")
    return is_one and "scale" not in case.parameters and case.parameters.get("alpha") != "cv"


def rows_taken(case, rows):
    """Return columns, target and weights of some rows."""
    few = [None if values is None else np.asarray(values)[rows] for values in (case.y, case.weight)]
    return {name: column[rows] for name, column in case.columns.items()}, *few


def rows_reordered(case, rng, fit):
    if case.parameters.get("dialect") == "rpart" and case.weight is not None:
        return None  # rpart adds weights in the order of the rows
    if not is_of(case, ANY_ORDER) and not is_linear(case):
        return None
    what = "the order of the rows" + (f", but for {NEARLY}" if is_linear(case) else "")
    return fit(*rows_taken(case, rng.permutation(case.n_rows))), None, what


def rows_left_out(case, rng, fit):
    if not is_of(case, TREES) or case.weight is None or not 0 < np.count_nonzero(case.weight) < case.n_rows:
        return None
    rows = np.flatnonzero(case.weight)
    columns, y, weight = rows_taken(case, rows)
    kinds = [len(set(map(str, column[rows]))) == len(set(map(str, column))) for column in case.columns.values()]
    if not all(kinds) or (case.name.endswith("Classifier") and len(np.unique(y)) < len(np.unique(case.y))):
        return None  # a category or a class has no rows left
    return fit(columns, y, weight), None, "rows of weight 0"


def check_nearly_equal(first, second, words):
    """Compare all numbers; a class may differ where two are almost equally probable."""
    for name, answer in first.items():
        if answer.dtype.kind == "f":
            size = np.abs(answer).max(initial=1e-300)
            np.testing.assert_allclose(second[name], answer, rtol=1e-6, atol=1e-6 * size, err_msg=f"{words}: {name}")


CHANGES = [names_changed, labels_changed, weights_scaled, rows_reordered, rows_left_out]


class Area:
    """One seed: one fit, and another that must be equal."""

    def outcome(self, seed):
        case, rng = Case(seed), np.random.default_rng(seed)
        first = seed % len(CHANGES)

        def fit(columns, y, weight):
            return fitted(case, dict(columns), y, weight)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                one = fit(case.columns, case.y, case.weight)
            except Exception as error:
                if not is_sentence(error):
                    raise AssertionError(f"{case}: {type(error).__name__}: {error}") from error
                return "refused"
            found = (change(case, rng, fit) for change in [*CHANGES[first:], *CHANGES[:first]])
            changed = next((one for one in found if one is not None), None)
            if changed is None:
                return "does not apply"
            other, rows, what = changed
            few = {name: column[:7] for name, column in case.columns.items()}
            first, second = outputs(one, few), outputs(other, few if rows is None else rows)
        if what == "labels":
            first.pop("predict"), second.pop("predict")
        if NEARLY in what:
            check_nearly_equal(first, second, f"{case}: {what}")
            return what
        for name, answer in first.items():
            same = (answer == second[name]) | ((answer != answer) & (second[name] != second[name]))
            assert np.all(same), f"{case}: {name} depends on {what}"
        return what
