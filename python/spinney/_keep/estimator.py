"""Estimators that can be saved, loaded and pickled."""

from __future__ import annotations

from typing import Any

import spinney
from spinney._forest.view import FittedForest
from spinney._keep.disk import Target, label_of, read_file, write_file
from spinney._keep.fitted import FittedPart
from spinney._keep.forest import forest_from_json, forest_to_json
from spinney._keep.model_file import faults_named, field, refuse
from spinney._keep.pruning import pruning_from_json, pruning_to_json
from spinney._keep.rpart import record_from_json, record_to_json
from spinney._keep.values import parameters_from_json, parameters_to_json


class SavedEstimator:
    """Gives a tree or forest `save`, and pickles that pass through the same checks as model files."""

    _is_forest = False

    def save(self, file: Target) -> None:
        """Write the fitted model to a file that `spinney.load` and `spinney.load_predictor` read.

        The file holds numbers and text, no code: loading it runs none. What only a fit needs and is no number or
        text is not saved: another random state than an integer becomes None, other folds than a number of them the
        default, a scorer that is a function None. Of ``cp_table_`` at most 100 rows are saved; out-of-fold and
        out-of-bag predictions and the nodes of the training rows are not. Which rows were drawn for the trees of a
        forest is saved with ``keep_rows=True``, as are the targets and leaves of its training rows.

        Parameters
        ----------
        file : str, path or binary file
            Where to write. At a path, the file is complete or not there: an older one is replaced in one step.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        name = type(self).__name__
        if getattr(spinney, name, None) is not type(self):
            raise TypeError(f"{name} is not one of spinney's own estimators and cannot be loaded again. Pickle it.")
        self._validate_params()  # type: ignore[attr-defined]
        parameters = parameters_to_json(self.get_params(deep=False))  # type: ignore[attr-defined]
        header: dict[str, Any] = {"spinney": spinney.__version__, "estimator": name, "parameters": parameters}
        header["shrinkage"] = float(getattr(self, "shrinkage_", 0.0))
        header |= pruning_to_json(self.__dict__) | record_to_json(self.__dict__) | forest_to_json(self.__dict__)
        write_file(file, FittedPart.of(self.__dict__).to_bytes(header))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        if "tree_" not in state and "forest_" not in state:
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
        part, header = FittedPart.from_bytes(data)
        kind = _class_named(field(header, "estimator", str))
        if ("Classifier" in kind.__name__) != (part.classes is not None):
            refuse("is damaged: its estimator and its classes do not go together")
        estimator = kind(**parameters_from_json(field(header, "parameters", dict)))
        estimator._validate_params()
        if kind._is_forest != isinstance(part.model, FittedForest):
            refuse("is damaged: its estimator and its trees do not go together")
        learned = pruning_from_json(header) | record_from_json(header, part) | forest_from_json(header, part)
        if (kind.__name__ == "IsolationForest") != ("offset_" in learned):
            refuse("is damaged: its estimator and its threshold do not go together")
        shrinkage = field(header, "shrinkage", float) if "shrinkage" in header else 0.0
    estimator.__dict__.update(part.attributes() | learned, shrinkage_=shrinkage)
    return estimator


def _class_named(name: str) -> Any:
    kind = getattr(spinney, name) if name in spinney.__all__ else None
    if not isinstance(kind, type) or not issubclass(kind, SavedEstimator):
        refuse(f"holds a model that this spinney does not know, {name[:100]!r}: upgrade spinney")
    return kind
