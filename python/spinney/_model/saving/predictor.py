"""Predictions from a model file with NumPy and the engine alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.types import ColumnLike, TableLike
from spinney._model.file.container import faults_named, field, from_bytes, refuse
from spinney._model.file.disk import Target, label_of, read_file
from spinney._model.file.values import parameters_from_json
from spinney._model.model import ModelOfTrees
from spinney._model.offsets import read_offset
from spinney._model.saving.combined import StackPredictor, VotePredictor
from spinney._model.saving.members import read_models
from spinney._model.saving.model_part import FittedPart, kind_of
from spinney._names import COMBINED_KINDS, FAMILIES_OF_KIND, FITTED_KINDS, MODULE_OF, WITHOUT_TARGET, estimator_of


class Predictor:
    """A model that predicts and does nothing else; made by `load_predictor`.

    Attributes
    ----------
    classes_ : ndarray, or list of these
        Labels, in a classification.
    n_outputs_, n_features_in_ : int
        Outputs and columns.
    feature_names_in_ : ndarray of str
        Column names, if the training table had any.
    """

    def __init__(self, part: FittedPart, name: str, parameters: Mapping[str, Any]) -> None:
        self._part = part
        self._name = name
        self._unseen = parameters.get("unseen", "missing")
        self._n_jobs = parameters.get("n_jobs")
        self._of_thread = local()
        if self._unseen not in ("missing", "error", "other"):
            refuse("is damaged: its parameter 'unseen' is unusable")
        if self._n_jobs is not None and (type(self._n_jobs) is not int or abs(self._n_jobs) >= 2**31):
            refuse("is damaged: its parameter 'n_jobs' is unusable")
        attributes = part.attributes()
        self.n_outputs_ = part.model.n_outputs
        for attribute in ("classes_", "n_features_in_", "feature_names_in_"):
            if attribute in attributes:
                setattr(self, attribute, attributes[attribute])

    def __repr__(self) -> str:
        model = self._part.model
        size = f"{model.node_count} nodes" if isinstance(model, ModelOfTrees) else model.noun
        return f"<Predictor of a {self._name}: {size}>"

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self._part.schema

    @property
    def takes_offset(self) -> bool:
        """Whether a score may be added to those of the model."""
        return self._part.model.takes_offset

    def _by_blocks(self, X: TableLike, work: Callable[[_engine.Table, int], NDArray[Any]]) -> NDArray[Any]:
        blocks = self._part.schema.encode_blocks(read_table(X), self._unseen, self._name)
        found = [work(block, self._n_jobs or 0) for block in blocks]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _predictions(self, X: TableLike) -> Any:
        model = self._part.model
        return model.spread(self._by_blocks(X, model.predictions))

    def _scores(self, X: TableLike, offset: ColumnLike) -> NDArray[np.float64]:
        """Scores of gradient boosting beside an offset, (n_rows, n_scores)."""
        model: Any = self._part.model
        self._require_offsets()
        scores = self._by_blocks(X, model.scores)
        given = read_offset(offset, len(scores), model.n_scores)
        assert given is not None
        return np.asarray(scores + given.T)

    def _require_offsets(self) -> None:
        if not self._part.model.takes_offset:
            raise ValueError(f"offset is for gradient boosting, and this is a {self._name}. Leave it out.")

    def predict(self, X: TableLike, *, offset: ColumnLike = None) -> NDArray[Any]:
        """Predict each row, to the bit as the estimator that was saved.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            Gradient boosting: scores to add to those of the trees.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Labels or values.
        """
        model: Any = self._part.model
        if offset is not None:
            scores = self._scores(X, offset)
            if self._part.classes is None:
                return np.asarray(model.spread(model.predicted(scores)))
            return np.asarray(model.labels(model.score_codes(scores), self._part.classes))
        if self._part.classes is None:
            return np.asarray(self._predictions(X))
        return np.asarray(model.labels(self._by_blocks(X, model.codes), self._part.classes))

    def predict_proba(
        self, X: TableLike, *, offset: ColumnLike = None
    ) -> NDArray[np.float64] | list[NDArray[np.float64]]:
        """Class shares of each row, as the estimator that was saved.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            Gradient boosting: scores to add to those of the trees.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or a list of these
            One array per output; columns in the order of `classes_`.
        """
        if self._part.classes is None:
            raise AttributeError("A regression model has no class shares. Use predict.")
        if offset is not None:
            model: Any = self._part.model
            return model.spread(model.predicted(self._scores(X, offset)))  # type: ignore[no-any-return]
        shares: NDArray[np.float64] | list[NDArray[np.float64]] = self._predictions(X)
        return shares

    def predict_one(
        self, row: Sequence[Any] | Mapping[str, Any] | NDArray[np.float64], offset: ColumnLike = None
    ) -> Any:
        """Predict one row, in microseconds.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values in column order, or by name.
        offset : float or array-like of shape (n_scores,), optional
            Gradient boosting: scores to add to those of the trees.

        Returns
        -------
        label or float
            Prediction; an array if the model has several outputs.
        """
        handle = getattr(self._of_thread, "handle", None)
        if handle is None:
            handle = self._of_thread.handle = self.to_predictor()
        if offset is None:
            return handle.predict(row)
        self._require_offsets()
        return handle.predict(row, offset)

    def to_predictor(self) -> Any:
        """Prepare a handle that predicts one row at a time; each thread needs its own.

        Returns
        -------
        RowPredictor, ForestRowPredictor or BoostingRowPredictor
            The handle.
        """
        part = self._part
        return part.model.row_predictor(part.schema, self._unseen, getattr(self, "classes_", None))


def load_predictor(file: Target) -> Any:
    """Read a saved model in order to predict with it and nothing else: scikit-learn is not imported.

    Parameters
    ----------
    file : str, path or binary file
        What the `save` method of a model has written.

    Returns
    -------
    Predictor, or CombinedPredictor
        Predicts to the bit what the model does; the second is for stacking and voting.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model file, or written by a newer spinney.
    OSError
        If there is no such file, or it cannot be read.

    Examples
    --------
    >>> import io
    >>> import spinney
    >>> file = io.BytesIO()
    >>> spinney.DecisionTreeRegressor().fit([[1.0], [2.0]], [10.0, 20.0]).save(file)
    >>> _ = file.seek(0)
    >>> spinney.load_predictor(file).predict_one([1.8])
    20.0
    """
    data = read_file(file)
    with faults_named(label_of(file)):
        header, model_file = from_bytes(data)
        name = field(header, "estimator", str)[:100]
        if name in WITHOUT_TARGET:
            refuse(f"holds a model of the kind {name}, which does not predict a target. Read it with spinney.load.")
        return _predictor_of(header, model_file)


def _predictor_of(header: dict[str, Any], file: Any) -> Any:
    """Make what predicts of a header and its trees."""
    name, kind = field(header, "estimator", str)[:100], kind_of(header)
    parameters = parameters_from_json(field(header, "parameters", dict))
    if kind in COMBINED_KINDS:
        if name != estimator_of(COMBINED_KINDS[kind], header.get("classes") is not None):
            refuse("is damaged: its estimator and its models do not go together")
        models = read_models(header, file, _predictor_of)
        if kind == "vote":
            return VotePredictor(name, header, models)
        return StackPredictor(name, header, parameters, models)
    if kind not in FITTED_KINDS and name in MODULE_OF:
        refuse(f"holds a {name}, an ensemble of several models. Read it with spinney.load.")
    part = FittedPart.from_header(header, file, 0, file.n_trees)
    _check_name(name, kind, part.classes is not None)
    return Predictor(part, name, parameters)


def _check_name(name: str, kind: str, has_classes: bool) -> None:
    """Refuse the name of an estimator that does not hold such a model."""
    families = FAMILIES_OF_KIND.get(kind, ())
    fitting, other = ({estimator_of(family, of) for family in families} for of in (has_classes, not has_classes))
    holders = {
        estimator_of(family, of) for every in FAMILIES_OF_KIND.values() for family in every for of in (False, True)
    }
    if name not in MODULE_OF or (name not in holders and not name.endswith(("Classifier", "Regressor"))):
        refuse(f"holds a model that this spinney does not know, {name!r}: upgrade spinney")
    if name not in fitting | other:
        refuse("is damaged: its estimator and its trees do not go together")
    if name not in fitting:
        refuse("is damaged: its estimator and its classes do not go together")
