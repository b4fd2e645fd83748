"""The votes of the members of an ensemble."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney._data.select import pick_table
from spinney._data.types import TableLike
from spinney._ensemble.adaboost.adaboost import AdaBoostClassifier
from spinney._ensemble.bagging import BaggingClassifier
from spinney._ensemble.voting import VotingClassifier
from spinney._forest.forests import ExtraTreesClassifier, RandomForestClassifier

_VOTING = (RandomForestClassifier, ExtraTreesClassifier, BaggingClassifier, AdaBoostClassifier, VotingClassifier)


class _Member(Protocol):
    def predict(self, X: Any, /) -> NDArray[Any]: ...


def member_votes(
    model: RandomForestClassifier | ExtraTreesClassifier | BaggingClassifier | AdaBoostClassifier | VotingClassifier,
    X: TableLike,
) -> NDArray[Any]:
    """Return the class that each member of an ensemble predicts for each row.

    Parameters
    ----------
    model : estimator
        A fitted classifier: a forest, extra-trees, bagging, AdaBoost or voting. AdaBoost needs members that predict
        classes (``algorithm="samme"``, ``"m1"`` or ``"real"``).
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples, n_members)
        Labels. The hard majority vote of a row is its most frequent label.

    Examples
    --------
    >>> import spinney
    >>> from spinney.teaching import member_votes
    >>> X, y = spinney.datasets.load_penguins()
    >>> forest = spinney.RandomForestClassifier(5, random_state=0).fit(X, y)
    >>> member_votes(forest, X.head(1)).tolist()
    [['Adelie', 'Adelie', 'Adelie', 'Adelie', 'Adelie']]
    """
    if not isinstance(model, _VOTING):
        raise TypeError(
            "member_votes needs a forest, extra-trees, bagging, AdaBoost or voting of classes, not "
            f"{type(model).__name__}."
        )
    check_is_fitted(model)
    members: Sequence[_Member] = model.estimators_
    if isinstance(model, AdaBoostClassifier) and model.algorithm in ("gentle", "logit"):
        raise ValueError(f"Members of algorithm={model.algorithm!r} are regressors, which have no votes.")
    table = pick_table(X)
    columns: Iterable[Any] = [None] * len(members)
    if isinstance(model, BaggingClassifier):
        table, columns = model._matched(X), model.estimators_features_
    elif isinstance(model, VotingClassifier):
        table = model._matched(X)
    votes = [member.predict(table.take(columns=own)) for member, own in zip(members, columns, strict=True)]
    if isinstance(model, VotingClassifier):
        labels = np.asarray(model.classes_)
        votes = [labels[vote] if coded else vote for vote, coded in zip(votes, model._coded, strict=True)]
    return np.stack(votes, axis=1)
