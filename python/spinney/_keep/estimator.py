"""Estimators that can be saved, loaded and pickled."""

from __future__ import annotations

from typing import Any

import spinney
from spinney._boosting.kept import boosting_from_json, boosting_to_json
from spinney._file.container import faults_named, field, from_bytes, refuse
from spinney._file.disk import Target, label_of, read_file, write_file
from spinney._file.values import parameters_from_json, parameters_to_json
from spinney._fitted.boosting import FittedBoosting
from spinney._fitted.forest import FittedForest
from spinney._forest.growing.kept import forest_from_json, forest_to_json
from spinney._keep.part import FittedPart
from spinney._pruning.kept import pruning_from_json, pruning_to_json
from spinney._rpart.kept import record_from_json, record_to_json


class SavedEstimator:
    """Gives a tree, forest or boosting `save`, and pickles that pass through the same checks as model files."""

    _is_forest = False
    _is_boosting = False

    def save(self, file: Target) -> None:
        """Write the fitted model to a file that `spinney.load` and `spinney.load_predictor` read.

        The file holds numbers and text, no code: loading it runs none. What only a fit needs and is no number or
        text is not saved: another random state than an integer becomes None, other folds than a number of them the
        default, a scorer that is a function and callbacks None. Of ``cp_table_`` at most 100 rows are saved;
        out-of-fold predictions and the nodes of the training rows are not. Which rows were drawn for the trees of a
        forest is saved with ``keep_rows=True``, as are the targets and leaves of its training rows and what was
        predicted for them out of bag; the out-of-bag score and curve always are.

        Parameters
        ----------
        file : str, path or binary file
            Where to write. At a path, the file is complete or not there: an older one is replaced in one step.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        if header_class(self) is None:
            raise TypeError(
                f"{type(self).__name__} is not one of spinney's own estimators and cannot be loaded again. Pickle it."
            )
        write_file(file, FittedPart.of(self.__dict__).to_bytes(file_header(self)))

    def fingerprint(self) -> str:
        """Hash of the trees and of the numbers that turn their values into predictions.

        These are where scores start and their link (boosting), the costs of wrong classes, and the combinations of
        oblique forests. Names of columns and classes, and parameters, do not count.

        Returns
        -------
        str
            64 hexadecimal digits; the same for every number of threads, chunking of the rows and kind of table.

        Examples
        --------
        >>> import spinney
        >>> X, y = spinney.datasets.load_penguins()
        >>> models = [spinney.RandomForestClassifier(5, random_state=0, n_jobs=n).fit(X, y) for n in (1, 2)]
        >>> models[0].fingerprint() == models[1].fingerprint()
        True
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        return FittedPart.of(self.__dict__).fingerprint()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        if not state.keys() & {"tree_", "forest_", "boosting_"}:
            return state
        part, entries = FittedPart.of(state), record_to_json(state)
        for name in (*part.attributes(), "rpart_"):
            state.pop(name, None)
        return state | {"_model_file": part.to_bytes(entries)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        data = state.pop("_model_file", None)
        super().__setstate__(state)  # type: ignore[misc]
        if data is not None:
            with faults_named("this pickle"):
                part, header = FittedPart.from_bytes(data)
                record = record_from_json(header, part)
            self.__dict__.update(part.attributes() | record)


def load(file: Target) -> Any:
    """Read a model that its `save` method has written.

    Parameters
    ----------
    file : str, path or binary file
        What to read.

    Returns
    -------
    estimator
        Of the class that was saved, fitted, with its parameters.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model file, or written by a newer spinney.
    OSError
        If there is no such file, or it cannot be read.

    See Also
    --------
    load_predictor : Predicts only, without scikit-learn.

    Examples
    --------
    >>> import io
    >>> import spinney
    >>> model = spinney.DecisionTreeClassifier().fit([[1.0], [2.0]], ["low", "high"])
    >>> file = io.BytesIO()
    >>> model.save(file)
    >>> _ = file.seek(0)
    >>> spinney.load(file).predict([[1.2]])
    array(['low'], dtype='<U4')
    """
    data = read_file(file)
    with faults_named(label_of(file)):
        header, model_file = from_bytes(data)
        if header.get("kind") == "bagging":
            from spinney._ensemble.kept_bagging import ensemble_from_file

            return ensemble_from_file(header, model_file)
        if header.get("kind") == "imputer":
            from spinney._forest.near.kept_imputer import imputer_from_file

            return imputer_from_file(header, model_file)
        return estimator_of(header, FittedPart.from_header(header, model_file, 0, model_file.n_trees))


def header_class(estimator: Any) -> str | None:
    """Return the name under which an estimator is found again; None if it is not one of spinney's own."""
    name = type(estimator).__name__
    return name if getattr(spinney, name, None) is type(estimator) else None


def file_header(estimator: Any) -> dict[str, Any]:
    """Return what the header of a model file says of an estimator, beside what `FittedPart` says."""
    estimator._validate_params()
    parameters = parameters_to_json(estimator.get_params(deep=False))
    header: dict[str, Any] = {
        "spinney": spinney.__version__,
        "estimator": header_class(estimator),
        "parameters": parameters,
        "shrinkage": float(getattr(estimator, "shrinkage_", 0.0)),
    }
    learned = estimator.__dict__
    if estimator._is_boosting:
        header.pop("shrinkage")
        header |= boosting_to_json(learned)
    return header | pruning_to_json(learned) | record_to_json(learned) | forest_to_json(learned)


def estimator_of(header: dict[str, Any], part: FittedPart) -> Any:
    """Make the fitted estimator of a header."""
    kind = class_named(field(header, "estimator", str), SavedEstimator)
    if ("Classifier" in kind.__name__) != (part.classes is not None):
        refuse("is damaged: its estimator and its classes do not go together")
    estimator = kind(**parameters_from_json(field(header, "parameters", dict)))
    estimator._validate_params()
    is_boosting = isinstance(part.model, FittedBoosting)
    if kind._is_forest != isinstance(part.model, FittedForest) or kind._is_boosting != is_boosting:
        refuse("is damaged: its estimator and its trees do not go together")
    if isinstance(part.model, FittedBoosting):
        estimator.__dict__.update(part.attributes() | boosting_from_json(header, part.model.n_rounds))
        return estimator
    learned = pruning_from_json(header) | record_from_json(header, part) | forest_from_json(header, part)
    if (kind.__name__ == "IsolationForest") != ("offset_" in learned):
        refuse("is damaged: its estimator and its threshold do not go together")
    shrinkage = field(header, "shrinkage", float) if "shrinkage" in header else 0.0
    estimator.__dict__.update(part.attributes() | learned, shrinkage_=shrinkage)
    return estimator


def class_named(name: str, *bases: type) -> Any:
    """Return the estimator of a name, if it is one of these."""
    kind = getattr(spinney, name) if name in spinney.__all__ else None
    if not isinstance(kind, type) or not issubclass(kind, bases):
        refuse(f"holds a model that this spinney does not know, {name[:100]!r}: upgrade spinney")
    return kind
