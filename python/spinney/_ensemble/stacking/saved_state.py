"""Stacking ⇄ model files: the members, or the models of their folds, and then what combines them."""

from __future__ import annotations

import math
from typing import Any

from spinney._ensemble.combination.saved_state import members_from_json, members_to_json
from spinney._ensemble.stacking.fold_average import FoldAverage
from spinney._ensemble.stacking.greedy import GreedySelection
from spinney._estimator.saving import template_from_json, template_to_json
from spinney._model.calibration import Curve
from spinney._model.file.container import refuse
from spinney._model.saving.members import StackPlan


def layers_to_json(model: Any) -> dict[str, Any]:
    """Return the parameters that hold estimators, beside the members, in a form that files hold."""
    final, layers = model.final_estimator, model.layers
    return {
        "final_estimator": final if final is None or isinstance(final, str) else template_to_json(final),
        "layers": None if not layers else [members_to_json(layer) for layer in layers],
    }


def layers_from_json(kept: dict[str, Any]) -> dict[str, Any]:
    """Turn back what `layers_to_json` gives."""
    final, layers = kept.get("final_estimator"), kept.get("layers")
    if layers is not None and not isinstance(layers, list):
        refuse("is damaged: its layers are unusable")
    return {
        "final_estimator": final if final is None or isinstance(final, str) else template_from_json(final),
        "layers": None if layers is None else [members_from_json(layer) for layer in layers],
    }


def stack_parts(model: Any) -> list[Any]:
    """Return the models of a stack in the order of the file."""
    found: list[Any] = []
    for member in model.estimators_:
        found += member.estimators_ if isinstance(member, FoldAverage) else [member]
    return found if isinstance(model.final_estimator_, GreedySelection) else [*found, model.final_estimator_]


def stack_header(model: Any) -> dict[str, Any]:
    """Return what is remembered beside the models."""
    final = model.final_estimator_
    return {
        "methods": list(model.stack_method_),
        "widths": list(model._widths),
        "folds": [len(one.estimators_) if isinstance(one, FoldAverage) else 0 for one in model.estimators_],
        "weights": final.weights_.tolist() if isinstance(final, GreedySelection) else None,
        **_calibration(final),
        "scores": [score if math.isfinite(score) else None for score in model.oof_scores_.values()],
    }


def _calibration(final: Any) -> dict[str, Any]:
    if not isinstance(final, GreedySelection):
        return {}
    by, each = final.calibration_, final.temperatures_
    found: dict[str, Any] = {} if each is None else {"temperatures": each}
    if isinstance(by, Curve):
        return found | {"curve": {"said": by.said.tolist(), "true": by.true.tolist()}}
    return found if by is None else found | {"temperature": by}


def stack_from_header(header: dict[str, Any], learned: dict[str, Any]) -> dict[str, Any]:
    """Turn back what `stack_header` gives, and share the models out among members and what combines them."""
    classes, plan = learned.get("classes_"), StackPlan.read(header, learned, learned["_models"])
    estimators = [
        FoldAverage(models, classes, False) if of_folds else models[0]
        for models, of_folds in zip(plan.members, plan.of_folds, strict=True)
    ]
    if any(not hasattr(one, method) for one, method in zip(estimators, plan.methods, strict=True)):
        refuse("is damaged: a member cannot be asked as it says")
    final = plan.final
    if plan.weights is not None:
        final = GreedySelection(len(estimators))
        final.weights_ = plan.weights
        final.temperatures_, final.calibration_ = plan.temperatures, plan.calibration
        if classes is not None:
            final.classes_ = classes
    return {
        "estimators_": estimators,
        "stack_method_": plan.methods,
        "oof_scores_": dict(zip(learned["_names"], plan.scores, strict=True)),
        "final_estimator_": final,
        "_widths": plan.widths,
        "_coded": [False] * len(estimators),
        "_final_coded": False,
    }
