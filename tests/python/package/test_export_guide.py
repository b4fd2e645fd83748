"""The guide's table of formats agrees with the writers."""

import re
from pathlib import Path

import numpy as np
import pytest
import spinney
from written_models import AVERAGES, MIXED, MODELS, VALUES

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "export.rst"
WRITERS = {
    "ONNX": spinney.to_onnx,
    "C": spinney.to_c,
    "SQL": lambda model: spinney.to_sql(model, "rows", dialect="postgres"),
    "XGBoost": spinney.to_xgboost,
    "LightGBM": spinney.to_lightgbm,
    "treelite": spinney.to_treelite,
    "PMML": spinney.to_pmml,
}
KINDS = {
    "single regression tree": ["tree of values", "a leaf", "random tree"],
    "single classification tree": ["tree of classes", "tree of numbers", "competitors"],
    "regression forests and extra-trees": ["forest of values", "extra trees"],
    "classification forests and extra-trees": ["forest of classes"],
    "gradient boosting, regression": ["boosting", "boosting, absolute"],
    "gradient boosting, counts": ["boosting of counts"],
    "gradient boosting, binary": ["boosting of two"],
    "gradient boosting, multiclass": ["boosting of three"],
    "gradient boosting, exponential loss": ["boosting, exponential"],
    "gradient boosting, focal or smooth hinge loss": ["boosting, focal", "boosting, hinge"],
    "gradient boosting, default settings": ["default settings"],
    "gradient boosting, linear leaves": ["boosting, linear", "boosting of three, linear"],
    "default settings with ``linear_leaves=False``": ["recipe", "recipe of classes"],
    "AdaBoost classification": ["adaboost", "adaboost of three"],
    "gentle AdaBoost, multiclass": ["gentle adaboost"],
    "isolation forests": ["isolation"],
    "gradient boosting, a column of 150 categories": ["many categories"],
    "categorical columns of numbers": ["number categories"],
    '``unseen="other"``': ["boosting, other"],
    "misclassification costs, trees and forests": ["costs of a tree", "costs of a forest"],
    "oblique forests; boosting on combined columns": [
        "oblique",
        "combined columns",
        "combined columns of three",
        "crossed columns",
    ],
    "multi-output trees and forests": ["several"],
    "averages of models (see below)": [*AVERAGES],
    "surrogate splits": ["surrogates"],
}


def guide_table():
    text = GUIDE.read_text(encoding="utf-8").partition("Supported models")[2]
    lines = text[text.index("\n====") + 1 :].splitlines()
    end = [i for i, line in enumerate(lines) if line.startswith("====")][2]
    words = [re.split(r" {2,}", line.strip()) for line in lines[1:end] if not line.startswith("====")]
    return words[0][1:], {row[0]: row[1:] for row in words[1:]}


def made(kind, name):
    if name == "boosting, other":  # ONNX cannot tell the empty string from a missing value
        table = MIXED | {"colour": np.where(MIXED["colour"] == "", "empty", MIXED["colour"])}
        return spinney.GradientBoostingRegressor(n_estimators=3, unseen="other").fit(table, VALUES)
    return (MODELS | AVERAGES)[name]()


def test_the_table_has_every_kind():
    formats, rows = guide_table()
    assert formats == list(WRITERS)
    assert set(rows) == set(KINDS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_cell(kind):
    pytest.importorskip("onnx")
    pytest.importorskip("treelite")
    formats, rows = guide_table()
    for name in KINDS[kind]:
        model = made(kind, name)
        for format, entry in zip(formats, rows[kind], strict=True):
            if entry == "yes":
                assert WRITERS[format](model)
            else:
                with pytest.raises((ValueError, TypeError), match=r"\. [A-Z]"):
                    WRITERS[format](model)
