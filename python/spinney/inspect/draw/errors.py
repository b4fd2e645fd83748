"""Errors against the number of members, and tuning curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from spinney._data.display import one_line
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.metrics import find_scorer, metric_key
from spinney._estimator.other_libraries import explain_unknown_arguments
from spinney.inspect.draw import axes
from spinney.inspect.draw.axes import CLASS_COLOURS, VALUE_COLOUR, axes_of, short
from spinney.inspect.draw.regions import fitted_to

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Error = Callable[[Any, Any], float]
_FEW = 12  # stages, which are marked by points, and members, which are named
_LARGEST_RATIO = 30  # of tuned values, beyond which their axis is logarithmic


def plot_errors(
    models: BaseEstimator | Mapping[str, BaseEstimator],
    X_test: TableLike,
    y_test: ColumnLike,
    *,
    X: TableLike = None,
    y: ColumnLike = None,
    references: Mapping[str, float | BaseEstimator] | None = None,
    metric: Error | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the error of ensembles against the number of their members, trees or rounds.

    Besides the error on the test rows, it plots the error on the training rows if they are passed, the out-of-bag error
    of models fitted with ``oob_score=True``, and the error on the validation rows of AdaBoost and of other boosting
    with ``loss="squared_error"`` or ``scoring="accuracy"``.

    Parameters
    ----------
    models : estimator or dict from str to estimator
        The curve of a stack is the error with its first member, its first two, and so on. Models without
        `staged_predict`, such as a single tree, are horizontal lines. Models that are not fitted are fitted to X and y.
    X_test, y_test : table and array-like
        Test rows.
    X, y : table and array-like, optional
        Training rows.
    references : dict from str to float or estimator, optional
        Horizontal lines: errors, such as the Bayes error, or models, such as a stump.
    metric : callable, optional
        ``metric(y, predicted)``; None: the misclassification rate, or the mean squared error. The out-of-bag and
        validation errors are drawn only if it is None.
    ax : Axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        The axes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import spinney
    >>> X, y = spinney.datasets.make_nested_spheres(600, random_state=0)
    >>> forest = spinney.RandomForestClassifier(40, oob_score=True, random_state=0).fit(X[:300], y[:300])
    >>> stump = spinney.DecisionTreeClassifier(max_depth=1).fit(X[:300], y[:300])
    >>> ax = spinney.plot_errors(forest, X[300:], y[300:], references={"a stump": stump, "Bayes error": 0.0})
    >>> [line.get_label() for line in ax.get_lines()]
    ['test rows', 'out of bag', 'a stump', 'Bayes error']
    >>> matplotlib.pyplot.close(ax.figure)
    """
    named = dict(models) if isinstance(models, Mapping) else {"": models}
    named = {name: _fitted(model, X, y) for name, model in named.items()}
    has_classes = is_classifier(next(iter(named.values())))
    error = metric or (_misclassified if has_classes else _mean_square)
    ax = axes_of(ax, 7.0, 4.2, "top", "right")
    lines = {}
    for k, (name, model) in enumerate(named.items()):
        if not hasattr(model, "staged_predict"):
            lines[name or type(model).__name__] = error(y_test, np.asarray(model.predict(X_test)))
            continue
        for j, (rows, curve) in enumerate(_curves(model, X_test, y_test, X, y, error, metric is None).items()):
            colour, dash = (CLASS_COLOURS[k % 8], ("-", "--", ":", "-.")[j]) if name else (CLASS_COLOURS[j], "-")
            label = f"{short(name, 24)}, {rows}" if name else rows
            marker = "o" if len(curve) <= _FEW else ""
            ax.plot(np.arange(1, len(curve) + 1), curve, dash, marker=marker, color=colour, linewidth=1.8, label=label)
    for name, reference in (references or {}).items():
        fitted: Any = _fitted(reference, X, y) if hasattr(reference, "predict") else None
        lines[name] = float(reference) if fitted is None else error(y_test, np.asarray(fitted.predict(X_test)))
    for k, (name, height) in enumerate(lines.items()):
        ax.axhline(height, color=axes.pale(), linestyle=("--", ":", "-.")[k % 3], linewidth=1.2, label=short(name, 30))
    what = "misclassification rate" if has_classes else "mean squared error"
    label = what if metric is None else getattr(metric, "__name__", "error").replace("_", " ")
    ax.set_ylabel(label)
    _label_stages(ax, list(named.values()))
    ax.legend(frameon=True, framealpha=0.8, edgecolor="none")
    return ax


