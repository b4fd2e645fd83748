"""What a fitted model has learned, asked of the model: of this library or of others.

    dependence      what it says on average as a column changes, and for each row
    permutation     what it loses when a column is shuffled
    interactions    which columns act together
    counterfactual  what would have to change for another answer
    nearest         training rows that it treats alike

Rules, the path of a row and Shapley values, which read the trees themselves, come in by the same door.
"""

from spinney.explaining.counterfactual import Counterfactual, Counterfactuals, counterfactual
from spinney.explaining.dependence import PartialDependence, partial_dependence
from spinney.explaining.interactions import Interactions, interaction_strength
from spinney.explaining.nearest import NearestRows, nearest_rows
from spinney.explaining.permutation import permutation_importance
from spinney.reading.importances import Importances
from spinney.reading.rule_list import Rule, rules
from spinney.reading.shap import ShapValues
from spinney.reading.text import explain_row

__all__ = [
    "Counterfactual",
    "Counterfactuals",
    "Importances",
    "Interactions",
    "NearestRows",
    "PartialDependence",
    "Rule",
    "ShapValues",
    "counterfactual",
    "explain_row",
    "interaction_strength",
    "nearest_rows",
    "partial_dependence",
    "permutation_importance",
    "rules",
]
