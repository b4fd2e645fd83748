"""Members of an ensemble by name as callers give them: estimators, pairs of a name and an estimator, or words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from sklearn.base import BaseEstimator

from spinney._estimator.estimator import template_from_json, template_to_json
from spinney._model.file.container import refuse
from spinney._names import FITTED_BY_COMMAND, estimator_of, public

DROPPED = "drop"


def estimator_of_word(word: str, task: str) -> BaseEstimator:
    """Return the estimator that a word of ``spinney fit --model`` stands for, with its defaults.

    Parameters
    ----------
    word : str
        Such as "forest" or "extra-trees", which may also be written with an underscore.
    task : {"Classifier", "Regressor"}

    Returns
    -------
    estimator
    """
    known = {key.replace("-", "_"): key for key in FITTED_BY_COMMAND}
    key = known.get(word.replace("-", "_").replace(" ", "_").lower())
    if key is None:
        nearest = get_close_matches(word, FITTED_BY_COMMAND, n=1)
        hint = f"Did you mean {nearest[0]!r}?" if nearest else f"Words are {', '.join(FITTED_BY_COMMAND)}."
        raise ValueError(f"There is no model called {word!r}. {hint}")
    name = estimator_of(FITTED_BY_COMMAND[key], task == "Classifier")
    if name is None:
        raise ValueError(f"{word!r} is no {task.lower()}. Use another model.")
    return public(name)()


def read_members(given: Any, what: str = "estimators") -> list[tuple[str, Any]]:
    """Return names and what stands for the estimators: estimators or words.

    Parameters
    ----------
    given : list or dict
        Estimators, words, or pairs of a name and one of these; a dict from names to these.
    what : str
        What the caller calls it.

    Returns
    -------
    list of (str, estimator or str)
        What is dropped is left out.
    """
    if isinstance(given, Mapping):
        given = list(given.items())
    if isinstance(given, (str, bytes)) or not isinstance(given, (list, tuple)):
        raise TypeError(f"{what} must be a list of estimators, names or pairs of both, or a dict. Got {given!r:.100}.")
    pairs = []
    for item in given:
        pair = item if isinstance(item, tuple) and len(item) == 2 else (None, item)
        if not (pair[0] is None or isinstance(pair[0], str)) or not _can_be_fitted(pair[1]):
            raise TypeError(
                f"{what} holds {item!r:.100}, which is neither an estimator with fit and predict, a name such as "
                "'forest', nor a pair of a name and one of these."
            )
        pairs.append(pair)
    names = _names([name for name, _ in pairs], [estimator for _, estimator in pairs])
    _check_names(names, what)
    left = [(name, one) for name, (_, one) in zip(names, pairs, strict=True) if not _is_dropped(one)]
    if not left:
        raise ValueError(f"{what} has no estimator left. Give at least one.")
    return left


def _is_dropped(estimator: object) -> bool:
    return isinstance(estimator, str) and estimator == DROPPED


def _can_be_fitted(estimator: object) -> bool:
    if isinstance(estimator, str):
        return True
    return not isinstance(estimator, type) and hasattr(estimator, "fit") and hasattr(estimator, "predict")


def _names(given: list[str | None], estimators: list[object]) -> list[str]:
    """Return the names given, and for others the word or the class in lower case, numbered where there are several."""
    own = [
        name if name is not None else one.replace("-", "_") if isinstance(one, str) else type(one).__name__.lower()
        for name, one in zip(given, estimators, strict=True)
    ]
    several = {name for name, count in Counter(own).items() if count > 1}
    seen: Counter[str] = Counter()
    found = []
    for name, was_given in zip(own, given, strict=True):
        seen[name] += 1
        found.append(f"{name}-{seen[name]}" if name in several and was_given is None else name)
    return found


def _check_names(names: list[str], what: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"Names provided are not unique: {what} has {twice[0]!r} twice. Give each its own name.")
    odd = [name for name in names if "__" in name]
    if odd:
        raise ValueError(f"Estimator names must not contain __: got {odd[0]!r}.")


# ---- files ---------------------------------------------------------------------------------------


def members_to_json(given: Any) -> Any:
    """Return members as parameters in a form that files hold: names, and words or estimators without their fit."""
    if given is None:
        return None
    return [[name, one if isinstance(one, str) else template_to_json(one)] for name, one in read_members(given)]


def members_from_json(saved: Any) -> Any:
    """Turn back what `members_to_json` gives."""
    if saved is None:
        return None
    if not isinstance(saved, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in saved):
        refuse("is damaged: its members as parameters are unusable")
    found = [(name, one if isinstance(one, str) else template_from_json(one)) for name, one in saved]
    read_members(found)
    return found