def _label_stages(ax: Axes, models: list[Any]) -> None:
    """Label the horizontal axis: rounds, numbers of members, or the members of a stack by name."""
    stages = {tuple(getattr(model, "named_estimators_", ())) for model in models}
    (names,) = stages if len(stages) == 1 else ((),)
    if names and len(names) <= _FEW:
        ax.set_xticks(range(1, len(names) + 1), [short(name, 16) for name in names], parse_math=False)
        ax.set(xlabel="members, each added to those before", xlim=(0.7, len(names) + 0.3))
        return
    ax.set_xlabel("rounds" if all(hasattr(model, "n_iter_") for model in models) else "members")
    ax.set_xlim(left=0)


def _fitted(model: Any, X: TableLike, y: ColumnLike) -> Any:
    if X is None or y is None:
        check_is_fitted(model)
        return model
    return fitted_to(model, X, y)


def _misclassified(y: Any, predicted: Any) -> float:
    return float(np.mean(np.asarray(y).reshape(-1) != predicted))


def _mean_square(y: Any, predicted: Any) -> float:
    return float(np.mean((np.asarray(y, dtype=np.float64).reshape(predicted.shape) - predicted) ** 2))


def _curves(
    model: Any, X_test: TableLike, y_test: ColumnLike, X: TableLike, y: ColumnLike, error: Error, is_default: bool
) -> dict[str, Floats]:
    """Return the errors after each member by the rows they are of."""
    found = {"test rows": np.array([error(y_test, predicted) for predicted in model.staged_predict(X_test)])}
    if X is not None and y is not None:
        found["training rows"] = np.array([error(y, predicted) for predicted in model.staged_predict(X)])
    if is_default and hasattr(model, "oob_curve_"):
        found["out of bag"] = np.asarray(model.oob_curve_)
    if is_default and (validation := _validation_errors(model)) is not None:
        found["validation rows"] = validation
    return found


def _validation_errors(model: Any) -> Floats | None:
    """Return the misclassification rates or mean squared errors of the validation rows, if the fit has them."""
    scores = np.asarray(getattr(model, "validation_score_", ()), dtype=np.float64)
    if not len(scores) or scores.ndim != 1:
        return None
    if hasattr(model, "validation_losses_"):  # AdaBoost, whose score is an error
        return scores
    if is_classifier(model):
        return 1 + scores if model.scoring == "accuracy" else None
    return scores if model.scoring is None and model.loss == "squared_error" else None


