"""A model of spinney in MLflow: a pyfunc that is this file, and the model file as its artifact. Nothing is pickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlflow
import spinney


class SpinneyModel(mlflow.pyfunc.PythonModel):
    """Predict with the model file, the artifact ``model``; with ``proba``, return class probabilities."""

    def load_context(self, context):
        """Read the model file."""
        self.model = spinney.load_predictor(context.artifacts["model"])
        self.proba = bool((context.model_config or {}).get("proba"))

    def predict(self, context, model_input, params=None):
        """Predict a table."""
        return self.model.predict_proba(model_input) if self.proba else self.model.predict(model_input)


def save_to_mlflow(model: Any, path: str | Path, file: str | Path, proba: bool = False) -> None:
    """Save a fitted model: its file at `file`, and the MLflow model at `path`."""
    model.save(file)
    mlflow.pyfunc.save_model(
        str(path),
        python_model=__file__,
        artifacts={"model": str(file)},
        model_config={"proba": proba},
        pip_requirements=["spinney-ml"],
    )


mlflow.models.set_model(SpinneyModel())
