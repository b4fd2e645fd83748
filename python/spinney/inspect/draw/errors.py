"""Errors against the number of members, and tuning curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from spinney._data.display import one_line
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.held_out import CrossValidation
from spinney._estimator.metrics import find_scorer, metric_key
from spinney._estimator.other_libraries import explain_unknown_arguments
from spinney.inspect.draw import axes
from spinney.inspect.draw.axes import CLASS_COLOURS, VALUE_COLOUR, axes_of, short
from spinney.inspect.draw.regions import fitted_to, require_estimator, value_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Error = Callable[[Any, Any], float]
_FEW = 12  # stages, which are marked by points, and members, which are named
_MOST_NUMBERS = 150  # cells of a map in which the errors are written
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

    Besides the error on the test rows, the plot shows the error on the training rows if they are passed, the
    out-of-bag error of models fitted with ``oob_score=True``, and the error on the validation rows of AdaBoost and of
    other boosting with ``loss="squared_error"`` or ``scoring="accuracy"``.

    Parameters
    ----------
    models : estimator or dict from str to estimator
        The models. The curve of a stack is the error with its first member, its first two, and so on. Models without
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
    simplest: Literal["first", "last"] | Mapping[str, Literal["first", "last"]] | None = None,
    cv: CrossValidation = 5,
    scoring: Any = None,
    groups: ColumnLike = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the cross-validated error of a model against one of its parameters, or as a map over two.

    Bars are one standard error over the folds, and the ring is the lowest error. The dashed line is the lowest error
    plus its standard error; in a map, dots mark the settings below it. With `simplest`, a square marks the simplest
    of these settings.

    Parameters
    ----------
    model : estimator
        An estimator of any library; it is cloned.
    X : table of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Target.
    vary : dict from the name of a parameter to its values
        Such as ``{"C": [0.1, 1, 10]}``; with two parameters, the first is on the horizontal axis.
    simplest : {"first", "last"} or dict, optional
        Which value gives the simplest model, to select by the one-standard-error rule; a dict has one for each
        parameter. With two parameters, the setting with the fewest steps from the simplest values is selected; if there
        are several, the one with the lowest error.
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
    >>> ax = spinney.plot_tuning(spinney.KNeighborsClassifier(), X, y, {"n_neighbors": [1, 5, 15, 45]}, simplest="last")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('n_neighbors', 'misclassification rate')
    >>> ax = spinney.plot_tuning(spinney.SVC(), X, y, {"C": [0.1, 1, 10], "gamma": [0.01, 0.1, 1]})
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('C', 'gamma')
    >>> matplotlib.pyplot.close("all")
    """
    from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

    require_estimator(model)
    are_listed = all(isinstance(tried, Iterable) and not isinstance(tried, str) for tried in vary.values())
    values = {name: list(tried) for name, tried in vary.items()} if are_listed else {}
    if len(values) not in (1, 2) or not all(values.values()):
        raise ValueError(
            f"vary needs one or two parameters with a list of values for each, such as {{'C': [0.1, 1, 10]}}, not "
            f"{one_line(dict(vary))}."
        )
    ends = simplest if isinstance(simplest, Mapping) or simplest is None else dict.fromkeys(values, simplest)
    if ends is not None and (set(ends) != set(values) or not set(ends.values()) <= {"first", "last"}):
        raise ValueError(f"simplest must be 'first' or 'last' for each of {', '.join(values)}, not {simplest!r}.")
    has_classes = is_classifier(model)
    default = "accuracy" if has_classes else "neg_mean_squared_error"
    if isinstance(cv, int):
        cv = (StratifiedKFold if has_classes else KFold)(cv, shuffle=True, random_state=0)
    scorer = find_scorer(scoring or default)
    grid = [{name: [value] for name, value in zip(values, one, strict=True)} for one in product(*values.values())]
    search = GridSearchCV(model, grid, cv=cv, scoring=scorer, refit=False, return_train_score=True, error_score="raise")
    results = search.fit(X, y, groups=groups).cv_results_
    best_score = 1.0 if scoring is None and has_classes else 0.0  # accuracies become errors
    labels = {"accuracy": "misclassification rate", "neg_mean_squared_error": "mean squared error"}
    found = _Tuning(
        values,
        ends,
        best_score - _by_setting(results, "test", len(grid), search.n_splits_),
        best_score - _by_setting(results, "train", len(grid), search.n_splits_),
        labels[default] if scoring is None else _label_of_loss(scoring),
    )
    if len(values) == 2:
        return _draw_tuning_map(
            axes_of(ax, max(6.4, 1.6 + 0.75 * found.shape[0]), max(4.2, 1.2 + 0.5 * found.shape[1])), found
        )
    return _draw_tuning_curve(axes_of(ax, 7.0, 4.2, "top", "right"), found)


def _by_setting(results: Mapping[str, Any], rows: str, n_settings: int, n_folds: int) -> Floats:
    """Return the scores of a search, (n_settings, n_folds)."""
    scores = [results[f"split{k}_{rows}_score"] for k in range(n_folds)]
    return np.array(scores, dtype=np.float64).reshape(n_folds, n_settings).T


def _label_of_loss(scoring: object) -> str:
    """Return the label of a metric whose sign is changed, so that smaller is better."""
    name = metric_key(scoring) if isinstance(scoring, str) else "score"
    return name.removeprefix("neg_").replace("_", " ") if name.startswith("neg_") else f"-{scoring}"