@explain_unknown_arguments
def plot_tuning(
    model: BaseEstimator,
    X: TableLike,
    y: ColumnLike,
    vary: Mapping[str, Iterable[Any]],
    *,
    cv: Any = 5,
    scoring: Any = None,
    groups: ColumnLike = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the cross-validated error of a model against one of its parameters.

    Bars are one standard error over the folds; the ring is the lowest error.

    Parameters
    ----------
    model : estimator
        Of any library; it is cloned.
    X : table of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Target.
    vary : dict from the name of a parameter to its values
        Such as ``{"C": [0.1, 1, 10]}``.
    cv : int, splitter or iterable, default=5
        Folds, as in scikit-learn; stratified for classifiers.
    scoring : str or callable, optional
        The name of a scikit-learn scorer, a short name such as "auc", or a scorer; its sign is changed. None: the
        misclassification rate, or the mean squared error.
    groups : array-like of shape (n_samples,), optional
        Groups of the rows, for the splitter.
    ax : Axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        The axes.

    See Also
    --------
    plot_error_curve : The same for parameters that a fit has chosen with "cv".

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import spinney
    >>> X, y = spinney.datasets.make_diagonal(120, noise=0.1, random_state=0)
    >>> ax = spinney.plot_tuning(spinney.KNeighborsClassifier(), X, y, {"n_neighbors": [1, 5, 15, 45]})
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('n_neighbors', 'misclassification rate')
    >>> matplotlib.pyplot.close(ax.figure)
    """
    from sklearn.model_selection import KFold, StratifiedKFold, validation_curve

    if len(vary) != 1:
        raise ValueError(f"vary needs one parameter with its values, not {len(vary)}.")
    ((name, tried),) = vary.items()
    values, has_classes = list(tried), is_classifier(model)
    default = "accuracy" if has_classes else "neg_mean_squared_error"
    if isinstance(cv, int):
        cv = (StratifiedKFold if has_classes else KFold)(cv, shuffle=True, random_state=0)
    of_fit, held_out = validation_curve(
        model, X, y, param_name=name, param_range=values, cv=cv, groups=groups, scoring=find_scorer(scoring or default)
    )
    if scoring is None and has_classes:
        of_fit, held_out = of_fit - 1, held_out - 1  # accuracies as errors, after the change of sign
    labels = {"accuracy": "misclassification rate", "neg_mean_squared_error": "mean squared error"}
    label = labels[default] if scoring is None else _label_of_loss(scoring)
    return _draw_tuning(axes_of(ax, 7.0, 4.2, "top", "right"), name, values, -of_fit, -held_out, label)


def _label_of_loss(scoring: object) -> str:
    """Return the label of a metric whose sign is changed, so that smaller is better."""
    name = metric_key(scoring) if isinstance(scoring, str) else "score"
    return name.removeprefix("neg_").replace("_", " ") if name.startswith("neg_") else f"-{scoring}"


def _draw_tuning(
    ax: Axes, name: str, values: list[Any], of_fit: NDArray[Any], held_out: NDArray[Any], label: str
) -> Axes:
    places = _place_values(ax, name, values)
    mean, n_folds = held_out.mean(axis=1), held_out.shape[1]
    spread = held_out.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(len(mean))
    line: dict[str, Any] = {"color": VALUE_COLOUR, "linewidth": 1.5, "marker": "o", "markersize": 4}
    ax.errorbar(places, mean, spread, capsize=3, elinewidth=1, label="held-out rows", **line)
    ax.plot(places, of_fit.mean(axis=1), color=axes.pale(), linewidth=1.2, label="training rows")
    best = int(np.nanargmin(mean))
    axes.ring(ax, places[best], mean[best], f"lowest: {one_line(values[best])}")
    ax.set(ylabel=label)
    ax.legend(frameon=False)
    return ax


def _place_values(ax: Axes, name: str, values: list[Any]) -> Floats:
    """Return the places of a parameter's values on the x axis, and label it."""
    ax.set_xlabel(name)
    are_numbers = all(isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in values)
    if not are_numbers:
        ax.set_xticks(range(len(values)), [short(value, 16) for value in values], parse_math=False)
        return np.arange(len(values), dtype=np.float64)
    places = np.array(values, dtype=np.float64)
    if places.min() > 0 and places.max() > _LARGEST_RATIO * places.min():
        ax.set_xscale("log")
    return places


def draw_trade_off(found: Any, ax: Axes | None) -> Axes:
    """Plot the components of a `BiasVariance` against a parameter."""
    ax = axes_of(ax, 7.0, 4.2, "top", "right")
    name, values = found.varied
    places, parts = _place_values(ax, name, values), list(found.parts.values())
    is_squared = found.loss == "squared"
    noise = [part.noise_effect for part in parts]
    bias, variance = ("bias²", "variance") if is_squared else ("bias", "net variance")
    lines = [("error", [part.error for part in parts], axes.ink(), "o")]
    if None not in noise:
        lines.append(("noise", noise, axes.pale(), "s"))
    lines.append((bias if None not in noise else f"{bias} + noise", [p.bias for p in parts], CLASS_COLOURS[0], "^"))
    lines.append((variance, [part.variance for part in parts], CLASS_COLOURS[1], "v"))
    for label, heights, colour, marker in lines:
        ax.plot(places, heights, color=colour, marker=marker, markersize=5, linewidth=1.8, label=label)
    best = int(np.argmin([part.error for part in parts]))
    axes.ring(ax, places[best], parts[best].error, f"lowest: {one_line(values[best])}")
    ax.set(ylabel="expected squared error" if is_squared else "expected error rate")
    ax.legend(frameon=False, ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax


def draw_consistency(found: Any, ax: Axes | None) -> Axes:
    """Plot the errors of a `Consistency` against the number of training rows."""
    ax = axes_of(ax, 7.0, 4.2, "top", "right")
    for k, (name, errors) in enumerate(found.errors.items()):
        look = axes.class_look(k)
        mean, spread = errors.mean(axis=1), errors.std(axis=1, ddof=1) / np.sqrt(errors.shape[1])
        ax.fill_between(found.sizes, mean - spread, mean + spread, color=look["color"], alpha=0.15, linewidth=0)
        ax.plot(found.sizes, mean, markersize=5, label=short(name, 30), **look)
    label = f"Bayes error L* = {found.bayes_error:.3g}"
    ax.axhline(found.bayes_error, color=axes.ink(), linestyle=":", linewidth=1.2, label=label)
    ax.set(xlabel="training rows n", ylabel="test error", xscale="log")
    ax.set_xticks(found.sizes, [f"{n:,}" for n in found.sizes])
    ax.set_xticks([], minor=True)
    ax.legend(frameon=False)
    return ax
