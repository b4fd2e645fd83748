"""Import of fitted scikit-learn estimators: trees, forests, boosting and isolation forests.

Trees, forests and gradient boosting round numbers to single precision and compare them with doubles; histogram boosting
compares doubles. Numbers up to the threshold go left.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import __version__ as sklearn_version
from sklearn import ensemble, tree
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.types import Floats
from spinney._forest.growth_record import GrowthRecord
from spinney._interchange.reading import entries
from spinney._interchange.reading.nodes import Nodes, TreeSum, cuts_of_singles, schema_of
from spinney._model.file.container import model_file_errors, refuse
from spinney._model.forest import FittedForest
from spinney._model.saving.saved_model import SavedModel
from spinney._model.tree import FittedTree
from spinney._names import public

# extra trees are subclasses of decision trees, so they come first
_TREES = (tree.ExtraTreeClassifier, tree.ExtraTreeRegressor, tree.DecisionTreeClassifier, tree.DecisionTreeRegressor)
_FORESTS = (
    ensemble.RandomForestClassifier,
    ensemble.RandomForestRegressor,
    ensemble.ExtraTreesClassifier,
    ensemble.ExtraTreesRegressor,
)
_BOOSTING = (ensemble.GradientBoostingClassifier, ensemble.GradientBoostingRegressor)
_HISTOGRAMS = (ensemble.HistGradientBoostingClassifier, ensemble.HistGradientBoostingRegressor)
_KNOWN = (*_TREES, *_FORESTS, *_BOOSTING, *_HISTOGRAMS, ensemble.IsolationForest)
# attributes of a forest that only spinney's fit computes
_NO_GROWTH = {"_growth": GrowthRecord(shrinkage=0.0, is_imported=True), "shrinkage_": 0.0}
_SHARED_PARAMETERS = (
    "n_estimators",
    "criterion",
    "max_depth",
    "min_samples_split",
    "min_samples_leaf",
    "min_weight_fraction_leaf",
    "max_features",
    "max_leaf_nodes",
    "min_impurity_decrease",
    "bootstrap",
    "max_samples",
    "contamination",
    "random_state",
)


def from_sklearn(model: object) -> Any:
    """Import a fitted tree, forest, gradient boosting or isolation forest of scikit-learn.

    Parameters
    ----------
    model : estimator
        A fitted decision tree or extra tree, random forest or extra trees, gradient boosting, histogram gradient
        boosting, or isolation forest. Files are not read: scikit-learn's files are pickles, and loading a pickle runs
        code.

    Returns
    -------
    estimator
        For trees and forests, spinney's estimator of the same name, with the parameters that both have; for boosting,
        an `ImportedClassifier` or `ImportedRegressor`. It predicts like the original.

    See Also
    --------
    from_xgboost, from_lightgbm : Other libraries.

    Examples
    --------
    >>> import spinney
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> theirs = RandomForestClassifier(10, random_state=0).fit(X, y)
    >>> ours = spinney.from_sklearn(theirs)
    >>> bool((ours.predict(X) == theirs.predict(X)).all())
    True
    """
    if entries.is_file(model):
        raise TypeError(
            "from_sklearn takes a fitted estimator, not a file: scikit-learn's files are pickles, and loading a pickle "
            "runs code. If you trust the file, load it and pass the estimator."
        )
    kind = next((known for known in _KNOWN if isinstance(model, known)), None)
    if kind is None:
        raise TypeError(
            f"from_sklearn takes trees, forests, gradient boosting and isolation forests of scikit-learn, not "
            f"{type(model).__name__}. Pass the last step of a pipeline, or the best estimator of a search."
        )
    check_is_fitted(model)
    with model_file_errors("this model", "import", "it"):
        if kind in _HISTOGRAMS:
            return histogram_tree_sum(model, f"scikit-learn {sklearn_version}").estimator()
        if kind in _BOOSTING:
            return _boosting(model)
        if kind is ensemble.IsolationForest:
            return _isolation(model)
        return _averaged(model, kind.__name__)


def _schema(model: BaseEstimator) -> Schema:
    names = getattr(model, "feature_names_in_", None)
    return schema_of(None if names is None else list(names), model.n_features_in_, {}, "missing")


def _nodes(theirs: Any, value: Floats, gain: bool) -> Nodes:
    """Return the nodes of a scikit-learn tree."""
    split = theirs.children_left >= 0
    missing = np.asarray(getattr(theirs, "missing_go_to_left", np.zeros(theirs.node_count))) != 0
    weight = np.asarray(theirs.weighted_n_node_samples, dtype=np.float64)
    burden = weight * theirs.impurity
    gains = np.zeros(theirs.node_count)
    at = np.flatnonzero(split)
    gains[at] = burden[at] - burden[theirs.children_left[at]] - burden[theirs.children_right[at]]
    return Nodes(
        theirs.children_left,
        theirs.children_right,
        np.where(split, theirs.feature, -1),
        np.where(split, cuts_of_singles(theirs.threshold), 0.0),
        missing & split,
        np.where(split[:, np.newaxis], 0.0, value) if gain else value,
        weight,
        theirs.n_node_samples,
        gains if gain else None,
        None if gain else np.asarray(theirs.impurity, dtype=np.float64),
    )


# ---- trees and forests -------------------------------------------------------------------------


def _averaged(model: BaseEstimator, name: str) -> Any:
    """Import a tree or a forest, whose leaves hold numbers or class probabilities."""
    schema = _schema(model)
    n_categories = schema.n_categories
    is_forest = isinstance(model, _FORESTS)
    made = [
        _plain_tree(member, n_categories, t) for t, member in enumerate(model.estimators_ if is_forest else [model])
    ]
    classes = getattr(model, "classes_", None)
    labels = None if classes is None else [np.asarray(c) for c in (classes if model.n_outputs_ > 1 else [classes])]
    n_classes = None if labels is None else [len(known) for known in labels]
    if not is_forest:
        saved = SavedModel(schema, FittedTree(made[0], n_classes, model.n_outputs_), labels, schema.n_features)
        return _estimator(name, model, saved, shrinkage_=0.0)
    forest = FittedForest(_engine.forest_from_trees(made, n_categories), n_classes, model.n_outputs_)
    return _estimator(name, model, SavedModel(schema, forest, labels, schema.n_features), **_NO_GROWTH)


def _plain_tree(member: Any, n_categories: list[int], t: int) -> _engine.Tree:
    theirs = member.tree_
    value = np.asarray(theirs.value, dtype=np.float64)  # (nodes, outputs, classes)
    if hasattr(member, "classes_"):
        counts = np.atleast_1d(member.n_classes_)
        value = np.concatenate([_probabilities(value[:, k, :n]) for k, n in enumerate(counts)], axis=1)
    return _nodes(theirs, value.reshape(theirs.node_count, -1), gain=False).tree(n_categories, t)


def _probabilities(value: Floats) -> Floats:
    """Return class probabilities; older versions of scikit-learn store class weights."""
    total = value.sum(axis=1, keepdims=True)
    return value if (np.abs(total - 1.0) < 1e-9).all() else value / total


def _estimator(name: str, model: BaseEstimator, saved: SavedModel, **more: Any) -> Any:
    """Make spinney's estimator of the same name."""
    kind = public(name)
    theirs, ours = model.get_params(deep=False), kind._get_param_names()
    parameters: dict[str, Any] = {}
    for parameter in _SHARED_PARAMETERS:
        if parameter in ours and parameter in theirs and not _is_invalid(kind, parameter, theirs[parameter]):
            parameters[parameter] = theirs[parameter]
    estimator = kind(**parameters)
    estimator.__dict__.update(saved.attributes() | more)
    return estimator


