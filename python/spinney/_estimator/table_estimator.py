"""What every estimator of spinney shares: it can be saved; and what those that read a table themselves share beside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.category_check import check_categories
from spinney._data.columns import RawTable
from spinney._estimator.attributes import ToldAttributes
from spinney._estimator.parameters import NamedParameters
from spinney._estimator.streams import batches_of
from spinney._estimator.summary import About
from spinney._model.file.disk import Target, write_file
from spinney._model.model import FittedModel, ModelOfTrees
from spinney._model.one_row import BoostingRowPredictor, ForestRowPredictor, RowPredictor
from spinney._model.saving.estimator import Kept, KeptModel


class SavedEstimator(ToldAttributes, NamedParameters, Kept, BaseEstimator):
    """Refuses misspelt parameters, checks the others, and can be saved."""

    def _check_parameters(self) -> None:
        self._validate_params()
        if self.n_jobs == 0:
            raise ValueError("n_jobs must not be 0. Use None for all the cores the process may use, or a number.")

    def _n_parts_held_out(self) -> int:
        """Return how many parts a fit makes of the rows at least, to hold each of them or one out; 0: it does not."""
        return 0

    @property
    def _n_threads(self) -> int:
        """Threads as the engine takes them: 0 stands for all."""
        return self.n_jobs or 0

    def save(self, file: Target) -> None:
        """Write the fitted model to a file for `spinney.load`; for `spinney.load_predictor`, if it predicts a target.

        The file holds numbers and text, no code: loading it runs none. Parameters that only a fit needs are saved if
        they are numbers or text: a random state that is not an integer becomes None, folds that are not a number become
        the default, callbacks and scorers that are functions become None. Of ``cp_table_`` at most 100 rows are saved;
        out-of-fold predictions and the nodes of the training rows are not. Which rows were drawn for the trees of a
        forest is saved with ``keep_rows=True``, as are the targets and leaves of its training rows and what was
        predicted for them out of bag; the out-of-bag score and curve always are. Members of an ensemble must be models
        of spinney that are no ensembles of any models themselves; which rows they were fitted on is not saved. An
        imputer's file holds the values of its training rows, which it lends.

        Parameters
        ----------
        file : str, path or binary file
            Where to write. At a path, the file is complete or not there: an older one is replaced in one step.
        """
        check_is_fitted(self)
        write_file(file, self._to_bytes())

    def _about(self) -> About:
        """Return the fitted model in a few words and numbers."""
        raise NotImplementedError


class TableEstimator(KeptModel, SavedEstimator):
    """Reads a table by its schema, and holds one model that predicts."""

    schema_: Schema

    @property
    def _fitted(self) -> FittedModel:
        """What predicts."""
        fitted: FittedModel = getattr(self, self._model_attribute)
        return fitted

    @property
    def _unseen_policy(self) -> Any:
        """What becomes of categories that did not occur at fit; models of numbers have no parameter for it."""
        return getattr(self, "unseen", "missing")

    def _learn_schema(self, table: RawTable, *, goes_on: bool = False) -> Schema:
        """Learn the columns of a table; where a fit goes on from an earlier one, they must be its columns."""
        if goes_on:
            check_categories(self.schema_, table, self.categorical_features, type(self).__name__)
            return self.schema_
        return Schema.learn(
            table, categorical_features=self.categorical_features, unseen=self.unseen, warns_of_names=True
        )

    def _keep_schema(self, schema: Schema) -> None:
        """Set the fitted attributes that come from the table."""
        self.schema_ = schema
        self.n_features_in_ = schema.n_features
        if schema.has_names:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _columns(self, X: Any) -> _engine.Table:
        """Read rows for prediction."""
        check_is_fitted(self)
        return self.schema_.encode(read_table(X), unseen=self._unseen_policy, estimator=type(self).__name__)

    def _by_blocks(self, X: Any, work: Callable[[_engine.Table], NDArray[Any]]) -> NDArray[Any]:
        """Read rows for prediction and do something with them, a block of rows at a time where that saves memory."""
        check_is_fitted(self)
        tables = batches_of(X, self.schema_) or [read_table(X)]
        blocks = (self.schema_.encode_blocks(table, self._unseen_policy, type(self).__name__) for table in tables)
        found = [work(block) for some in blocks for block in some]
        return found[0] if len(found) == 1 else np.concatenate(found)

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
        check_is_fitted(self)
        return self._part().fingerprint()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


class TargetEstimator(TableEstimator):
    """Predicts a target."""

    @property
    def _says_all(self) -> bool:
        """Whether what is fitted says all that is predicted; else another model has its say too."""
        return True

    def to_predictor(self) -> RowPredictor | ForestRowPredictor | BoostingRowPredictor:
        """Prepare a handle that predicts one row at a time, in microseconds.

        The handle checks nothing, starts no thread and needs a row's values in column order, or by name.

        Returns
        -------
        RowPredictor, ForestRowPredictor or BoostingRowPredictor
            The handle; each thread needs its own.
        """
        check_is_fitted(self)
        handle: RowPredictor | ForestRowPredictor | BoostingRowPredictor = self._fitted.row_predictor(
            self.schema_, self._unseen_policy, getattr(self, "classes_", None)
        )
        return handle


def trees_of(model: Any) -> ModelOfTrees:
    """Return what predicts in a fitted estimator of spinney that is made of trees; TypeError for anything else."""
    if not isinstance(model, TableEstimator):
        raise TypeError(f"model must be a fitted tree, forest or boosted model of spinney, not {type(model).__name__}.")
    check_is_fitted(model)
    if not isinstance(model._fitted, ModelOfTrees):
        raise TypeError(f"{type(model).__name__} is not made of trees. Pass a tree, a forest or a boosted model.")
    return model._fitted
