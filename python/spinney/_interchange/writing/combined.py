"""Averages of models as plans: stacks, votes, and calibrated models."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from spinney._data.feature import Feature
from spinney._interchange.writing.plan import PlainTree, Plan, plan_of
from spinney._model.predictions import WeightedMean


@dataclass(frozen=True)
class CombinedPlan(Plan):
    """A weighted mean of models with the same columns.

    Attributes
    ----------
    mean : WeightedMean
    members : list of Plan
    """

    mean: WeightedMean = field(default_factory=lambda: WeightedMean([], [], [], None))
    members: list[Plan] = field(default_factory=list)

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 in a regression."""
        return 0 if self.classes is None else len(self.classes[0])

    def temperature(self, k: int) -> float | None:
        """Return the temperature of a member."""
        return None if self.mean.temperatures is None else self.mean.temperatures[k]


def any_plan_of(model: Any, format: str, *, linear_leaves: bool = False) -> Plan:
    """Return a fitted model, or a weighted mean of models, as plain arrays."""
    if not hasattr(model, "_weighted_mean") or not hasattr(model, "estimators_"):
        return plan_of(model, format, linear_leaves=linear_leaves)
    mean: WeightedMean = model._weighted_mean()
    members = []
    for name, member in zip(mean.names, mean.members, strict=True):
        try:
            plan = plan_of(member, format, linear_leaves=linear_leaves)
        except (TypeError, ValueError) as error:
            raise type(error)(f"The member {name!r}: {error}") from None
        is_oblique = plan.pool is not None and (plan.pool.replaces_inputs or not linear_leaves)
        if plan.is_isolation or is_oblique or plan.n_outputs > 1:
            plan.refuse("the outputs or combinations of columns", "Export the members one by one.")
        members.append(replace(plan, cost=None))  # costs decide the class of the member, not its probabilities
    features, members = _aligned(members)
    first = members[0]
    trees = [tree for plan in members for tree in plan.trees]
    classes = None if mean.classes is None else [mean.classes]
    common = (type(model).__name__, format, features, None, first.unseen, trees, False, 0, first.start, "identity")
    return CombinedPlan(*common, classes, 1, None, None, 0.0, mean, members)


def _aligned(members: list[Plan]) -> tuple[tuple[Feature, ...], list[Plan]]:
    """Return the columns, and the members with the same codes of categories.

    Members that were fitted to samples of the rows may lack rare categories, which are unseen to them.
    """
    features = []
    for own in zip(*(plan.features for plan in members), strict=True):
        widest = max(own, key=lambda feature: len(feature.categories))
        known = dict.fromkeys(widest.categories)
        more = [value for feature in own for value in feature.categories if value not in known]
        is_alike = all((f.name, f.kind, f.holds_text) == (widest.name, widest.kind, widest.holds_text) for f in own)
        if not is_alike or (more and widest.kind != "category"):
            members[0].refuse(f"the column {widest.name!r}, which its members read differently", "Export the members.")
        features.append(replace(widest, categories=(*widest.categories, *dict.fromkeys(more))) if more else widest)
    if len({plan.unseen for plan in members}) > 1 and any(feature.kind == "category" for feature in features):
        members[0].refuse("different policies for unseen categories", "Set the same unseen in all members.")
    return tuple(features), [_recoded(plan, tuple(features)) for plan in members]


def _recoded(plan: Plan, features: tuple[Feature, ...]) -> Plan:
    """Return a plan for columns that may have more categories."""
    if all(own.categories == common.categories for own, common in zip(plan.features, features, strict=True)):
        return replace(plan, features=features)
    codes = [{value: code for code, value in enumerate(feature.categories)} for feature in features]

    def left_codes(tree: PlainTree, node: int) -> list[int]:
        j = int(tree.feature[node])
        own, n_all, left = plan.features[j].categories, len(features[j].categories), tree.left_codes[node]
        is_unseen_left = len(own) in left if plan.unseen == "other" else bool(tree.missing_left[node])
        new = {codes[j][own[code]] for code in left if code < len(own)}
        if is_unseen_left:
            new |= set(range(n_all)) - {codes[j][value] for value in own}
        return sorted(new) + ([n_all] if len(own) in left else [])

    trees = [
        replace(tree, left_codes={node: left_codes(tree, node) for node in tree.left_codes}) for tree in plan.trees
    ]
    return replace(plan, features=features, trees=trees)