def _is_invalid(kind: Any, parameter: str, value: Any) -> bool:
    try:
        kind(**{parameter: value})._validate_params()
    except (TypeError, ValueError):
        return True
    return not isinstance(value, (int, float, str, bool, type(None)))


def _isolation(model: BaseEstimator) -> Any:
    """Import an isolation forest, whose leaves hold path lengths."""
    schema = _schema(model)
    lengths = (model._decision_path_lengths, model._average_path_length_per_tree)
    trees = []
    for t, (member, columns) in enumerate(zip(model.estimators_, model.estimators_features_, strict=True)):
        theirs = member.tree_
        length = (lengths[0][t] + lengths[1][t] - 1.0)[:, np.newaxis]
        nodes = _nodes(theirs, length, gain=False)
        nodes.feature = np.where(nodes.feature >= 0, np.asarray(columns)[nodes.feature], -1)
        trees.append(nodes.tree(schema.n_categories, t))
    forest = FittedForest(_engine.forest_from_trees(trees, schema.n_categories), None, 1)
    saved = SavedModel(schema, forest, None, schema.n_features)
    attributes = {"offset_": float(model.offset_), "max_samples_": int(model._max_samples)} | _NO_GROWTH
    return _estimator("IsolationForest", model, saved, **attributes)


# ---- sums of trees ----------------------------------------------------------------------------------------


