"""Models of other libraries, from their files."""

from pathlib import Path

import numpy as np
import spinney

from fingerprints.cases import case, explained, row_answers, saved

FOLDER = Path(__file__).parent.parent / "golden" / "imported"
READERS = {
    "xgboost_softprob.json": spinney.from_xgboost,
    "xgboost_one_hot.ubj": spinney.from_xgboost,
    "lightgbm_one_vs_all.txt": spinney.from_lightgbm,
    "lightgbm_zero_missing.txt": spinney.from_lightgbm,
    "catboost_poisson.json": spinney.from_catboost,
    "treelite_forest.json": spinney.from_treelite,
}


def answered(name, read, n_jobs):
    with np.load(FOLDER / f"{name.partition('.')[0]}.npz") as file:
        rows = file["rows"]
    model = read(FOLDER / name).set_params(n_jobs=n_jobs)
    ask = model.predict_proba if hasattr(model, "classes_") else model.predict
    found = {"model": model.fingerprint(), "predict": ask(rows), "rows": row_answers(model, rows[:20].tolist())}
    return found | {"shap": explained(model, rows[:20]), "file": saved(model)}


for name, read in READERS.items():
    case(f"imported: {name}")(lambda n_jobs, name=name, read=read: answered(name, read, n_jobs))