@dataclass(frozen=True, eq=False)
class _Tuning:
    """The cross-validated errors of settings, in the order of the product of the values.

    Attributes
    ----------
    values : dict of str to list
        Values of each parameter.
    simplest : mapping of str to {"first", "last"}, or None
        Which of the values is simplest, by parameter.
    held_out, of_fit : ndarray of shape (n_settings, n_folds)
        Errors of the rows that are held out, and of the training rows.
    label : str
        Name of the error.
    """

    values: dict[str, list[Any]]
    simplest: Mapping[str, str] | None
    held_out: Floats
    of_fit: Floats
    label: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each parameter."""
        return tuple(len(tried) for tried in self.values.values())

    @property
    def places(self) -> tuple[NDArray[np.intp], ...]:
        """Position of the value of each setting, by parameter."""
        return np.unravel_index(np.arange(len(self.held_out)), self.shape)

    @cached_property
    def mean(self) -> Floats:
        """Mean error of each setting."""
        return np.asarray(self.held_out.mean(axis=1))

    @cached_property
    def spread(self) -> Floats:
        """Standard error of each mean; 0 if there is one fold."""
        n_folds = self.held_out.shape[1]
        return np.asarray(self.held_out.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else 0.0 * self.mean)

    @property
    def best(self) -> int:
        """The setting of the lowest error."""
        return int(np.nanargmin(self.mean))

    @property
    def limit(self) -> float:
        """The lowest error plus its standard error."""
        return float(self.mean[self.best] + self.spread[self.best])

    @property
    def selected(self) -> int | None:
        """The simplest setting within the limit; None if it is not known which values are simple."""
        if self.simplest is None:
            return None
        steps = np.zeros(len(self.mean))
        for place, n, name in zip(self.places, self.shape, self.values, strict=True):
            steps += place if self.simplest[name] == "first" else n - 1 - place
        within = np.flatnonzero(self.mean <= self.limit)
        return int(within[np.lexsort((self.mean[within], steps[within]))[0]])

    def name(self, setting: int) -> str:
        """Return the values of a setting as text."""
        places = np.unravel_index(setting, self.shape)
        values = {name: one_line(tried[k]) for (name, tried), k in zip(self.values.items(), places, strict=True)}
        return short(", ".join(f"{name}={value}" if len(values) > 1 else value for name, value in values.items()), 50)


def _draw_tuning_curve(ax: Axes, found: _Tuning) -> Axes:
    ((name, values),) = found.values.items()
    places = _place_values(ax, name, values)
    line: dict[str, Any] = {"color": VALUE_COLOUR, "linewidth": 1.5, "marker": "o", "markersize": 4}
    ax.errorbar(places, found.mean, found.spread, capsize=3, elinewidth=1, label="held-out rows", **line)
    ax.plot(places, found.of_fit.mean(axis=1), color=axes.pale(), linewidth=1.2, label="training rows")
    _mark_tuning(ax, found, places, found.mean)
    ax.axhline(found.limit, color=axes.pale(), linestyle="--", linewidth=1, label="lowest + 1 standard error")
    ax.set(ylabel=found.label)
    ax.legend(frameon=False)
    return ax


def _draw_tuning_map(ax: Axes, found: _Tuning) -> Axes:
    across, up = (place.astype(np.float64) for place in found.places)
    drawn = ax.imshow(found.mean.reshape(found.shape).T, cmap=value_map(), origin="lower", aspect="auto")
    for values, axis in zip(found.values.values(), (ax.xaxis, ax.yaxis), strict=True):
        axis.set_ticks(range(len(values)), [short(value, 12) for value in values], parse_math=False)
    within = found.mean <= found.limit
    label = "within 1 standard error of the lowest"
    ax.plot(across[within], up[within] - 0.3, "o", markersize=3.5, color=axes.ink(), label=label)
    if len(found.mean) <= _MOST_NUMBERS:
        for x, y, error in zip(across, up, found.mean, strict=True):
            text = f"{error:.3g}" if abs(error) < 1000 else f"{error:,.0f}"
            ax.text(x, y, text, ha="center", va="center", color=axes.ink(), fontsize=8)
    _mark_tuning(ax, found, across, up, size=26)
    ax.figure.colorbar(drawn, ax=ax, label=found.label)
    first, second = found.values
    ax.set(xlabel=first, ylabel=second)
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), fontsize=9, borderaxespad=0.2)
    return ax


def _mark_tuning(ax: Axes, found: _Tuning, x: Floats, y: Floats, size: float = 11) -> None:
    """Draw a ring around the lowest error, and a square around the simplest setting within a standard error of it."""
    axes.ring(ax, x[found.best], y[found.best], None, size)
    axes.ring(ax, np.nan, np.nan, f"lowest: {found.name(found.best)}")
    if (k := found.selected) is not None:
        edge: dict[str, Any] = {"fillstyle": "none", "color": axes.ink(), "markeredgewidth": 1.5, "linestyle": "none"}
        ax.plot([x[k]], [y[k]], "s", markersize=size + 3, **edge)
        gap = "\n" if len(found.values) == 2 else " "  # a wide legend would make the map narrow
        label = f"simplest within 1 standard error:{gap}{found.name(k)}"
        ax.plot([], [], "s", markersize=11, label=label, **edge)


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