def _boosting(model: BaseEstimator) -> Any:
    """Import gradient boosting: a start plus trees times the learning rate."""
    schema = _schema(model)
    classes = getattr(model, "classes_", None)
    n_scores = model.estimators_.shape[1]
    trees: list[list[_engine.Tree]] = [[] for _ in range(n_scores)]
    for r, of_round in enumerate(model.estimators_):
        for k, member in enumerate(of_round):
            theirs = member.tree_
            value = model.learning_rate * np.asarray(theirs.value, dtype=np.float64).reshape(theirs.node_count, 1)
            trees[k].append(_nodes(theirs, value, gain=True).tree(schema.n_categories, r * n_scores + k))
    link = "identity" if classes is None else "logit" if n_scores == 1 else "softmax"
    if model.loss == "exponential":
        link = "sigmoid 2.0"
    source = f"scikit-learn {sklearn_version}"
    return TreeSum(schema, trees, _start(model, n_scores), link, classes, source, model.loss).estimator()


def _start(model: BaseEstimator, n_scores: int) -> Floats:
    if isinstance(model.init_, str) and model.init_ == "zero":
        return np.zeros(n_scores)
    if not isinstance(model.init_, (DummyClassifier, DummyRegressor)):
        refuse(
            f"starts from a {type(model.init_).__name__}, which cannot be imported. Fit it with init=None or "
            "init='zero'."
        )
    one = np.zeros((1, model.n_features_in_), dtype=np.float32)
    return np.asarray(model._raw_predict_init(one), dtype=np.float64).reshape(n_scores)


_LOG = ("poisson", "gamma")


def histogram_tree_sum(model: BaseEstimator, source: str) -> TreeSum:
    """Read a fitted HistGradientBoostingClassifier or -Regressor."""
    order, categories = _columns(model)
    names = getattr(model, "feature_names_in_", None)
    # the encoder treats unknown categories as missing
    schema = schema_of(None if names is None else list(names), model.n_features_in_, categories, "missing")
    classes = getattr(model, "classes_", None)
    n_scores = model.n_trees_per_iteration_
    trees: list[list[_engine.Tree]] = [[] for _ in range(n_scores)]
    for r, of_round in enumerate(model._predictors):
        for k, predictor in enumerate(of_round):
            trees[k].append(_tree(predictor, schema, order, categories, r * n_scores + k))
    link = "identity" if classes is None else "logit" if n_scores == 1 else "softmax"
    if model.loss in _LOG:
        link = "log"
    elif not isinstance(model.loss, str):
        refuse("has a user-defined loss, whose link is unknown. Fit it with the name of a loss.")
    start = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1)
    return TreeSum(schema, trees, np.broadcast_to(start, (n_scores,)).copy(), link, classes, source, model.loss)


def _columns(model: BaseEstimator) -> tuple[NDArray[np.intp], dict[int, tuple[Any, ...]]]:
    """Return the position in the table of each column of the trees, and the categories of categorical columns.

    The model's encoder puts categorical columns first.
    """
    n = model.n_features_in_
    is_category = model.is_categorical_
    if is_category is None:
        return np.arange(n), {}
    is_category = np.asarray(is_category, dtype=bool)
    order = np.concatenate([np.flatnonzero(is_category), np.flatnonzero(~is_category)])
    encoder = model._preprocessor.named_transformers_["encoder"]
    categories: dict[int, tuple[Any, ...]] = {}
    for j, known in zip(np.flatnonzero(is_category).tolist(), encoder.categories_, strict=True):
        values = [value for value in np.asarray(known, dtype=object).tolist() if value is not None and value == value]
        categories[j] = tuple(
            int(value) if isinstance(value, float) and value.is_integer() else value for value in values
        )
    return order, categories


def _tree(
    predictor: Any, schema: Schema, order: NDArray[np.intp], categories: dict[int, tuple[Any, ...]], t: int
) -> _engine.Tree:
    theirs = predictor.nodes
    leaf = theirs["is_leaf"] != 0
    column = order[np.where(leaf, 0, theirs["feature_idx"])]
    sets = {}
    for node in np.flatnonzero((theirs["is_categorical"] != 0) & ~leaf).tolist():
        words = np.ascontiguousarray(predictor.raw_left_cat_bitsets[theirs["bitset_idx"][node]], dtype="<u4")
        codes = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
        n_known = len(categories[int(column[node])])
        sets[node] = codes[codes < n_known], False
    nodes = Nodes(
        np.where(leaf, -1, theirs["left"].astype(np.int64)),
        np.where(leaf, -1, theirs["right"].astype(np.int64)),
        np.where(leaf, -1, column),
        np.where(leaf, 0.0, theirs["num_threshold"]),
        theirs["missing_go_to_left"] != 0,
        np.where(leaf, theirs["value"], 0.0),
        theirs["count"].astype(np.float64),
        theirs["count"],
        np.where(leaf, 0.0, np.maximum(theirs["gain"], 0.0)),
        sets=sets,
    )
    return nodes.tree(schema.n_categories, t)
