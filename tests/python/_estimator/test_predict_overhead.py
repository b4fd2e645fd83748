"""What one call of predict does in Python beside the engine: counted, since times vary."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest
import spinney

MODELS = (
    spinney.GradientBoostingClassifier(n_estimators=2),
    spinney.GradientBoostingRegressor(n_estimators=2),
    spinney.RandomForestClassifier(2),
    spinney.ExtraTreesRegressor(2),
    spinney.DecisionTreeClassifier(),
    spinney.DecisionTreeRegressor(),
)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_predicting_a_row_takes_few_calls(model: Any) -> None:
    X = np.arange(40.0).reshape(20, 2)
    model.fit(X, np.arange(20) // 10)
    model.predict(X[:1])
    calls: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        model.predict(X[:1])
    finally:
        sys.setprofile(None)
    assert 0 < len(calls) <= 60, calls
